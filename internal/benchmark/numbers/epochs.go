package numbers

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// drawOfNothing are the anchors of a call of the loader's next that no step follows: the loader was at its end.
const drawOfNothing = "L"

// pass is one pass over the data loader.
type pass struct {
	steps   int
	begin   int64
	seconds float64
	follows bool // a call that found nothing left was seen before it: its first step is the pass's
	loose   bool // a step of it has no draw: the loader's calls were not seen yet
}

// epochs are the lengths, in seconds, of the passes over the data loader that were seen from their first step to the
// call that found nothing left. An evaluation after it, and the start of the next pass's workers, are in none.
func epochs(all []timeline.Step) (seconds []float64) {
	var passes []pass
	current := pass{}
	for i, s := range all {
		switch {
		case s.Kind == steps.Train || s.Kind == steps.Warmup:
			if current.steps == 0 {
				current.begin = s.Begin
				current.follows = current.follows || i == 0
			}
			current.steps++
			current.loose = current.loose || !strings.Contains(s.Anchors, "L")
		case s.Kind == steps.Other && s.Anchors == drawOfNothing && current.steps > 0:
			current.seconds = float64(s.End-current.begin) / 1e9
			passes = append(passes, current)
			current = pass{follows: true}
		}
	}
	// The first steps of a job may have gone by before its probes were in: its first pass counts if it is as long as others.
	for i, p := range passes {
		if i == 0 && len(passes) > 1 && p.steps != passes[1].steps {
			continue
		}
		if p.follows && !p.loose {
			seconds = append(seconds, p.seconds)
		}
	}
	return seconds
}
