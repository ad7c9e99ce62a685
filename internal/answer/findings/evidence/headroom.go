package evidence

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// Headroom is how much shorter a step would be.
type Headroom struct {
	NS, LowNS, HighNS float64
	FromSteps         int // fewer than eight steps: how many, and the bounds are their range; else 0
}

const (
	draws         = 1000
	fewSteps      = steps.EnoughForNoise
	confidence    = 0.95
	bootstrapSeed = 20
)

// HeadroomOf is the mean of the differences, one each step in order of time, with
// an interval from moving blocks of ⌈N^⅓⌉ steps. False of none.
func HeadroomOf(differences []float64) (h Headroom, ok bool) {
	n := len(differences)
	if n == 0 {
		return h, false
	}
	h.NS = steps.Mean(differences)
	if n < fewSteps {
		h.LowNS, h.HighNS, h.FromSteps = slices.Min(differences), slices.Max(differences), n
		return h, true
	}
	block := int(math.Ceil(math.Cbrt(float64(n))))
	random := rand.New(rand.NewPCG(bootstrapSeed, uint64(n)))
	means := make([]float64, draws)
	for d := range means {
		sum, taken := 0.0, 0
		for taken < n {
			from := random.IntN(n - block + 1)
			for i := from; i < from+block && taken < n; i++ {
				sum, taken = sum+differences[i], taken+1
			}
		}
		means[d] = sum / float64(n)
	}
	slices.Sort(means)
	tail := (1 - confidence) / 2
	h.LowNS, h.HighNS = means[int(tail*draws)], means[int((1-tail)*draws)-1]
	return h, true
}
