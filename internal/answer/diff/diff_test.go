package diff

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// loop is a recording of n steps: an optimizer's and a loader's scope around two
// operators, of which the second takes slow times what it should.
func loop(t *testing.T, n int, slow, jitter float64, seed uint64) *Side {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	calls := map[string]*event.Call{}
	for name, layer := range map[string]string{"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": "scope", "aten::mm": "op",
		"aten::relu":              "op",
		"Optimizer.step#SGD.step": "scope"} {
		calls[name] = &event.Call{Layer: layer, Name: name}
	}
	calls["Engine::execute"] = &event.Call{Layer: "autograd", Category: "backward", Name: "Engine::execute"}
	var spans []event.Span
	now, id := int64(1e15), int64(0)
	add := func(name string, took float64) {
		id++
		spans = append(spans, event.Span{ID: id, StartNS: now, DurationNS: int64(took), PID: 1, TID: 1, Call: calls[name], End: event.EndExitSite,
			Weight: 1, SequenceNumber: -1})
		now += int64(took) + 1000
	}
	for range n {
		noise := 1 + jitter*random.NormFloat64()
		add("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100_000*noise)
		add("aten::mm", 5_000_000*noise)
		add("aten::relu", 1_000_000*noise*slow)
		add("Engine::execute", 3_000_000*noise)
		add("Optimizer.step#SGD.step", 900_000*noise)
	}
	framework := "pytorch"
	err = errors.Join(d.Session(event.Recording{ID: "s"}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 1, Framework: &framework, Command: "/usr/bin/python /a/train.py"}}}),
		d.Write(&event.Batch{Spans: spans}), d.Close())
	if err != nil {
		t.Fatal(err)
	}
	return sideOf(t, d.Dir())
}

// sideOf opens a dataset for the length of a test.
func sideOf(t *testing.T, dir string) *Side {
	t.Helper()
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	side, err := Load(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return side
}

func TestARunAndItselfAreNeutralHoweverNoisy(t *testing.T) {
	for _, jitter := range []float64{0, 0.01, 0.5} {
		side := loop(t, 100, 1, jitter, 1)
		if r := Compare(side, side, 3); r.Verdict != verdict.Neutral || r.ExitCode() != 0 {
			t.Errorf("jitter %g: %s", jitter, r.Sentence)
		}
	}
}

func TestASlowerOperatorIsNamedAndItsMendingToo(t *testing.T) {
	fast, slow := loop(t, 100, 1, 0.005, 1), loop(t, 100, 1.5, 0.005, 2)
	r := Compare(fast, slow, 3)
	if r.Verdict != verdict.Regression || r.ExitCode() != verdict.ExitRegression || r.Rows[0].Key != "aten::relu" || !r.Rows[0].Significant ||
		r.Step.Percent < 4.5 || r.Step.Percent > 5.5 {
		t.Errorf("%s %+v", r.Sentence, r.Rows[0])
	}
	r = Compare(slow, fast, 3)
	if r.Verdict != verdict.Improvement || r.ExitCode() != 0 || r.Rows[0].Key != "aten::relu" || !strings.Contains(r.Sentence, "aten::relu") {
		t.Errorf("%s", r.Sentence)
	}
}

func TestNoiseAboveTheChangeIsInconclusive(t *testing.T) {
	r := Compare(loop(t, 20, 1, 0.3, 1), loop(t, 20, 1.5, 0.3, 2), 3)
	if r.Verdict != verdict.Inconclusive || r.ExitCode() != verdict.ExitInconclusive || r.NoisePercent < 5 {
		t.Errorf("%s", r.Sentence)
	}
}

// TestABusyMachineIsNoRegression: what is longer by less than the training threads waited
// for a CPU cannot be told; of repeats, by what one side waited more.
func TestABusyMachineIsNoRegression(t *testing.T) {
	side := func(ms, waited float64) *Side {
		s := &Side{What: "a step", PerStep: map[Key]float64{}, Checks: &lint.Result{Percent: 100}, Waited: waited}
		for i := range 60 {
			s.Periods = append(s.Periods, ms+0.001*float64(i%2))
		}
		return s
	}
	three := func(ms, waited float64) *Side {
		return Join(side(ms, waited), side(ms+0.01, waited), side(ms-0.01, waited))
	}
	for _, c := range []struct {
		name          string
		before, after *Side
		verdict       verdict.Verdict
	}{
		{"quiet", side(10, 0.4), side(13, 0.4), verdict.Regression},
		{"one was busy", side(10, 1), side(13, 35), verdict.Inconclusive},
		{"both were", side(10, 20), side(13, 20), verdict.Inconclusive},
		{"much longer than that", side(10, 1), side(16, 35), verdict.Regression},
		{"repeats, equally busy", three(10, 20), three(13, 20), verdict.Regression},
		{"repeats, one side busier", three(10, 1), three(13, 35), verdict.Inconclusive},
		{"two of each, far apart", Join(side(10, 0), side(14, 0)), Join(side(13, 0), side(14, 0)), verdict.Inconclusive},
		{"two of each", Join(side(10, 0), side(10.05, 0)), Join(side(13, 0), side(13.05, 0)), verdict.Regression},
	} {
		r := Compare(c.before, c.after, 3)
		if r.Verdict != c.verdict {
			t.Errorf("%s: %s", c.name, r.Sentence)
		}
		if busy := c.name == "one was busy" || c.name == "both were"; busy && !strings.Contains(r.Sentence, "waited for a CPU") {
			t.Errorf("%s: does not say why: %s", c.name, r.Sentence)
		}
	}
}

func TestASmallChangeIsNeutralUnderALargerFailOn(t *testing.T) {
	if r := Compare(loop(t, 100, 1, 0, 1), loop(t, 100, 1.5, 0, 2), 10); r.Verdict != verdict.Neutral {
		t.Errorf("%s", r.Sentence)
	}
}

// TestFalseAlarmsAreRare over 20 pairs of runs that differ in noise alone.
func TestFalseAlarmsAreRare(t *testing.T) {
	alarms := 0
	for i := range uint64(20) {
		side := func(seed uint64) *Side {
			random := rand.New(rand.NewPCG(seed, 9))
			s := &Side{What: "a step", PerStep: map[Key]float64{}, Checks: &lint.Result{Percent: 100}}
			for range 60 {
				s.Periods = append(s.Periods, 10*(1+0.03*random.NormFloat64()))
			}
			return s
		}
		if r := Compare(side(2*i), side(2*i+1), 3); r.Verdict == verdict.Regression || r.Verdict == verdict.Improvement {
			alarms++
		}
	}
	if alarms > 1 {
		t.Errorf("%d false alarms of 20", alarms)
	}
}

func TestWhatDiffersIsSaid(t *testing.T) {
	before, after := loop(t, 30, 1, 0, 1), loop(t, 30, 1, 0, 1)
	after.Facts[1] = "jax 0.9"
	var text bytes.Buffer
	if err := Compare(before, after, 3).WriteText(&text, 5); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "DIFFERS framework") || !strings.Contains(text.String(), "same    job          python train.py") {
		t.Error(text.String())
	}
}

// TestAFrameworkWithoutAVersionIsTheOneBesideIt: a child of the job ended before its version
// was read.
func TestAFrameworkWithoutAVersionIsTheOneBesideIt(t *testing.T) {
	d, err := output.Create(t.TempDir()+"/d", output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	framework, version := "pytorch", "2.15.0"
	err = errors.Join(d.Session(event.Recording{ID: "s"}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 1, Framework: &framework, FrameworkVersion: &version}}}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 2, PID: 2, Framework: &framework}}}),
		d.Write(&event.Batch{Spans: []event.Span{{ID: 1, StartNS: 1e15, DurationNS: 1000, PID: 1, TID: 1,
			Call: &event.Call{Layer: "op", Name: "aten::mm"}, End: event.EndExitSite, Weight: 1, SequenceNumber: -1}}}), d.Close())
	if err != nil {
		t.Fatal(err)
	}
	if got := sideOf(t, d.Dir()).Facts[1]; got != "pytorch 2.15.0" {
		t.Errorf("the framework is %q", got)
	}
}

// TestTheSentenceSaysMostOnlyOfMost: a place has half of the difference, or the phase has, or none.
func TestTheSentenceSaysMostOnlyOfMost(t *testing.T) {
	side := func(loading, mul, step float64) *Side {
		s := &Side{What: "a step", PerStep: map[Key]float64{{"phase", "loading"}: loading, {"operator", "aten::mul"}: mul},
			Checks: &lint.Result{Percent: 100}}
		for range 60 {
			s.Periods = append(s.Periods, step)
		}
		return s
	}
	for _, c := range []struct {
		before, after *Side
		want          string
	}{
		{side(1, 6, 10), side(1, 1, 5), "; most of it in operator aten::mul (-5.000 ms a step)."},
		{side(20, 3, 30), side(1, 1, 9), "; most of it in phase loading (-19.000 ms a step), the most at one place in operator aten::mul " +
			"(-2.000 ms a step)."},
		{side(20, 1, 30), side(1, 1, 10), "; most of it in phase loading (-19.000 ms a step)."},
		{side(3, 3, 30), side(1, 1, 10), "; the largest part at one place is in operator aten::mul (-2.000 ms a step)."},
		{side(1, 1, 30), side(1, 1, 10), "shorter."},
	} {
		if got := Compare(c.before, c.after, 3).Sentence; !strings.HasSuffix(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestWordsFitWhatIsCompared: no step where there is none, no percent of a thousand.
func TestWordsFitWhatIsCompared(t *testing.T) {
	side := func(kernel, all float64) *Side {
		return &Side{What: "the device's work, first to last", Periods: []float64{all}, PerStep: map[Key]float64{{"kernel", "gemm"}: kernel},
			Checks: &lint.Result{Percent: 100}}
	}
	var text bytes.Buffer
	if err := Compare(side(0.5, 10), side(500, 600), 3).WriteText(&text, 5); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); !strings.Contains(got, "in kernel gemm (+499.500 ms);") || !strings.Contains(got, "× 1000 ") {
		t.Error(got)
	}
	if r := Compare(side(1, 10), side(1, 10), 3); r.Sentence != "Neutral: the device's work, first to last takes 10.000 ms, as before." {
		t.Error(r.Sentence)
	}
}

func TestSharesAreReadWithAndWithoutTheSign(t *testing.T) {
	for text, want := range map[string]float64{"3%": 3, "2.5": 2.5, "0": 0} {
		if got, err := Percent(text); err != nil || got != want {
			t.Errorf("%s: %g, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "-1%", "3 percent", "NaN"} {
		if _, err := Percent(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestRepeatsAreTheNoise: a change of 3 % that one pair cannot tell from the 2 % that
// two recordings always differ by is told by ten of each side, and named; and ten
// pairs of the same are neutral.
func TestRepeatsAreTheNoise(t *testing.T) {
	sides := func(slow float64, seed uint64) *Side {
		var all []*Side
		for i := range uint64(10) {
			all = append(all, loop(t, 20, slow, 0.01, seed+i))
		}
		return Join(all[0], all[1:]...)
	}
	before, slower, same := sides(1, 100), sides(1.3, 200), sides(1, 300)
	r := Compare(before, slower, 2)
	if r.Verdict != verdict.Regression || !strings.Contains(r.Sentence, "aten::relu") || r.NoisePercent >= 1 {
		t.Errorf("%s (noise %v from %s)", r.Sentence, r.NoisePercent, r.NoiseFrom)
	}
	if r := Compare(before, same, 3); r.Verdict != verdict.Neutral {
		t.Errorf("%s", r.Sentence)
	}
}

func TestPhasesAreCompared(t *testing.T) {
	r := Compare(loop(t, 100, 1, 0, 1), loop(t, 100, 1.5, 0, 1), 3)
	for _, row := range r.Rows {
		if row.Kind == "phase" && row.Key == "forward" {
			if !row.Significant || row.After-row.Before < 0.49 || row.After-row.Before > 0.51 {
				t.Errorf("%+v", row)
			}
			return
		}
	}
	t.Errorf("no row of the forward phase: %+v", r.Rows)
}

// holding is a recording of steps in which a line's tensors take so many bytes.
func holding(t *testing.T, bytes int64) *Side {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stacks := []event.Stack{}
	for id, line := range []int32{10, 20} {
		stacks = append(stacks, event.Stack{ID: int64(id + 1), Status: "complete", Folded: "f", Frames: []event.Frame{
			{Kind: symbolize.Python, Function: "forward", File: "/home/u/net.py", Line: line}}})
	}
	var rows []event.Memory
	for k := range int64(40) {
		size, stack, address := bytes, k%2+1, k%2<<30
		if k%2 == 0 {
			size = 1 << 20
		}
		for n, action := range []string{"alloc", "free"} {
			ts := int64(1e15) + k/2*100_000 + 10*(k%2) + int64(n)*1000
			rows = append(rows, event.Memory{TSNS: ts, PID: 1, TID: 1, Space: "host", Level: "allocator", Action: action, Address: address + 1<<40,
				Bytes: &size, StackID: &stack, Weight: 1})
		}
	}
	slices.SortStableFunc(rows, func(a, b event.Memory) int { return cmp.Compare(a.TSNS, b.TSNS) })
	span := event.Span{ID: 1, StartNS: 1e15, DurationNS: 2_000_000, PID: 1, TID: 1, Call: &event.Call{Layer: "op", Name: "aten::mm"},
		Weight: 1, SequenceNumber: -1}
	err = errors.Join(d.Session(event.Recording{ID: "s"}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 1, Command: "train"}}}), d.Write(&event.Batch{Stacks: stacks}),
		d.Write(&event.Batch{Memory: rows}),
		d.Write(&event.Batch{Spans: []event.Span{span}}), d.Close())
	if err != nil {
		t.Fatal(err)
	}
	db, err := dataset.Open(d.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	side, err := Load(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return side
}

// TestAFrameWithoutALineIsComparedByItsFunction: where a frame's code cannot be read far
// enough, its line is NULL, and once that failed the comparison.
func TestAFrameWithoutALineIsComparedByItsFunction(t *testing.T) {
	side := func() *Side {
		d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
		if err != nil {
			t.Fatal(err)
		}
		id := int64(1)
		stack := event.Stack{ID: id, Status: event.StackComplete, Frames: []event.Frame{{Kind: symbolize.Python, Function: "forward",
			File: "/net.py"}}}
		span := event.Span{ID: 1, StartNS: 1e15, DurationNS: 2_000_000, PID: 1, TID: 1, Call: &event.Call{Layer: "op", Name: "aten::mm"},
			Weight: 1, SequenceNumber: -1}
		sample := event.Sample{TSNS: 1e15 + 5, PID: 1, TID: 1, State: event.OnCPU, WeightNS: 1e6, StackID: &id}
		if err := errors.Join(d.Session(event.Recording{ID: "s"}),
			d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 1, Command: "train"}}}),
			d.Write(&event.Batch{Stacks: []event.Stack{stack}}), d.Write(&event.Batch{Samples: []event.Sample{sample}}),
			d.Write(&event.Batch{Spans: []event.Span{span}}), d.Close()); err != nil {
			t.Fatal(err)
		}
		db, err := dataset.Open(d.Dir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		s, err := Load(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := Compare(side(), side(), 3)
	if !slices.ContainsFunc(r.Rows, func(row Row) bool {
		return row.Kind == "line" && row.Key == "/net.py forward" && math.Round(row.Before) == 500
	}) {
		t.Errorf("%+v", r.Rows)
	}
}

// TestBytesAreComparedByWhatHoldsThePeak, of single recordings and of repeats.
func TestBytesAreComparedByWhatHoldsThePeak(t *testing.T) {
	before, after := holding(t, 4<<20), holding(t, 6<<20)
	if m := Compare(before, holding(t, 4<<20), 3).Memory; m.Untold != "" || len(m.Rows) == 0 || m.Rows[0].Before != m.Rows[0].After ||
		m.Rows[0].Significant {
		t.Errorf("of the same: %+v", m)
	}
	for name, r := range map[string]*Result{
		"single": Compare(before, after, 3), "repeated": Compare(Join(before, holding(t, 4<<20)), Join(after, holding(t, 6<<20)), 3),
	} {
		rows := r.Memory.Rows
		if len(rows) < 2 || rows[0].Kind != "peak" || rows[0].Before != 5<<20 || rows[0].After != 7<<20 || !rows[0].Significant {
			t.Fatalf("%s: %+v", name, r.Memory)
		}
		at := slices.IndexFunc(rows, func(m MemoryRow) bool { return m.Kind == "line" })
		if at < 0 || !strings.HasPrefix(rows[at].Key, "/home/u/net.py:20") || rows[at].After-rows[at].Before != 2<<20 {
			t.Errorf("%s: %+v", name, rows)
		}
		var text bytes.Buffer
		if err := r.WriteText(&text, 10); err != nil || !strings.Contains(text.String(), "net.py:20") {
			t.Errorf("%s: %v\n%s", name, err, text.String())
		}
	}
}
