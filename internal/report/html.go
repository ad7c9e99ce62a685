package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/printable"
	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// pageSection is a section with the pictures that stand in it.
type pageSection struct {
	Title  string
	Notes  []string
	Header []pageCell
	Rows   []pageRow
	Left   int
	Bars   bool
	Chart  template.HTML
}

type pageCell struct {
	Text string
	Left bool
}

type pageRow struct {
	Cells []pageCell
	Share float64 // in percent
}

// writeHTML writes one file: styles and pictures are in it, and nothing is
// fetched from anywhere.
func (r *Report) writeHTML(w io.Writer, style Style) error {
	var sections []pageSection
	for _, s := range r.document(style) {
		p := pageSection{Title: s.title, Left: s.left}
		for _, n := range s.notes {
			p.Notes = append(p.Notes, printable.Text(n))
		}
		if t := s.table; t != nil && len(t.rows) > 0 {
			p.Bars = t.share != nil
			for i, h := range t.header {
				p.Header = append(p.Header, pageCell{h, t.left[i]})
			}
			for n, row := range t.rows {
				pr := pageRow{}
				for i, cell := range row {
					pr.Cells = append(pr.Cells, pageCell{printable.Text(cell), t.left[i]})
				}
				if p.Bars {
					pr.Share = math.Round(1000*min(max(t.share[n], 0), 1)) / 10
				}
				p.Rows = append(p.Rows, pr)
			}
		}
		switch {
		case s.title == "Steps":
			p.Chart = r.stepChart()
		case s.title == "Memory":
			p.Chart = r.memoryChart()
		case s.title == "Where the training thread's time goes":
			p.Chart = r.phaseChart()
		}
		sections = append(sections, p)
	}
	return page.Execute(w, map[string]any{"Verdict": printable.Text(r.Verdict), "Sections": sections, "Flame": r.flameChart(), "Dataset": r.Dataset})
}

// The pictures are SVG. All text in them is escaped: names come from the job.

const chartWidth, chartHeight = 900.0, 160.0

func esc(s string) string { return template.HTMLEscapeString(printable.Text(s)) }

func (r *Report) stepChart() template.HTML {
	if r.Steps == nil || len(r.Steps.PeriodMS) < 2 {
		return ""
	}
	periods := thin(r.Steps.PeriodMS, int(chartWidth)/2)
	most := 0.0
	for _, v := range periods {
		most = max(most, v)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="time of each step">`, chartWidth, chartHeight+20)
	width := chartWidth / float64(len(periods))
	for i, v := range periods {
		h := chartHeight * v / max(most, 1e-9)
		fmt.Fprintf(&b, `<rect class="bar" x="%.2f" y="%.2f" width="%.2f" height="%.2f"><title>%s</title></rect>`,
			float64(i)*width, chartHeight-h, max(width-1, 0.5), h, esc(msText(v)))
	}
	mean := chartHeight - chartHeight*r.Steps.MeanMS/max(most, 1e-9)
	fmt.Fprintf(&b, `<line class="mean" x1="0" x2="%g" y1="%.2f" y2="%.2f"/>`, chartWidth, mean, mean)
	fmt.Fprintf(&b, `<text x="0" y="%g">first</text><text x="%g" y="%g" text-anchor="end">last; the tallest is %s</text></svg>`,
		chartHeight+15, chartWidth, chartHeight+15, esc(msText(most)))
	return template.HTML(b.String())
}

// thin keeps the largest of each stretch, so that the slowest step stays.
func thin(values []float64, most int) []float64 {
	if len(values) <= most {
		return values
	}
	out := make([]float64, most)
	for i, v := range values {
		at := i * most / len(values)
		out[at] = max(out[at], v)
	}
	return out
}

var phaseColors = map[string]string{
	timeline.Loading: "#d97706", timeline.Forward: "#2563eb", timeline.Backward: "#7c3aed", timeline.Optimizer: "#059669",
	timeline.Communication: "#dc2626", timeline.IO: "#b45309", timeline.Waiting: "#64748b", timeline.OtherPhase: "#cbd5e1",
}

func (r *Report) phaseChart() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g 46" role="img" aria-label="phases of a step">`, chartWidth)
	x := 0.0
	for _, p := range r.Phases {
		width := chartWidth * p.Percent / 100
		fmt.Fprintf(&b, `<rect x="%.2f" y="0" width="%.2f" height="28" fill="%s"><title>%s: %s %%</title></rect>`,
			x, width, phaseColors[p.Phase], esc(p.Phase), percentText(p.Percent))
		if width > 60 {
			fmt.Fprintf(&b, `<text x="%.2f" y="42">%s</text>`, x+2, esc(p.Phase))
		}
		x += width
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

func (r *Report) memoryChart() template.HTML {
	var b strings.Builder
	for i, m := range r.Memory {
		if i == 4 || len(m.series) < 2 {
			break
		}
		most := 0.0
		for _, p := range m.series {
			most = max(most, p.y)
		}
		fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="memory over time"><path class="area" d="M0 %g`, chartWidth, chartHeight+20, chartHeight)
		for _, p := range m.series {
			fmt.Fprintf(&b, " L%.1f %.1f", chartWidth*p.x/400, chartHeight-chartHeight*max(p.y, 0)/max(most, 1))
		}
		fmt.Fprintf(&b, ` L%.1f %g Z"/><text x="0" y="%g">pid %d, %s: at most %s</text></svg>`, chartWidth*m.series[len(m.series)-1].x/400, chartHeight, chartHeight+15,
			m.PID, esc(m.Space), esc(bytesText(most)))
	}
	return template.HTML(b.String())
}
