// Package figure is the figures that bench takes, with what is uncertain about them, and
// the page that they are written on.
package figure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// Fastest is the least of times to which whatever else runs only adds.
func Fastest(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Min(values)
}

// Estimate is a median of paired differences and the bootstrap's 95 % interval.
type Estimate struct{ Median, Low, High float64 }

func EstimateOf(values []float64) Estimate {
	if len(values) == 0 {
		return Estimate{math.NaN(), math.NaN(), math.NaN()}
	}
	random := rand.New(rand.NewPCG(1, 2))
	var medians []float64
	sample := make([]float64, len(values))
	for range 2000 {
		for i := range sample {
			sample[i] = values[random.IntN(len(values))]
		}
		medians = append(medians, Median(sample))
	}
	slices.Sort(medians)
	return Estimate{Median(values), medians[len(medians)*25/1000], medians[len(medians)*975/1000]}
}

// RatioOf is the ratio of two means and the bootstrap's 95 % interval.
func RatioOf(over, under []float64) Estimate {
	mean := func(values []float64) (sum float64) {
		for _, v := range values {
			sum += v / float64(len(values))
		}
		return sum
	}
	if len(over) == 0 || len(under) == 0 {
		return Estimate{math.NaN(), math.NaN(), math.NaN()}
	}
	random := rand.New(rand.NewPCG(1, 2))
	drawn := func(values []float64) []float64 {
		sample := make([]float64, len(values))
		for i := range sample {
			sample[i] = values[random.IntN(len(values))]
		}
		return sample
	}
	var ratios []float64
	for range 2000 {
		ratios = append(ratios, mean(drawn(over))/mean(drawn(under)))
	}
	slices.Sort(ratios)
	return Estimate{mean(over) / mean(under), ratios[len(ratios)*25/1000], ratios[len(ratios)*975/1000]}
}

// Reach is how far from zero the interval goes: what an A/A pair has, a
// difference must exceed to mean something.
func (e Estimate) Reach() float64 { return max(math.Abs(e.Low), math.Abs(e.High)) }

func (e Estimate) Percent() string {
	return fmt.Sprintf("%+.1f %% (%+.1f … %+.1f)", 100*e.Median, 100*e.Low, 100*e.High)
}

// Spread is a median and a range, in a unit.
type Spread struct{ Values []float64 }

func (s *Spread) Add(v float64) { s.Values = append(s.Values, v) }

func (s *Spread) String() string {
	if len(s.Values) == 0 {
		return "—"
	}
	return fmt.Sprintf("%.1f (%.1f–%.1f)", Median(s.Values), slices.Min(s.Values), slices.Max(s.Values))
}
