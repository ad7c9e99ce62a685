package numbers

import (
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// drawOfNothing are the anchors of a call of the loader's next that no step follows: the loader was at its end.
const drawOfNothing = "L"

// epochs are the lengths, in seconds, of the passes over the data loader that were seen from their first step to the
// call that found nothing left. An evaluation after it, and the start of the next pass's workers, are in none.
func epochs(all []timeline.Step) (seconds []float64) {
	open := int64(-1)
	for _, s := range all {
		switch {
		case s.Kind == steps.Train || s.Kind == steps.Warmup:
			if open < 0 {
				open = s.Begin
			}
		case s.Kind == steps.Other && s.Anchors == drawOfNothing && open >= 0:
			seconds = append(seconds, float64(s.End-open)/1e9)
			open = -1
		}
	}
	return seconds
}
