package timeline

import (
	"cmp"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// Where a job's steps are so short that even its backward passes are recorded in slices,
// nothing is known of the steps between two slices: the last step of the one has no
// period, and what seems to reach from the one to the next is no step.

// cut leaves out such steps, and takes such periods away.
func (t *threadAnchors) cut(found []steps.Step) []steps.Step {
	breaks := t.breaks()
	if len(breaks) == 0 {
		return found
	}
	between := func(from, to int64) bool {
		i, _ := slices.BinarySearch(breaks, from+1)
		return i < len(breaks) && breaks[i] <= to
	}
	found = slices.DeleteFunc(found, func(s steps.Step) bool { return between(s.Begin, s.End) })
	numbers := map[steps.Kind]int{}
	for i := range found {
		s := &found[i]
		if s.Period >= 0 && between(s.Begin, s.Begin+s.Period) {
			s.Period = -1
		}
		if s.Kind == steps.Warmup { // that goes by the periods
			s.Kind = steps.Train
		}
		s.Number = numbers[s.Kind]
		numbers[s.Kind]++
	}
	steps.Settle(found)
	return found
}

// breaks are the times at which a slice of what tells steps ends, or one begins behind a
// time of which all was recorded. Where backward passes are recorded all the time, they
// are what tells steps.
func (t *threadAnchors) breaks() (at []int64) {
	strong := t.strong()
	last := map[steps.Class]anchorSlice{}
	for i, a := range t.anchors {
		if strong && a.Class != steps.Backward {
			continue
		}
		now := t.slices[i]
		if before, seen := last[a.Class]; seen && before != now {
			if before.end > 0 {
				at = append(at, before.end)
			} else {
				at = append(at, now.begin)
			}
		}
		last[a.Class] = now
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// strong reports whether backward passes tell the steps, whatever else there is.
func (t *threadAnchors) strong() bool {
	return slices.ContainsFunc(t.anchors, func(a steps.Anchor) bool { return a.Class == steps.Backward })
}

// weight is for how many steps a step stands: as many as the one of its anchors that
// stands for the fewest, of those that tell steps. A loader's call that was recorded in a
// slice stands for no step beside backward passes that are all there.
func (t *threadAnchors) weight(s steps.Step) float64 {
	strong, least := t.strong(), 0.0
	from, _ := slices.BinarySearchFunc(t.anchors, s.Begin, func(a steps.Anchor, begin int64) int { return cmp.Compare(a.Begin, begin) })
	for i, a := range t.anchors[from:] {
		if a.Begin > s.Begin && a.Begin >= s.End {
			break
		}
		if strong && a.Class != steps.Backward {
			continue
		}
		if w := t.weights[from+i]; least == 0 || w < least {
			least = w
		}
	}
	return max(1, least)
}
