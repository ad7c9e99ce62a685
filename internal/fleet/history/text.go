package history

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

// ExitCode says the verdict to scripts.
func (r *Result) ExitCode() int { return r.Verdict.ExitCode() }

func clock(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04Z") }

func (s Stretch) length() time.Duration { return time.Duration(s.EndNS - s.BeginNS) }

func (r *Result) sentence() string {
	direction := "longer"
	if r.ChangePercent < 0 {
		direction = "shorter"
	}
	than := fmt.Sprintf("in the %v from %s on", r.Then.length(), clock(r.Then.BeginNS))
	if r.Method == "best" {
		than = fmt.Sprintf("in its best %v, from %s on", r.Then.length(), clock(r.Then.BeginNS))
	}
	text := fmt.Sprintf("%s: a step takes %.1f ms instead of %.1f ms %s, %.1f %% %s", strings.ToUpper(string(r.Verdict[:1]))+
		string(r.Verdict[1:]),
		r.Now.MeanMS, r.Then.MeanMS, than, math.Abs(r.ChangePercent), direction)
	switch r.Verdict {
	case verdict.Inconclusive:
		if r.NoisePercent == nil {
			return text + "; one minute is too few to tell that from noise."
		}
		return fmt.Sprintf("%s; minutes differ by so much that up to %.1f %% are noise.", text, *r.NoisePercent)
	case verdict.Neutral:
		return fmt.Sprintf("%s, which is less than --fail-on %.1f %%.", text, r.FailOnPercent)
	}
	for _, f := range r.Functions {
		if f.Significant && (f.NowMS > f.ThenMS) == (r.ChangePercent > 0) && f.Class != "collective" {
			text += fmt.Sprintf("; most of it in %s (%+.1f ms)", f.label(), f.NowMS-f.ThenMS)
			break
		}
	}
	if w := r.grownAlone(); w != "" {
		text += ", on " + w
	}
	return text + r.kernelThatChanged() + "."
}

// grownAlone is the worker whose own time alone grew; "" where it is more of them or none.
func (r *Result) grownAlone() (name string) {
	for _, w := range r.Workers {
		if w.Significant && w.growth() > 0 {
			if name != "" || len(r.Workers) < 2 {
				return ""
			}
			name = w.name()
		}
	}
	return name
}

func (w Worker) name() string {
	if w.Rank != nil {
		return fmt.Sprintf("rank %d", *w.Rank)
	}
	return fmt.Sprintf("process %d of %s", w.PID, w.Host)
}

func (f Function) label() string {
	if f.File == "" {
		return f.Name
	}
	return fmt.Sprintf("%s (%s:%d)", strings.TrimSuffix(f.Name, " ("+filepath.Base(f.File)+")"), filepath.Base(f.File), f.Line)
}

// WriteText writes the sentence, the picture of the steps, and what changed.
func (r *Result) WriteText(w io.Writer, top int) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n\njob %s: then %s, now %s, %v each\n", printable.Text(r.Sentence), printable.Short(r.Job), clock(r.Then.BeginNS),
		clock(r.Now.BeginNS), r.Now.length())
	for _, note := range r.Notes {
		fmt.Fprintf(out, "note: %s\n", printable.Text(note))
	}
	r.writePicture(out)
	t := terminal.PlainTable("", "worker", "host", "own ms then", "now", "change")
	terminal.RightAlign(t, 4, 6)
	for i, worker := range r.Workers {
		if i == top {
			fmt.Fprintf(out, "of %d workers the %d that grew most:\n", len(r.Workers), top)
			break
		}
		t.AppendRow(table.Row{mark(worker.Significant), worker.name(), printable.Short(worker.Host), ms(worker.ThenMS), ms(worker.NowMS),
			change(worker.ThenMS, worker.NowMS)})
	}
	terminal.Render(out, t)
	fmt.Fprintln(out)
	if len(r.Functions) > 0 {
		t := terminal.PlainTable("", "class", "ms then", "now", "change", "function")
		terminal.RightAlign(t, 3, 5)
		for i, f := range r.Functions {
			if i == top {
				break
			}
			t.AppendRow(table.Row{mark(f.Significant), f.Class, ms(&f.ThenMS), ms(&f.NowMS), change(&f.ThenMS, &f.NowMS), printable.Text(f.label())})
		}
		terminal.Render(out, t)
		if left := len(r.Functions) - top; left > 0 {
			fmt.Fprintf(out, "%d more functions; --json has all\n", left)
		}
		fmt.Fprintln(out)
	}
	r.writeKernels(out, top)
	fmt.Fprintln(out, "* more than a percent of a step, and more than minutes differ by at random")
	return out.Flush()
}

// writeKernels writes what devices ran, between what it took at the least and at the most.
func (r *Result) writeKernels(out io.Writer, top int) {
	if len(r.Kernels) == 0 {
		return
	}
	t := terminal.PlainTable("", "on devices", "ms then", "now", "change", "kernel")
	terminal.RightAlign(t, 3, 5)
	for i, k := range r.Kernels {
		if i == top {
			break
		}
		certain := "–"
		if k.growth() != 0 {
			certain = fmt.Sprintf("%+.2f", k.growth())
		}
		t.AppendRow(table.Row{mark(k.Significant), k.Class, between(k.ThenLoMS, k.ThenHiMS), between(k.NowLoMS, k.NowHiMS), certain,
			printable.Text(k.Name)})
	}
	terminal.Render(out, t)
	if left := len(r.Kernels) - top; left > 0 {
		fmt.Fprintf(out, "%d more kernels; --json has all\n", left)
	}
	fmt.Fprint(out, "the change of a kernel is the least that it can be: none where the bounds meet\n\n")
}

// between are two bounds, or the one that both are.
func between(least, most float64) string {
	if lo, hi := fmt.Sprintf("%.2f", least), fmt.Sprintf("%.2f", most); lo != hi {
		return lo + " – " + hi
	}
	return fmt.Sprintf("%.2f", least)
}

func mark(significant bool) string {
	if significant {
		return "*"
	}
	return ""
}

func ms(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", *v)
}

func change(then, now *float64) string {
	if then == nil || now == nil {
		return "–"
	}
	return fmt.Sprintf("%+.2f", *now-*then)
}

// columns of the picture.
const columns = 72

var levels = []rune("▁▂▃▄▅▆▇█")

// writePicture draws the mean step over all that was read: one column is so many
// minutes, a dot one without steps; below it the two that are compared.
func (r *Result) writePicture(out io.Writer) {
	if len(r.Minutes) < 2 {
		return
	}
	first, last := r.Minutes[0].BeginNS, r.Minutes[len(r.Minutes)-1].BeginNS
	each := max((last-first)/minute/columns+1, 1) * minute
	n := int((last-first)/each) + 1
	sums, counts := make([]float64, n), make([]int64, n)
	for _, m := range r.Minutes {
		i := int((m.BeginNS - first) / each)
		sums[i], counts[i] = sums[i]+m.MeanMS*float64(m.Steps), counts[i]+m.Steps
	}
	lowest, highest := math.Inf(1), 0.0
	for i := range sums {
		if counts[i] > 0 {
			sums[i] /= float64(counts[i])
			lowest, highest = min(lowest, sums[i]), max(highest, sums[i])
		}
	}
	steps, marks := make([]rune, n), make([]rune, n)
	for i := range sums {
		steps[i], marks[i] = '·', ' '
		if counts[i] > 0 {
			steps[i] = levels[min(int(sums[i]/highest*float64(len(levels))), len(levels)-1)]
		}
		from, to := first+int64(i)*each, first+int64(i+1)*each
		switch {
		case from < r.Then.EndNS && to > r.Then.BeginNS:
			marks[i] = 't'
		case from < r.Now.EndNS && to > r.Now.BeginNS:
			marks[i] = 'n'
		}
	}
	fmt.Fprintf(out, "\nms a step, %s to %s, %d min a column (%.1f to %.1f ms, from 0; t then, n now)\n  %s\n  %s\n\n", clock(first),
		clock(last), each/minute, lowest, highest,
		string(steps), strings.TrimRight(string(marks), " "))
}
