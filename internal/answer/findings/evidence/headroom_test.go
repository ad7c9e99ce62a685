package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// Of 200 recordings with noise and slow drift the interval has to hold the truth
// in nearly as many as it says.
func TestIntervalHoldsTheTruth(t *testing.T) {
	const recordings, truth = 200, 10.0
	held := 0
	for seed := range uint64(recordings) {
		r := rand.New(rand.NewPCG(seed, 5))
		drift, all := 0.0, make([]float64, 100)
		for i := range all {
			drift = 0.7*drift + r.NormFloat64()
			all[i] = truth + drift
		}
		h, ok := HeadroomOf(all)
		if !ok || h.FromSteps > 0 {
			t.Fatal("no interval of a hundred steps")
		}
		if h.LowNS <= truth && truth <= h.HighNS {
			held++
		}
	}
	if held < recordings*80/100 || held == recordings {
		t.Errorf("the interval holds the truth %d times of %d", held, recordings)
	}
}

func TestFewStepsAreSaid(t *testing.T) {
	if _, ok := HeadroomOf(nil); ok {
		t.Error("a headroom of no step")
	}
	if h, ok := HeadroomOf([]float64{7}); !ok || h != (Headroom{NS: 7, LowNS: 7, HighNS: 7, FromSteps: 1}) {
		t.Errorf("of one step %+v", h)
	}
	h, ok := HeadroomOf([]float64{1, 5, 3})
	if !ok || h.FromSteps != 3 || h.LowNS != 1 || h.HighNS != 5 || h.NS != 3 {
		t.Errorf("%+v", h)
	}
	if h, _ := HeadroomOf([]float64{4, 4, 4, 4, 4, 4, 4, 4}); h.FromSteps != 0 || h.LowNS != 4 || h.HighNS != 4 {
		t.Errorf("%+v", h)
	}
}

func TestNoiseFloor(t *testing.T) {
	if _, ok := steps.Noise(make([]float64, 7)); ok {
		t.Error("a floor of seven steps")
	}
	// Two windows of four: means 1 and 3, sd √2, t of one degree of freedom 12.706.
	floor, ok := steps.Noise([]float64{1, 1, 1, 1, 3, 3, 3, 3})
	if want := 12.706 * math.Sqrt2 / math.Sqrt2; !ok || math.Abs(floor-want) > 1e-9 {
		t.Errorf("floor %v, want %v", floor, want)
	}
	if floor, ok := steps.Noise(make([]float64, 100)); !ok || floor != 0 {
		t.Errorf("steps that are all alike: %v", floor)
	}
}
