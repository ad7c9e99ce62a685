package numbers

import (
	"fmt"
	"regexp"
	"strconv"
)

// UsualLoss finds the loss in what most training scripts print: "loss: 2.31", "loss=2.31", "Loss 2.31".
const UsualLoss = `(?i)\bloss\b["']?\s*[:=]?\s*([-+]?[0-9]*\.?[0-9]+(?:e[-+]?[0-9]+)?)`

// mostOutput is how much of a job's output a pattern looks at, from the end.
const mostOutput = 16 << 20

// losses reads the loss from what the job printed: no probe sees it.
func (m *measuring) losses() error {
	pattern, printed := m.options.LossPattern, "what the job prints"
	if pattern == "" {
		pattern = UsualLoss
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("--loss: %w", err)
	}
	text := m.options.Output
	if len(text) > mostOutput {
		text = text[len(text)-mostOutput:]
	}
	var values []float64
	for _, found := range re.FindAllStringSubmatch(text, -1) {
		if v, err := strconv.ParseFloat(found[len(found)-1], 64); err == nil {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		why := "the job prints no loss that the usual pattern finds: give --loss"
		if m.options.LossPattern != "" {
			why = "nothing in the job's output matches the pattern of --loss"
		}
		m.add(missing(Loss, why))
		m.add(missing(LossChange, why))
		return nil
	}
	m.add(measured(Loss, values[len(values)-1], len(values), printed))
	if len(values) < 2 {
		m.add(missing(LossChange, "the job prints one loss only"))
		return nil
	}
	m.add(measured(LossChange, values[len(values)-1]-values[0], len(values), printed))
	return nil
}
