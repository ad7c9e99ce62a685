package joiner

import (
	"cmp"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// Hosts have clocks of their own. All ranks leave a collective in which each needs something of
// every other at nearly one time, and none leaves it before all have entered it: the former says
// how far two clocks are apart, the latter how wrong that can be.

// meeting names a collective on all hosts.
type meeting struct{ group, number int64 }

// moment is when the ranks of a recording were in a collective, by its clock: when the last of
// them entered, when the first left, and when they left in the middle.
type moment struct{ entered, left, middle int64 }

// Clock is what was found about the clock of a recording.
type Clock struct {
	Session   string
	Host      string
	Reference string // the recording on whose clock all times are
	// Ahead is how far the clock was ahead of the reference at its time At; Drift is how much that
	// grew in a nanosecond.
	Ahead, At int64
	Drift     float64
	// Error is how wrong Ahead can be: no rank left a collective before all had entered it.
	Error       int64
	Collectives int // that were compared
	Method      Method
}

// Method is how a clock was compared.
type Method string

// The methods. An unknown clock stays as it is.
const (
	Reference Method = "reference"
	Kernel    Method = "kernel"      // both recordings count by the clock of one kernel
	Met       Method = "collectives" // by when ranks left the same collectives
	Unknown   Method = "unknown"
)

// onReference is a time of the recording's by the reference's clock.
func (c *Clock) onReference(ns int64) int64 {
	return ns - c.Ahead - int64(math.Round(c.Drift*float64(ns-c.At)))
}

const (
	// leastMeetings is how many collectives two recordings must have in common.
	leastMeetings = 5
	// Of a drift there must be this many, over this long, and it is no clock's that is steeper.
	leastOfDrift  = 30
	longestSteady = 10_000_000_000
	mostDrift     = 2e-4
)

// pair is one collective of two recordings.
type pair struct {
	at        int64   // by the other's clock
	apart     float64 // the other left it so much later, by their clocks
	low, high float64 // what the difference of the clocks is at least and at most
}

// compare says how far one clock is ahead of another. Not ok: too few collectives of both.
// Contradicts: no difference of clocks makes these the same collectives.
func compare(reference, other map[meeting]moment) (c Clock, ok, contradicts bool) {
	var pairs []pair
	for m, o := range other {
		if r, both := reference[m]; both {
			pairs = append(pairs, pair{o.middle, float64(o.middle - r.middle), float64(o.entered - r.left), float64(o.left - r.entered)})
		}
	}
	if len(pairs) < leastMeetings {
		return c, false, false
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.at, b.at) })
	c = Clock{Method: Met, Collectives: len(pairs), At: pairs[len(pairs)/2].at, Drift: drift(pairs)}
	var apart []float64
	low, high := math.Inf(-1), math.Inf(1)
	for _, p := range pairs {
		grown := c.Drift * float64(p.at-c.At)
		apart = append(apart, p.apart-grown)
		low, high = max(low, p.low-grown), min(high, p.high-grown)
	}
	slices.Sort(apart)
	ahead, spread := steps.Median(apart), half(apart)
	// What ends are read early by, or a clock drifts by unseen, must not be taken for another run of the job.
	if contradicts = low-high > 1e6+mostDrift*float64(pairs[len(pairs)-1].at-pairs[0].at); contradicts {
		return c, true, true
	}
	wrong := spread
	if low <= high {
		ahead = min(max(ahead, low), high)
		wrong = max(ahead-low, high-ahead)
	} else {
		wrong = max(spread, low-high)
	}
	c.Ahead, c.Error = int64(math.Round(ahead)), int64(math.Ceil(wrong))+1
	return c, true, false
}

// half is half of the range that nine in ten of the values are in.
func half(sorted []float64) float64 {
	last := float64(len(sorted) - 1)
	return (sorted[int(0.95*last+0.5)] - sorted[int(0.05*last)]) / 2
}

// drift is how fast two clocks go apart; 0 unless that is more than the collectives' ends vary by.
func drift(pairs []pair) float64 {
	n := len(pairs) / 3
	first, last := pairs[:n], pairs[len(pairs)-n:]
	if len(pairs) < leastOfDrift || last[n/2].at-first[n/2].at < longestSteady {
		return 0
	}
	of := func(pairs []pair) (middle, spread float64) {
		var apart []float64
		for _, p := range pairs {
			apart = append(apart, p.apart)
		}
		slices.Sort(apart)
		return steps.Median(apart), half(apart)
	}
	a, varyA := of(first)
	b, varyB := of(last)
	slope := (b - a) / float64(last[n/2].at-first[n/2].at)
	if math.Abs(b-a) < 2*max(varyA, varyB) || math.Abs(slope) > mostDrift {
		return 0
	}
	return slope
}

// after is a clock that was compared with one that was itself compared with the reference.
func (c Clock) after(r Clock) Clock {
	at := c.At
	ahead := c.Ahead + r.Ahead + int64(math.Round(r.Drift*float64(at-c.Ahead-r.At)))
	c.Ahead, c.Drift, c.Error, c.Reference = ahead, c.Drift+r.Drift, c.Error+r.Error, r.Reference
	return c
}
