package findings

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestNumbersGivenToOperatorsAreNoCopies: an elementwise operator makes a tensor of each
// number that it is given, by the same calls that copy a tensor of the user's.
func TestNumbersGivenToOperatorsAreNoCopies(t *testing.T) {
	r := run(t, thresholds.Default(), made(func(j *scripted.Job, _ int) {
		for range 3 {
			j.Op("aten::mul", 20*us, func() { j.Op("aten::to", 300*us, func() { j.Op("aten::copy_", 100*us) }) })
			j.Op("aten::mm", 10*us)
		}
	}))
	if f := r.find("layout"); f != nil {
		t.Errorf("%+v", *f)
	}
}

// TestAnImportedTracesPlaceIsTheUsers: torch.profiler writes files without the directories of
// their packages.
func TestAnImportedTracesPlaceIsTheUsers(t *testing.T) {
	r := run(t, thresholds.Default(), made(func(j *scripted.Job, _ int) {
		j.Sample("on_cpu", 2*ms, scripted.Python("_call_impl", "torch/nn/modules/module.py", 1501), scripted.Python("forward", "model.py", 17))
		j.Op("aten::contiguous", 2*ms)
	}))
	if f := r.find("layout"); f == nil || f.File == nil || *f.File != "model.py" || *f.Line != 17 {
		t.Errorf("%+v", f)
	}
}

func TestViewsBetweenDoNotEndARow(t *testing.T) {
	r := run(t, thresholds.Default(), made(func(j *scripted.Job, _ int) {
		for range 9 {
			j.Op("aten::log1p", 100*us)
			j.Op("aten::unsqueeze", us)
		}
	}))
	if f := r.find("fusion"); f == nil || *f.HeadroomMS < 0.79 || *f.HeadroomMS > 0.81 {
		t.Errorf("%+v, not claimed %+v", f, r.Abstained)
	}
}

// TestWhatIsMadeOfAnElementBeforeItIsFetchedGoesWithIt, but not what works on tensors between.
func TestWhatIsMadeOfAnElementBeforeItIsFetchedGoesWithIt(t *testing.T) {
	for own, want := range map[int64]float64{10 * us: 200*.008 + 199*.024, 300 * us: 200 * .008} {
		r := run(t, thresholds.Default(), made(func(j *scripted.Job, _ int) {
			for range 200 {
				j.Op("aten::select", 4*us)
				j.Op("aten::gt", own/2, func() { j.Op("aten::to", 10*us) })
				j.Op("aten::is_nonzero", 8*us)
			}
		}))
		if f := r.find("sync_in_step"); f == nil || *f.HeadroomMS < 0.99*want || *f.HeadroomMS > 1.01*want {
			t.Errorf("%d µs: %+v, want %v ms; not claimed %+v", own/us, f, want, r.Abstained)
		}
	}
}
