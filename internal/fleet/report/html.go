package report

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// page fetches nothing: one file that can be sent around.
var page = template.Must(template.New("fleet").Funcs(template.FuncMap{
	"plain": printable.Text, "short": printable.Short, "share": share, "ms": func(v float64) string { return fmt.Sprintf("%.1f", v) },
	"clock": clock, "orNone": orNone,
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{short .Job}}: who is slow</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; color: #222; background: #fff }
h1 { font-size: 1.3em } h2 { font-size: 1.1em; margin-top: 2em }
table { border-collapse: collapse; font-size: 14px } th, td { text-align: left; padding: .2em .8em .2em 0; vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } tr.symptom { color: #777 }
svg { display: block; max-width: 100% } svg text { font: 12px system-ui, sans-serif; fill: #333 }
code { font-size: 12px; color: #555 }
</style></head><body>
<h1>{{plain .Verdict}}</h1>
<p>job {{short .Job}}, {{len .Workers}} workers, {{clock .BeginNS}} to {{clock .EndNS}}</p>
{{range .Notes}}<p>{{plain .}}</p>{{end}}
{{with .Steps}}<h2>Own time of each step (without waits for peers)</h2>{{$.LeftOut}}{{.}}{{end}}
<h2>Findings</h2>
{{if not .Findings}}<p>No function stands out.</p>{{end}}
<table>{{range .Findings}}<tr{{if .Cause.Symptom}} class="symptom"{{end}}><td class="n">{{share .Beta}}<td>{{plain .Sentence}}{{with .Said}}<br><em>{{plain .}}</em>{{end}}<br><code>{{plain .EvidenceSQL}}</code></tr>
{{end}}</table>
<h2>Workers</h2>
<table><tr><th>worker<th>host<th class="n">pid<th class="n">steps<th class="n">ms a step<th class="n">waiting<th class="n">loading</tr>
{{range .Workers}}<tr><td>{{plain .Worker.String}}<td>{{short .Host}}<td class="n">{{.PID}}<td class="n">{{.Steps}}<td class="n">{{ms .MeanMS}}<td class="n">{{ms .WaitMS}}<td class="n">{{orNone .LoadMS}}</tr>
{{end}}</table>
{{with .WhatIf}}<p>S = {{printf "%.3f" .S}}: a replayed step takes {{printf "%.1f" .ReplayedMS}} ms, with all workers alike {{printf "%.1f" .IdealMS}} ms.</p>{{end}}
{{with .Functions}}<h2>Share of each worker's time by function</h2>{{.}}{{end}}
</body></html>
`))

type whatIfPage struct{ S, ReplayedMS, IdealMS float64 }

// WriteHTML writes the answer as one page.
func (r *Report) WriteHTML(w io.Writer) error {
	data := struct {
		*Report
		WhatIf           *whatIfPage
		Steps, Functions template.HTML
		LeftOut          string
	}{Report: r}
	if n := len(r.Workers); n > drawnWorkers {
		data.LeftOut = fmt.Sprintf("Drawn are %d of %d workers, those with findings among them; all are in the table below.", drawnWorkers, n)
	}
	if a := r.WhatIf; a != nil {
		data.WhatIf = &whatIfPage{a.S, 1e3 * a.ReplayedS, 1e3 * a.IdealS}
	}
	if h, ok := r.stepHeat(); ok {
		data.Steps = h.svg()
	}
	if h, ok := r.functionHeat(); ok {
		data.Functions = h.svg()
	}
	return page.Execute(w, data)
}

const (
	cellHeight = 20
	labelWidth = 120
	mapWidth   = 900
)

// svg draws the picture; each cell has its value as a title.
func (h heat) svg() template.HTML {
	var b strings.Builder
	columns := 0
	for _, row := range h.values {
		columns = max(columns, len(row))
	}
	width := float64(mapWidth-labelWidth) / float64(max(columns, 1))
	height := (len(h.values)+len(h.columns))*cellHeight + cellHeight/2
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" width="%d" height="%d" role="img">`, mapWidth, height, mapWidth, height)
	for i, row := range h.values {
		y := i * cellHeight
		fmt.Fprintf(&b, `<text x="0" y="%d">%s</text>`, y+14, template.HTMLEscapeString(printable.Text(h.workers[i].String())))
		for c, v := range row {
			if math.IsNaN(v) {
				continue
			}
			name := fmt.Sprintf("column %d", c+1)
			if len(h.columns) > 0 {
				name = h.columns[c]
			}
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s, %s: %s</title></rect>`,
				labelWidth+float64(c)*width, y, math.Max(width-1, 1), cellHeight-1, tint(v/max(h.most, 1e-9)),
				template.HTMLEscapeString(printable.Text(h.workers[i].String())), template.HTMLEscapeString(printable.Text(name)), h.unit(v))
		}
	}
	for i, name := range h.columns {
		fmt.Fprintf(&b, `<text x="%d" y="%d">column %d: %s</text>`, labelWidth, (len(h.values)+i)*cellHeight+18, i+1,
			template.HTMLEscapeString(printable.Text(name)))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// tint goes from a light grey to a dark red: lightness alone tells it, too.
func tint(part float64) string {
	part = math.Sqrt(min(max(part, 0), 1))
	return fmt.Sprintf("rgb(%d,%d,%d)", int(240-70*part), int(240-210*part), int(236-210*part))
}
