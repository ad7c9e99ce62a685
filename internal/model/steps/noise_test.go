package steps

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestNoiseHoldsTheMean: of periods that chance alone changes it is how far their mean is off, 95
// times of a hundred, and hardly more for those of a job that gets faster by a fifth meanwhile.
func TestNoiseHoldsTheMean(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	const tries, n = 1000, 100
	held, steady, faster := 0, 0.0, 0.0
	for range tries {
		periods, drifting := make([]float64, n), make([]float64, n)
		for i := range periods {
			periods[i] = 10 + r.NormFloat64()
			drifting[i] = periods[i] + 2 - 2*float64(i)/n
		}
		floor, ok := Noise(periods)
		if !ok {
			t.Fatal("of a hundred periods it is not known")
		}
		if math.Abs(Mean(periods)-10) <= floor {
			held++
		}
		steady += floor / tries
		drift, _ := Noise(drifting)
		faster += drift / tries
	}
	if share := float64(held) / tries; share < 0.93 || share > 0.99 {
		t.Errorf("it holds the mean in %.1f %%", 100*share)
	}
	if faster > 1.5*steady {
		t.Errorf("%.3f of a job that gets faster, %.3f of one that does not", faster, steady)
	}
	for _, few := range []int{0, 1, EnoughForNoise - 1} {
		if _, ok := Noise(make([]float64, few)); ok {
			t.Errorf("of %d periods it is known", few)
		}
	}
	if floor, ok := Noise(make([]float64, EnoughForNoise)); !ok || floor != 0 {
		t.Errorf("of equal periods it is %v, %v", floor, ok)
	}
}
