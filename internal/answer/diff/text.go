package diff

import (
	"bufio"
	"fmt"
	"io"
	"math"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// manyTimes is from how many percent on a factor reads better.
const manyTimes = 1000

// WriteText writes the verdict, what differs between the sides, and the rows that
// moved most.
func (r *Result) WriteText(w io.Writer, top int) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n\nCan they be compared?\n", printable.Text(r.Sentence))
	for _, f := range r.Comparability {
		if f.Same {
			fmt.Fprintf(out, "  same    %-12s %s\n", f.What, printable.Text(f.Before))
		} else {
			fmt.Fprintf(out, "  DIFFERS %-12s %s | %s\n", f.What, orNothing(f.Before), orNothing(f.After))
		}
	}
	fmt.Fprintf(out, "  before: %s\n  after:  %s\n", r.Before, r.After)
	shown := 0
	for _, row := range r.Rows {
		if shown == top || row.Before == row.After {
			break
		}
		if shown == 0 {
			fmt.Fprintf(out, "\n    %10s %10s %9s %9s  %-9s what, in ms of %s\n", "before", "after", "change", "noise", "kind", r.What)
		}
		shown++
		change := "new"
		if row.Percent != nil {
			change = fmt.Sprintf("%+.1f %%", *row.Percent)
			if *row.Percent >= manyTimes {
				change = fmt.Sprintf("× %.4g", row.After/row.Before)
			}
		}
		mark := " "
		if row.Significant {
			mark = "*"
		}
		noise := "–"
		if row.Noise != nil {
			noise = fmt.Sprintf("±%.4f", *row.Noise)
		}
		fmt.Fprintf(out, "  %s %10.4f %10.4f %9s %9s  %-9s %s\n", mark, row.Before, row.After, change, noise, row.Kind,
			cut(printable.Text(row.Key), 90))
	}
	if shown > 0 {
		fmt.Fprintf(out, "\n  * more than a percent of %s, and more than what the row itself differs by at random (noise; where it has "+
			"none, %.1f %%)\n", r.What, r.NoisePercent)
	}
	r.Memory.write(out, top)
	return out.Flush()
}

func orNothing(s string) string {
	if s == "" {
		return "(not told)"
	}
	return printable.Text(s)
}

func cut(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	return string(runes[:width-1]) + "…"
}

// ExitCode says the verdict to scripts.
func (r *Result) ExitCode() int { return r.Verdict.ExitCode() }

// Percent reads 3% or 3.
func Percent(text string) (float64, error) {
	var v float64
	var rest string
	n, _ := fmt.Sscanf(text+" %", "%g%s", &v, &rest)
	if n < 1 || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) || rest != "%" {
		return 0, fmt.Errorf("%q is no share: give one such as 3%%", text)
	}
	return v, nil
}
