package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// enoughRepeats are so many recordings of each side that their spread says what two
// recordings differ by without a reason. That of fewRepeats says so roughly: it counts
// where it is the larger.
const enoughRepeats, fewRepeats = 3, 2

// Join makes one side of several recordings of the same thing: the first says what
// it is, times are means over all. They have to be of the same.
func Join(first *Side, others ...*Side) *Side {
	if len(others) == 0 {
		return first
	}
	joined := *first
	joined.Repeats = append([]*Side{first}, others...)
	joined.Waited = 0
	joined.Periods, joined.PerStep, joined.Windows, joined.held = nil, map[Key]float64{}, map[Key][]float64{}, held{bytes: map[Key]float64{}}
	for _, s := range joined.Repeats {
		joined.Periods = append(joined.Periods, steps.Mean(s.Periods))
		joined.Waited += s.Waited / float64(len(joined.Repeats))
		for k, v := range s.PerStep {
			joined.PerStep[k] += v / float64(len(joined.Repeats))
			joined.Windows[k] = nil
		}
		joined.held = joined.held.join(s.held, len(joined.Repeats))
		if s.What != first.What {
			joined.What = first.What + " and " + s.What
		}
	}
	if joined.What == workOfASecond {
		joined.joinRates()
	}
	for k := range joined.Windows {
		for _, s := range joined.Repeats {
			joined.Windows[k] = append(joined.Windows[k], s.windowsOf(k)...)
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

// enoughPairs are so many pairs of recordings that their differences tell the noise
// better than the spread of each side does, though there are half as many.
const enoughPairs = 8

// interleaved says whether the recordings of two sides were made by turns, so that the
// first of one side belongs to the first of the other: the first two in time are of two
// sides, the next two likewise, and so on. Their order is that of time then.
func interleaved(before, after *Side) bool {
	if len(before.Repeats) != len(after.Repeats) || len(before.Repeats) < enoughPairs {
		return false
	}
	type one struct {
		begin int64
		side  int
		n     int
	}
	var all []one
	for side, s := range []*Side{before, after} {
		for n, r := range s.Repeats {
			if r.BeginNS == 0 {
				return false
			}
			all = append(all, one{r.BeginNS, side, n})
		}
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Compare(a.begin, b.begin) })
	for i := 0; i < len(all); i += 2 {
		// A pair stands at the same place of both lists.
		if all[i].side == all[i+1].side || all[i].n != all[i+1].n {
			return false
		}
	}
	return true
}

// apart is by how much the means of two sides of repeats differ by chance.
func apart(before, after *Side) func(b, a []float64) float64 {
	if interleaved(before, after) {
		return steps.Paired
	}
	return steps.Apart
}

// busy is by how much a busy machine alone may have made the steps of two sides differ,
// in percent, and what says so. Of single recordings it is unknown what the time without
// a CPU was in each, or how much slower caches were that others used, too; of
// repeats the spread has that in it, and what is left is that all of one side ran on a
// busier machine.
func busy(before, after *Side) (percent float64, from string) {
	if repeated(before, after) {
		return math.Abs(after.Waited - before.Waited), fmt.Sprintf("the training thread waited for a CPU for %.0f %% of one side's steps and "+
			"%.0f %% of the other's", before.Waited, after.Waited)
	}
	return before.Waited + after.Waited, fmt.Sprintf("the machine was busy: the training thread waited for a CPU for %.0f %% and %.0f %% "+
		"of the steps", before.Waited, after.Waited)
}
