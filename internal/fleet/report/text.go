package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

// listed is how many rows a table of a text has; the rest is counted.
const listed = 12

var shades = []rune("·░▒▓█")

// WriteText writes the answer for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n\n", printable.Text(r.Verdict))
	fmt.Fprintf(out, "job %s, %s, %s to %s, compared by %s\n", printable.Short(r.Job), plural(len(r.Workers), "worker"),
		clock(r.BeginNS), clock(r.EndNS), strings.ReplaceAll(r.Method, "_", " "))
	if r.Transfer != nil {
		fmt.Fprintf(out, "%s travelled instead of %s: %.0f times less\n",
			amount.Bytes(r.Transfer.PatternBytes), amount.Bytes(r.Transfer.EventBytes), r.Transfer.Factor)
	}
	if o := r.Own; o != nil {
		state := "no slower"
		if o.Slower {
			state = fmt.Sprintf("%.0f %% slower", 100*(o.NowMS/o.NormalMS-1))
		}
		fmt.Fprintf(out, "than in its own normal time (%s of the day before, %.1f ms a step) it is %s\n", plural(o.Minutes, "minute"),
			o.NormalMS, state)
	}
	for _, c := range r.Clocks {
		fmt.Fprintf(out, "the clock of %s is %.3f ms ahead of that of %s, ± %.3f ms by %s\n", printable.Short(c.Host), c.OffsetMS,
			printable.Short(r.steps[0][0].Host), c.ErrorMS, plural(c.Collectives, "collective"))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(out, "note: %s\n", printable.Text(note))
	}
	fmt.Fprintln(out)
	r.writeWorkers(out)
	if h, ok := r.stepHeat(); ok {
		h.write(out)
	}
	r.writeFindings(out)
	if h, ok := r.functionHeat(); ok {
		h.write(out)
	}
	return out.Flush()
}

func (r *Report) writeWorkers(out io.Writer) {
	slow := map[int]float64{}
	header := []any{"worker", "host", "pid", "steps", "ms a step", "waiting", "loading", "observed"}
	if r.WhatIf != nil {
		header = append(header, "S_w")
		for _, w := range r.WhatIf.Workers {
			slow[w.Rank] = w.S
		}
	}
	t := terminal.PlainTable(header...)
	terminal.RightAlign(t, 3, len(header))
	drawn := r.drawn() // with those that are accused
	for _, w := range r.Workers {
		if !slices.Contains(drawn, w.Worker) {
			continue
		}
		row := table.Row{w.Worker.String(), printable.Short(w.Host), w.PID, w.Steps, fmt.Sprintf("%.1f", w.MeanMS), fmt.Sprintf("%.1f", w.WaitMS),
			orNone(w.LoadMS), fmt.Sprintf("%.0f s", w.Observed)}
		if r.WhatIf != nil {
			row = append(row, fmt.Sprintf("%.3f", slow[int(w.Rank)]))
		}
		t.AppendRow(row)
	}
	terminal.Render(out, t)
	if left := len(r.Workers) - drawnWorkers; left > 0 {
		fmt.Fprintf(out, "%s more are not shown; --json has all\n", plural(left, "worker"))
	}
	if a := r.WhatIf; a != nil {
		fmt.Fprintf(out, "S = %.3f: a step takes %.1f ms, with all workers alike %.1f ms", a.S, 1e3*a.ReplayedS, 1e3*a.IdealS)
		if a.MW != nil {
			fmt.Fprintf(out, "; the slowest explain %.0f %% of that (M_W)", 100**a.MW)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
}

// orNone is a time in ms, and a dash for one that is not seen.
func orNone(ms *float64) string {
	if ms == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f", *ms)
}

func (r *Report) writeFindings(out io.Writer) {
	if len(r.Findings) == 0 {
		fmt.Fprintf(out, "no function stands out\n\n")
		return
	}
	t := terminal.PlainTable("score", "kind", "share", "peers", "cpu", "waits in", "finding")
	terminal.RightAlign(t, 3, 5)
	for i, f := range r.Findings {
		if i == listed {
			break
		}
		kind := f.Kind
		if f.Cause.Symptom {
			kind = "symptom"
		}
		t.AppendRow(table.Row{fmt.Sprintf("%.3f", f.Score), kind, share(f.Beta), share(f.PeersBeta), share(f.Mu), f.Wait, f.Sentence})
	}
	terminal.Render(out, t)
	for i, f := range r.Findings {
		if said := f.Said(); said != "" && i < listed {
			fmt.Fprintf(out, "finding %d was %s\n", i+1, printable.Text(said))
		}
	}
	if left := len(r.Findings) - listed; left > 0 {
		fmt.Fprintf(out, "%s more; --json has all\n", plural(left, "finding"))
	}
	fmt.Fprintln(out)
}

// write draws the picture with five shades.
func (h heat) write(out io.Writer) {
	fmt.Fprintf(out, "%s (· is nothing, █ is %s)\n", h.title, h.unit(h.most))
	width := 2
	if len(h.columns) == 0 {
		width = 1
	}
	for i, w := range h.workers {
		var line strings.Builder
		for _, v := range h.values[i] {
			shade := ' '
			if !math.IsNaN(v) {
				shade = shades[max(0, min(int(math.Ceil(v/max(h.most, 1e-9)*float64(len(shades)-1))), len(shades)-1))]
			}
			line.WriteString(strings.Repeat(string(shade), width))
			if width > 1 {
				line.WriteByte(' ')
			}
		}
		fmt.Fprintf(out, "  %-12s %s\n", w, strings.TrimRight(line.String(), " "))
	}
	for i, name := range h.columns {
		fmt.Fprintf(out, "  column %d: %s\n", i+1, printable.Text(name))
	}
	fmt.Fprintln(out)
}

func (h heat) unit(v float64) string {
	if len(h.columns) > 0 {
		return share(v)
	}
	return fmt.Sprintf("%.1f ms", v)
}

func clock(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05Z") }

func share(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
