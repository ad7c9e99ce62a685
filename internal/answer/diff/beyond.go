package diff

import (
	"fmt"
	"math"

	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
)

// Beyond is what those operators make of a step together that differ by more than their own
// noise. Single operators differ far less by chance than the whole step does.
type Beyond struct {
	Percent      float64  `json:"change_percent"` // of the step before
	NoisePercent float64  `json:"noise_percent"`
	Operators    []string `json:"operators"` // what moved most first

	first Row
}

// beyondNoise is nil where no operator of the host differs by more than its noise, and where
// operators are no parts of a step.
func (r *Result) beyondNoise(before, after *Side) *Beyond {
	if !ofSteps(before, after) || r.Step.Before <= 0 {
		return nil
	}
	var b *Beyond
	change, squares := 0.0, 0.0
	for _, row := range r.Rows {
		if row.Kind != "operator" || !row.Significant || row.Noise == nil {
			continue
		}
		if b == nil {
			b = &Beyond{first: row}
		}
		change, squares = change+row.After-row.Before, squares+*row.Noise**row.Noise
		b.Operators = append(b.Operators, row.Key)
	}
	if b != nil {
		b.Percent, b.NoisePercent = 100*change/r.Step.Before, 100*math.Sqrt(squares)/r.Step.Before
	}
	return b
}

// tell is the verdict where the step as a whole is in its noise, and its operators together are
// not: at least what --fail-on asks for, and the rest of the step does not contradict them.
func (b *Beyond) tell(r *Result) verdict.Verdict {
	least := math.Abs(b.Percent) - b.NoisePercent
	if least < r.FailOnPercent || math.Abs(r.Step.Percent-b.Percent) > r.NoisePercent {
		return verdict.Inconclusive
	}
	if b.Percent > 0 {
		return verdict.Regression
	}
	return verdict.Improvement
}

// sentence says what the operators are known to do.
func (b *Beyond) sentence() string {
	more := "more"
	if b.Percent < 0 {
		more = "less"
	}
	share := fmt.Sprintf("%.1f %% of the step %s (± %.1f)", math.Abs(b.Percent), more, b.NoisePercent)
	instead := fmt.Sprintf("%.3f ms instead of %.3f ms", b.first.After, b.first.Before)
	if n := len(b.Operators); n > 1 {
		return fmt.Sprintf("%d operators take %s, first of all %s (%s)", n, share, cut(b.first.Key, 90), instead)
	}
	return fmt.Sprintf("operator %s takes %s, %s", cut(b.first.Key, 90), instead, share)
}

// decided is the sentence where the operators gave the verdict.
func (b *Beyond) decided(r *Result) string {
	return fmt.Sprintf("%s: %s; the step itself, %s, is within its noise, %.1f %%", r.title(), b.sentence(), longer(r.Step.Percent),
		r.NoisePercent)
}
