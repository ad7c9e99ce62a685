package report

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/localise"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// days are minutes of a job of two workers, which peers cannot tell apart: in each the
// steps take so long, ms, and so much of the time is in the loader.
func days(t *testing.T, minutes ...[2]float64) *dataset.DB {
	t.Helper()
	root := t.TempDir()
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	const begin = int64(28_333_333) * 60e9
	for n, m := range minutes {
		b := store.Batch{Session: "s", Job: "llama", Host: "a"}
		for rank := range int32(2) {
			at := begin + int64(n)*120e9
			p := pattern.Pattern{Host: "a", PID: 100 + rank, Rank: rank, BeginNS: at + 1e9, EndNS: at + 59e9, ObservedNS: 58e9, Coverage: 0.97,
				Basis: pattern.Sampled, Resource: "cpu", Function: 1, Class: pattern.Loader, Name: "Data.__getitem__ (data.py)",
				Wait: "clock_nanosleep",
				File: "/data.py", Line: 7, Beta: m[1], BetaLo: m[1] - .002, BetaHi: m[1] + .002, Mu: 0.05}
			b.Patterns = append(b.Patterns, p)
			for k := range int64(50) {
				b.Steps = append(b.Steps, pattern.Step{PID: p.PID, Rank: rank, Number: int64(n)*50 + k, BeginNS: at + 1e9 + k*1e9,
					PeriodNS: int64(m[0] * 1e6)})
			}
		}
		if _, err := store.Send(t.Context(), s, b); err != nil {
			t.Fatal(err)
		}
	}
	db, err := dataset.Open(filepath.Join(root, store.Version))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Two workers that have become slow alike: peers say nothing, their own normal time does,
// which is not the slow minute among those before.
func TestASlowJobIsComparedWithItsOwnNormalTime(t *testing.T) {
	r, err := Build(t.Context(), days(t, [2]float64{100, 0.02}, [2]float64{102, 0.02}, [2]float64{150, 0.33}, [2]float64{100, 0.03},
		[2]float64{160, 0.4}), Question{})
	if err != nil {
		t.Fatal(err)
	}
	if o := r.Own; o == nil || o.Minutes != 3 || !o.Slower || math.Abs(o.NormalMS-100.67) > 0.1 || o.NowMS != 160 {
		t.Fatalf("%+v", r.Own)
	}
	if len(r.Findings) == 0 || r.Findings[0].Kind != string(localise.Own) || r.Findings[0].OwnBeta == nil ||
		math.Abs(*r.Findings[0].OwnBeta-0.0233) > 0.001 {
		t.Fatalf("%+v", r.Findings)
	}
	if want := "2 of 2 workers spend 40 % of the time in the data loader, in Data.__getitem__ (data.py:7), in their own " +
		"normal time 2.3 %"; !strings.HasPrefix(r.Verdict, want) {
		t.Errorf("%s\nwant %s", r.Verdict, want)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "its own normal time (3 minutes of the day before, 100.7 "+
		"ms a step) it is 59 % slower") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestAJobThatIsNoSlowerHasNoFindingByItsOwnTime(t *testing.T) {
	r, err := Build(t.Context(), days(t, [2]float64{100, 0.02}, [2]float64{104, 0.4}), Question{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Own == nil || r.Own.Slower {
		t.Errorf("%+v", r.Own)
	}
	for _, f := range r.Findings {
		if f.Kind == string(localise.Own) {
			t.Errorf("%+v", f)
		}
	}
}
