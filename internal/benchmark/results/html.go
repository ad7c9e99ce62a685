package results

import (
	"html/template"
	"io"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
)

// strip is a run's steps as a picture: a bar for each, as high as it took long.
type strip struct {
	Label string
	Bars  []bar
}

type bar struct{ X, Y, Width, Height float64 }

const (
	stripWidth  = 800.0
	stripHeight = 40.0
)

// strips have one scale for all runs of a benchmark, so that they can be compared by eye.
func (b *Benchmark) strips() (all []strip) {
	longest := 0.0
	for _, r := range b.Runs {
		if len(r.periods) > 0 {
			longest = max(longest, slices.Max(r.periods))
		}
	}
	for _, r := range b.Runs {
		if len(r.periods) == 0 {
			continue
		}
		s := strip{Label: "run " + r.ID + ", " + string(r.Result)}
		width := stripWidth / float64(len(r.periods))
		for i, p := range r.periods {
			height := stripHeight * p / max(longest, 1e-9)
			s.Bars = append(s.Bars, bar{float64(i) * width, stripHeight - height, max(width-0.3, 0.3), height})
		}
		all = append(all, s)
	}
	return all
}

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"figure":  func(v *float64) string { return pointer(v) },
	"between": interval,
	"meaning": func(n numbers.Number) string {
		kind, _ := numbers.KindOf(n.Name)
		if n.Why != "" {
			return n.Why
		}
		return kind.Meaning
	},
	"sentence": (*Benchmark).sentence,
	"strips":   (*Benchmark).strips,
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>ebpfprof bench {{.ID}}</title>
<style>
body { font: 14px/1.45 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
table { border-collapse: collapse; margin: 1em 0 } td, th { padding: .15em .7em; text-align: left; border-bottom: 1px solid #ddd; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums } svg { display: block; background: #f4f4f4; width: 100%; height: 40px } svg rect { fill: #3a6ea5 }
figcaption { font-size: 12px; color: #555 } figure { margin: .6em 0 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #191919 } td, th { border-color: #444 } svg { background: #262626 } figcaption { color: #aaa } }
</style></head><body>
<h1>Benchmarks of {{.Host}}</h1>
<p>Session {{.ID}}: {{.Verdict}}. <code>{{.Command}}</code></p>
{{range .Benchmarks}}<h2>{{.Name}}</h2><p>{{sentence .}}</p>
<table><tr><th>number</th><th>value</th><th>unit</th><th>95 % interval</th><th>what it is</th></tr>
{{range .Numbers}}<tr><td>{{.Name}}</td><td class="n">{{figure .Value}}</td><td>{{.Unit}}</td><td>{{between .}}</td><td>{{meaning .}}</td></tr>
{{end}}</table>
{{if .References}}<table><tr><th>reference</th><th>value</th><th>expected</th><th>result</th></tr>
{{range .References}}<tr><td>{{.Name}}</td><td class="n">{{figure .Value}}</td><td class="n">{{.Ref}}</td><td>{{.Result}}{{if not .Certain}}, inconclusive{{end}}</td></tr>
{{end}}</table>{{end}}
{{with strips .}}<h3>Steps of each run</h3>{{range .}}<figure><svg viewBox="0 0 800 40" preserveAspectRatio="none" role="img" aria-label="{{.Label}}">
{{range .Bars}}<rect x="{{.X}}" y="{{.Y}}" width="{{.Width}}" height="{{.Height}}"/>{{end}}</svg><figcaption>{{.Label}}</figcaption></figure>{{end}}{{end}}
{{range .Runs}}{{if .Stage}}<p>Run {{.ID}}: {{.Result}} in stage {{.Stage}}: {{.Reason}}</p>{{end}}{{end}}
<table>{{range .Inventory}}<tr><td>{{.Key}}</td><td>{{.Value}}</td></tr>{{end}}</table>
{{end}}</body></html>
`))

func (s *Session) writeHTML(w io.Writer) error { return page.Execute(w, s) }
