package diff

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// all are the recordings of a side.
func (s *Side) all() []*Side {
	if len(s.Repeats) > 0 {
		return s.Repeats
	}
	return []*Side{s}
}

// between is the side by its steps between slices: rows that only slices have are scaled to
// them, because the probes that made those steps longer made the rows longer.
func (s *Side) between() *Side {
	if len(s.Repeats) > 0 {
		var all []*Side
		for _, r := range s.Repeats {
			all = append(all, r.between())
		}
		return Join(all[0], all[1:]...)
	}
	by := *s
	by.Periods = s.Between
	if s.factor > 0 {
		by.PerStep, by.Windows = maps.Clone(s.PerStep), maps.Clone(s.Windows)
		for k := range by.PerStep {
			// Samples are taken in slices and between them alike.
			if k.Kind != "phase" && (k.Kind != "operator" || s.Device) {
				continue
			}
			by.PerStep[k] *= s.factor
			scaled := make([]float64, len(by.Windows[k]))
			for i, v := range by.Windows[k] {
				scaled[i] = s.factor * v
			}
			if len(scaled) > 0 {
				by.Windows[k] = scaled
			}
		}
	}
	return &by
}

// onEqualTerms are the sides by those of their steps that can be compared. Probes make a
// step longer, and how many of the steps were in slices is chance: where every recording
// has enough steps between them, these alone are compared. what says so, "" where
// nothing was recorded in slices.
func onEqualTerms(before, after *Side) (b, a *Side, what Fact) {
	every := slices.Concat(before.all(), after.all())
	if before.What != after.What || !slices.ContainsFunc(every, func(s *Side) bool { return s.Sliced }) {
		return before, after, Fact{}
	}
	if slices.ContainsFunc(every, func(s *Side) bool { return len(s.Between) < steps.EnoughForNoise }) {
		text := func(s *Side) string {
			slower, all := 0, 0
			for _, r := range s.all() {
				all += len(r.Periods)
				if r.Sliced {
					slower += len(r.Periods) - len(r.Between)
				}
			}
			return fmt.Sprintf("%d, probes made %d of them longer", all, slower)
		}
		return before, after, Fact{"steps", text(before), text(after), false}
	}
	text := func(s *Side) string {
		n := 0
		for _, r := range s.all() {
			n += len(r.Between)
		}
		return fmt.Sprintf("%d, those between slices: no probes of detail made them longer", n)
	}
	what = Fact{"steps", text(before), text(after), true}
	return before.between(), after.between(), what
}
