package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// fastest is the least of times to which whatever else runs only adds.
func fastest(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Min(values)
}

// estimate is a median of paired differences and the bootstrap's 95 % interval.
type estimate struct{ median, low, high float64 }

func estimateOf(values []float64) estimate {
	if len(values) == 0 {
		return estimate{math.NaN(), math.NaN(), math.NaN()}
	}
	random := rand.New(rand.NewPCG(1, 2))
	var medians []float64
	sample := make([]float64, len(values))
	for range 2000 {
		for i := range sample {
			sample[i] = values[random.IntN(len(values))]
		}
		medians = append(medians, median(sample))
	}
	slices.Sort(medians)
	return estimate{median(values), medians[len(medians)*25/1000], medians[len(medians)*975/1000]}
}

// reach is how far from zero the interval goes: what an A/A pair has, a
// difference must exceed to mean something.
func (e estimate) reach() float64 { return max(math.Abs(e.low), math.Abs(e.high)) }

func (e estimate) percent() string {
	return fmt.Sprintf("%+.1f %% (%+.1f … %+.1f)", 100*e.median, 100*e.low, 100*e.high)
}

// spread is a median and a range, in a unit.
type spread struct{ values []float64 }

func (s *spread) add(v float64) { s.values = append(s.values, v) }

func (s *spread) String() string {
	if len(s.values) == 0 {
		return "—"
	}
	return fmt.Sprintf("%.1f (%.1f–%.1f)", median(s.values), slices.Min(s.values), slices.Max(s.values))
}
