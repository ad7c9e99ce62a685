package compare

import (
	"math"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/reference"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// Change says what a difference between two sets of runs is worth.
type Change struct {
	Verdict Worth   `json:"verdict"`
	Percent float64 `json:"change_percent"` // of the means, the left one against the right one
	// NoisePercent is by how much they differ at random; 0 where nothing tells it.
	NoisePercent float64 `json:"noise_percent"`
}

// Worth is a verdict about a difference.
type Worth string

// The verdicts. More and less are of numbers that are neither better nor worse so.
const (
	Unknown Worth = "unknown noise" // fewer than two runs on a side
	Within  Worth = "within noise"
	Better  Worth = "better"
	Worse   Worth = "worse"
	More    Worth = "more"
	Less    Worth = "less"
)

// leastNoise is by how many percent two sets of runs of the same job differ where each differs in itself by nothing: the
// placement of memory and the like, which stays the same for a run and for runs shortly after each other.
const leastNoise = 2

// Between compares the means of two groups of runs by Welch's test of 95 %.
func Between(left, right []Row) Change {
	l, r := floats(left, "pval"), floats(right, "pval")
	if len(l) == 0 || len(r) == 0 {
		return Change{Verdict: Unknown}
	}
	ml, mr := steps.Mean(l), steps.Mean(r)
	if ml == mr {
		return Change{Verdict: Within}
	}
	c := Change{Percent: reference.Difference(ml, mr)}
	if len(l) < 2 || len(r) < 2 {
		c.Verdict = Unknown
		return c
	}
	c.NoisePercent = math.Hypot(leastNoise, 100*steps.Apart(l, r)/math.Abs(mr))
	if math.Abs(c.Percent) <= c.NoisePercent {
		c.Verdict = Within
		return c
	}
	name, _ := left[0]["pvar"].(string)
	kind, _ := numbers.KindOf(name)
	switch up := c.Percent > 0; {
	case kind.Better == 0 && up:
		c.Verdict = More
	case kind.Better == 0:
		c.Verdict = Less
	case up == (kind.Better > 0):
		c.Verdict = Better
	default:
		c.Verdict = Worse
	}
	return c
}
