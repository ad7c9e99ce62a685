package figure

import (
	"fmt"
	"strings"
	"time"
)

type Page struct{ strings.Builder }

func (p *Page) Line(format string, values ...any) {
	fmt.Fprintf(p, format+"\n", values...)
}

func (p *Page) Table(header ...string) {
	p.Row(header...)
	rule := make([]string, len(header))
	for i := range rule {
		rule[i] = "---"
	}
	p.Row(rule...)
}

func (p *Page) Row(cells ...string) { p.Line("| %s |", strings.Join(cells, " | ")) }

// Verdict says whether a target holds.
func Verdict(holds bool) string {
	if holds {
		return "holds"
	}
	return "**missed**"
}

// tooNoisy is the noise floor above which a budget of 1 % cannot be judged.
const tooNoisy = 0.03

// WithinNoise is verdict where the machine is quiet enough to tell.
func WithinNoise(holds bool, floor float64) string {
	if floor > tooNoisy {
		return "too noisy to tell"
	}
	return Verdict(holds)
}

func Milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}

func Megabytes(n int) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
