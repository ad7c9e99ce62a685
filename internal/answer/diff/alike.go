package diff

import (
	"fmt"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

const (
	// fewOperators that take leastOfStep of a step on both sides say together how fast the
	// machine was; of fewer, one that was changed could be taken for all.
	fewOperators, leastOfStep = 5, 0.01
	// mostAlike is how much a machine's speed is believed to differ by itself between two
	// recordings, in percent: in pairs of the same job most operators differed by up to 8.5 alike
	// (docs/findings.md). All operators of a job may become faster by more than that, by more
	// threads or another machine.
	mostAlike = 10.0
)

// ofSteps says whether both sides are steps whose operators were timed on the host, where they are
// parts of a step.
func ofSteps(before, after *Side) bool {
	return !before.Device && !after.Device && before.What == "a step" && after.What == before.What
}

// alike is by how many percent most operators take longer on one side, and a sentence's part that
// says so. A change of the job's makes some of them longer or shorter; what makes all of them so
// is the machine more often than not. It is the median of what the operators changed by, each
// counted once: a change of one that has half of the step does not move it. 0 where it is not
// known, and where repeats say better what recordings differ by.
func alike(before, after *Side) (percent float64, text string) {
	if repeated(before, after) || !ofSteps(before, after) {
		return 0, ""
	}
	least := func(s *Side) float64 { return leastOfStep * steps.Mean(s.Periods) }
	var changes []float64
	for k, b := range before.PerStep {
		if a := after.PerStep[k]; k.Kind == "operator" && b > least(before) && a > least(after) {
			changes = append(changes, 100*(a-b)/b)
		}
	}
	if len(changes) < fewOperators {
		return 0, ""
	}
	slices.Sort(changes)
	n := len(changes)
	percent = (changes[(n-1)/2] + changes[n/2]) / 2
	machine := "slower"
	if percent < 0 {
		machine = "faster"
	}
	text = fmt.Sprintf("most operators take %s alike, as on a %s machine", longer(percent), machine)
	return min(max(percent, -mostAlike), mostAlike), text
}

// longer is a change of a time in words.
func longer(percent float64) string {
	if percent < 0 {
		return fmt.Sprintf("%.1f %% shorter", -percent)
	}
	return fmt.Sprintf("%.1f %% longer", percent)
}

// beside adds to a noise what the machine may have changed by itself: all of it where that is in the
// direction of the change, so that what is left of the change is held against the noise.
func beside(noise, change, machine float64) float64 {
	if change*machine > 0 {
		return noise + math.Abs(machine)
	}
	return noise
}
