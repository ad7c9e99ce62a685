package report

import (
	"fmt"
	"math"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// contradictions are the sums of a report that cannot be: parts that exceed the whole, and intervals without their estimate.
func contradictions(r *Report) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	inside := func(what string, value float64, lo, hi *float64) {
		if lo != nil && *lo > value*1.0001+1e-9 || hi != nil && *hi < value*0.9999-1e-9 {
			say("%s: the interval is without %g", what, value)
		}
	}
	percent := 0.0
	for _, p := range r.Phases {
		percent += p.Percent
	}
	if len(r.Phases) > 0 && math.Abs(percent-100) > 0.5 {
		say("phases are %g %%", percent)
	}
	for _, e := range r.Explanations {
		if e.Explained > 1.0001 {
			say("%s explains %g", e.Kind, e.Explained)
		}
		inside(e.Kind, e.Explained, e.Lo, e.Hi)
	}
	own := 0.0
	for _, o := range r.Operators {
		own += o.SelfMS
		if o.SelfMS > 1.001*o.TotalMS+1e-6 {
			say("%s has %g ms of its own, of %g", o.Name, o.SelfMS, o.TotalMS)
		}
		inside(o.Name+" calls", o.Calls, o.CallsLo, o.CallsHi)
		inside(o.Name+" ms", o.TotalMS, o.TotalLoMS, o.TotalHiMS)
	}
	s := r.Shares
	if s == nil {
		return all
	}
	lines := 0.0
	for _, l := range s.HotLines {
		lines += l.MS
	}
	threads := float64(max(1, len(r.Threads)))
	if lines > 1.001*s.WallMS || s.CPUMS+s.WaitMS+s.ShortMS > 1.001*s.WallMS || own > 1.001*threads*s.WallMS {
		say("%g ms of lines, %g of operators, %g + %g + %g of the thread; the clock says %g", lines, own, s.CPUMS, s.WaitMS, s.ShortMS, s.WallMS)
	}
	for _, t := range r.Threads {
		if t.CPUMS+t.OffMS > 1.02*s.WallMS+1 {
			say("thread %d has %g + %g ms of %g", t.TID, t.CPUMS, t.OffMS, s.WallMS)
		}
	}
	return all
}

// sliced writes a job whose slices happened to see six times as much as there was room for.
func sliced(t *testing.T) string {
	j := scripted.New()
	for range 5 {
		j.Slice(4, 24, func() {
			for range 4 {
				before := j.Now
				j.Op("aten::linear", 100_000, func() { j.Op("aten::mm", 3_000_000) })
				j.Backward(200_000, func() { j.Op("aten::mul", 1_000_000) })
				j.Optimize(300_000)
				end := j.Now
				for j.Now = before; j.Now < end; j.Now += 200_000 {
					j.Sample("on_cpu", 200_000, scripted.Python("main", "/home/me/train.py", 7))
				}
				j.Now = end
			}
		})
	}
	return scripted.Write(t, j)
}

// TestNoSumExceedsItsWhole, in a recording of an older version and in one by slices.
func TestNoSumExceedsItsWhole(t *testing.T) {
	for _, dir := range []string{"testdata/schema-1.1.0", sliced(t)} {
		db, err := dataset.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		r, err := Build(t.Context(), db, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Operators) == 0 {
			t.Errorf("%s has no operators", dir)
		}
		for _, text := range contradictions(r) {
			t.Errorf("%s: %s", dir, text)
		}
	}
}

// TestAContradictionIsNoticed: the check of sums fails where it must.
func TestAContradictionIsNoticed(t *testing.T) {
	low := 3.0
	r := &Report{Phases: []Phase{{Percent: 90}}, Operators: []Operator{{Name: "aten::mm", Calls: 2, CallsLo: &low, TotalMS: 1, SelfMS: 2}}}
	if found := contradictions(r); len(found) != 3 {
		t.Errorf("%q", found)
	}
}
