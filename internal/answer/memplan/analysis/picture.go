package analysis

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/draw"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
)

// Picture is the arena's live bytes over time.
func (a *Arena) Picture() draw.Curve {
	seconds := func(ns int64) float64 { return float64(ns-a.BeginNS) / 1e9 }
	c := draw.Curve{Title: "live bytes, " + a.Name(), End: seconds(a.EndNS), Peak: seconds(a.PeakNS)}
	for _, p := range a.Curve {
		c.Points = append(c.Points, draw.Point{Seconds: seconds(p.NS), Min: p.Min, Max: p.Max})
	}
	for _, ns := range a.steps.CutsNS {
		c.Steps = append(c.Steps, seconds(ns))
	}
	return c
}

// Name says which arena it is.
func (a *Arena) Name() string {
	name := fmt.Sprintf("pid %d, %s memory", a.PID, a.Space)
	if a.Device != nil {
		name = fmt.Sprintf("pid %d, %s %d", a.PID, a.Space, *a.Device)
	}
	if a.Level != "allocator" {
		name += ", as the driver gave it out"
	}
	return name
}

// pageRows is how many rows a table of the page has: it opens at once, however many
// events it is of.
const pageRows = 50

func more(b *strings.Builder, rows int) {
	if rows > pageRows {
		fmt.Fprintf(b, "<p>… and %d more</p>\n", rows-pageRows)
	}
}

// WriteHTML writes one page that needs nothing else: pictures and tables.
func (m *Memory) WriteHTML(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`<!doctype html><html lang="en"><meta charset="utf-8"><title>memory</title><style>
body{font:14px sans-serif;margin:2em;max-width:70em}table{border-collapse:collapse;margin:1em 0}
td,th{padding:2px 10px;text-align:left;border-bottom:1px solid #ddd}td.n,th.n{text-align:right}svg{max-width:100%}</style>
<h1>Memory of ` + html.EscapeString(m.Dataset) + "</h1>\n")
	for _, warning := range m.Warnings {
		b.WriteString("<p><b>" + html.EscapeString(warning) + "</b></p>\n")
	}
	for _, a := range m.Arenas {
		fmt.Fprintf(&b, "<h2>%s</h2><p>peak %d bytes (%s)</p>\n", html.EscapeString(a.Name()), a.PeakBytes, amount.Bytes(a.PeakBytes))
		if err := a.Picture().WriteSVG(&b); err != nil {
			return err
		}
		for _, t := range []struct {
			title  string
			shares []holders.Share
		}{{"At the peak, by line", a.Holders.ByLine}, {"by module", a.Holders.ByModule}, {"by operator", a.Holders.ByOperator},
			{"by phase (a guess)", a.Holders.ByPhase}} {
			fmt.Fprintf(&b, `<h3>%s</h3><table><tr><th class="n">bytes</th><th class="n">share</th><th class="n">blocks</th><th></th></tr>`, t.title)
			for _, s := range t.shares[:min(len(t.shares), pageRows)] {
				fmt.Fprintf(&b, `<tr><td class="n">%s</td><td class="n">%.1f %%</td><td class="n">%d</td><td>%s</td></tr>`+"\n",
					amount.Bytes(s.Bytes), 100*s.Share, s.Blocks, html.EscapeString(s.Key))
			}
			b.WriteString("</table>\n")
			more(&b, len(t.shares))
		}
		for _, g := range a.Growth[:min(len(a.Growth), pageRows)] {
			fmt.Fprintf(&b, "<p>%s: %s, %s a step (%s to %s), %s confidence</p>\n", g.Kind, html.EscapeString(g.Line),
				amount.Bytes(int64(g.BytesPerStep)), amount.Bytes(int64(g.BytesPerStepLo)), amount.Bytes(int64(g.BytesPerStepHi)), g.Confidence)
		}
		more(&b, len(a.Growth))
	}
	b.WriteString("</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}
