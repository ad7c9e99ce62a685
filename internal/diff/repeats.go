package diff

import (
	"math"

	"github.com/ebpfprof/ebpfprof/internal/steps"
)

// enoughRepeats are so many recordings of each side that their spread says what two
// recordings differ by without a reason.
const enoughRepeats = 3

// Join makes one side of several recordings of the same thing: the first says what
// it is, times are means over all. They have to be of the same.
func Join(first *Side, others ...*Side) *Side {
	if len(others) == 0 {
		return first
	}
	joined := *first
	joined.Repeats = append([]*Side{first}, others...)
	joined.Periods, joined.PerStep, joined.held = nil, map[Key]float64{}, held{bytes: map[Key]float64{}}
	for _, s := range joined.Repeats {
		joined.Periods = append(joined.Periods, steps.Mean(s.Periods))
		for k, v := range s.PerStep {
			joined.PerStep[k] += v / float64(len(joined.Repeats))
		}
		joined.held = joined.held.join(s.held, len(joined.Repeats))
		if s.What != first.What {
			joined.What = first.What + " and " + s.What
		}
	}
	return &joined
}

// values of a key in the repeats of a side.
func (s *Side) values(k Key) (all []float64) {
	for _, r := range s.Repeats {
		all = append(all, r.PerStep[k])
	}
	return all
}

// repeated says whether both sides have repeats enough to tell their noise by.
func repeated(before, after *Side) bool {
	return len(before.Repeats) >= enoughRepeats && len(after.Repeats) >= enoughRepeats
}

// apart is how far the means of two samples differ by chance, in 95 of 100 cases
// (Welch).
func apart(a, b []float64) float64 {
	va, vb := steps.Variance(a)/float64(len(a)), steps.Variance(b)/float64(len(b))
	if va+vb == 0 {
		return 0
	}
	freedom := (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	return steps.Quantile(int(math.Floor(freedom))) * math.Sqrt(va+vb)
}
