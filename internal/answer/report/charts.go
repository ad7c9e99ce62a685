package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// The pictures are SVG. All text in them is escaped: names come from the job.

const (
	chartWidth, chartHeight = 900.0, 160.0
	axisWidth               = 72.0 // left of a picture, for its scale
)

func esc(s string) string { return template.HTMLEscapeString(printable.Text(s)) }

// axes draws the scale from nothing to the most, and begins the picture that is right of
// it; the caller ends both.
func axes(b *strings.Builder, label, most, from, to string) {
	fmt.Fprintf(b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, axisWidth+chartWidth, chartHeight+26, esc(label))
	for _, tick := range []struct {
		y    float64
		text string
	}{{0, most}, {chartHeight, "0"}} {
		fmt.Fprintf(b, `<line class="grid" x1="%g" x2="%g" y1="%g" y2="%g"/>`, axisWidth, axisWidth+chartWidth, tick.y+6, tick.y+6)
		fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="end">%s</text>`, axisWidth-6, tick.y+10, esc(tick.text))
	}
	fmt.Fprintf(b, `<text x="%g" y="%g">%s</text>`, axisWidth, chartHeight+21, esc(from))
	fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="end">%s</text>`, axisWidth+chartWidth, chartHeight+21, esc(to))
	fmt.Fprintf(b, `<g transform="translate(%g 6)">`, axisWidth)
}

func (r *Report) stepChart() template.HTML {
	if r.Steps == nil || len(r.Steps.PeriodMS) < 2 {
		return ""
	}
	periods := thin(r.Steps.PeriodMS, int(chartWidth)/2)
	most := 0.0
	for _, v := range periods {
		most = max(most, v)
	}
	last := fmt.Sprintf("the last of %d steps after warm-up", len(r.Steps.PeriodMS))
	if len(periods) < len(r.Steps.PeriodMS) {
		last += fmt.Sprintf(", each bar the longest of %.1f", float64(len(r.Steps.PeriodMS))/float64(len(periods)))
	}
	var b strings.Builder
	axes(&b, "time of each step", msText(most), "the first", last)
	width := chartWidth / float64(len(periods))
	for i, v := range periods {
		h := chartHeight * v / max(most, 1e-9)
		fmt.Fprintf(&b, `<rect class="bar" x="%.2f" y="%.2f" width="%.2f" height="%.2f"><title>%s</title></rect>`,
			float64(i)*width, chartHeight-h, max(width-1, 0.5), h, esc(msText(v)))
	}
	mean := chartHeight - chartHeight*r.Steps.MeanMS/max(most, 1e-9)
	fmt.Fprintf(&b, `<line class="mean" x1="0" x2="%g" y1="%.2f" y2="%.2f"/></g>`, chartWidth, mean, mean)
	// Beside the scale's ends there is no room for it.
	if mean > 14 && mean < chartHeight-14 {
		fmt.Fprintf(&b, `<text class="mean" x="%g" y="%.1f" text-anchor="end">⌀ %s</text>`, axisWidth-6, mean+10, esc(msText(r.Steps.MeanMS)))
	}
	b.WriteString(`</svg>`)
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

// phaseChart is all phases side by side; the table below it has their names in the same
// colors, so that narrow ones need none here.
func (r *Report) phaseChart() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g 46" role="img" aria-label="phases of a step">`, chartWidth)
	x := 0.0
	for _, p := range r.Phases {
		width := chartWidth * p.Percent / 100
		fmt.Fprintf(&b, `<rect x="%.2f" y="0" width="%.2f" height="28" fill="%s"><title>%s: %s %%</title></rect>`,
			x, width, phaseColors[p.Phase], esc(p.Phase), percentText(p.Percent))
		if text := fmt.Sprintf("%s %s %%", p.Phase, percentText(p.Percent)); width > 7*float64(len(text)) {
			fmt.Fprintf(&b, `<text x="%.2f" y="42">%s</text>`, x+2, esc(text))
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
		axes(&b, "memory over time", bytesText(most), fmt.Sprintf("pid %d, %s; the first row", m.PID, m.Space), msText(r.WindowMS))
		fmt.Fprintf(&b, `<path class="area" d="M%.1f %g`, chartWidth*m.series[0].x/400, chartHeight)
		for _, p := range m.series {
			fmt.Fprintf(&b, " L%.1f %.1f", chartWidth*p.x/400, chartHeight-chartHeight*max(p.y, 0)/max(most, 1))
		}
		fmt.Fprintf(&b, ` L%.1f %g Z"/></g></svg>`, chartWidth*m.series[len(m.series)-1].x/400, chartHeight)
	}
	return template.HTML(b.String())
}
