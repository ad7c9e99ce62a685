package findings

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Headroom is how much shorter a step would be.
type Headroom struct {
	NS, LowNS, HighNS float64
	LowConfidence     bool // fewer than eight steps: the bounds are their range
}

const (
	draws         = 1000
	fewSteps      = 8
	confidence    = 0.95
	mostWindows   = 10
	stepsAWindow  = 5
	bootstrapSeed = 20
)

// headroomOf is the mean of the differences, one each step in order of time, with
// an interval from moving blocks of ⌈N^⅓⌉ steps. False of fewer than two.
func headroomOf(differences []float64) (h Headroom, ok bool) {
	n := len(differences)
	if n < 2 {
		return h, false
	}
	h.NS = mean(differences)
	if n < fewSteps {
		h.LowNS, h.HighNS, h.LowConfidence = slices.Min(differences), slices.Max(differences), true
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

// noiseFloor is how far the mean of the periods may be off by chance: t · sd/√K of
// the means of K equal windows. False where there are not two of five steps.
func noiseFloor(periods []float64) (floor float64, ok bool) {
	k := min(mostWindows, len(periods)/stepsAWindow)
	if k < 2 {
		return 0, false
	}
	means := make([]float64, k)
	for i := range means {
		means[i] = mean(periods[i*len(periods)/k : (i+1)*len(periods)/k])
	}
	m, square := mean(means), 0.0
	for _, v := range means {
		square += (v - m) * (v - m)
	}
	return student[k-1] * math.Sqrt(square/float64(k-1)) / math.Sqrt(float64(k)), true
}

// student is t at 97.5 % by degrees of freedom, from any table of the distribution.
var student = [...]float64{0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(len(x), 1))
}
