package diff

import (
	"fmt"
	"math"

	"github.com/ebpfprof/ebpfprof/internal/steps"
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
	joined.Periods, joined.PerStep, joined.held = nil, map[Key]float64{}, held{bytes: map[Key]float64{}}
	for _, s := range joined.Repeats {
		joined.Periods = append(joined.Periods, steps.Mean(s.Periods))
		joined.Waited += s.Waited / float64(len(joined.Repeats))
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

// busy is by how much a busy machine alone may have made the steps of two sides differ,
// in percent, and what says so. Of single recordings nobody knows what the time without
// a CPU was in each, or how much slower caches were that somebody else used, too; of
// repeats the spread has that in it, and what is left is that all of one side ran on a
// busier machine.
func busy(before, after *Side) (percent float64, from string) {
	if repeated(before, after) {
		return math.Abs(after.Waited - before.Waited), fmt.Sprintf("the training thread waited for a CPU for %.0f %% of one side's steps and %.0f %% of the other's", before.Waited, after.Waited)
	}
	return before.Waited + after.Waited, fmt.Sprintf("the machine was busy: the training thread waited for a CPU for %.0f %% and %.0f %% of the steps", before.Waited, after.Waited)
}
