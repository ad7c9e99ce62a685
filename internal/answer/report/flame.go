package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
)

// flameGraph is one metric in both directions: who called what, and from the innermost function up who called it.
type flameGraph struct {
	title    string
	down, up *flame
}

// flame is a tree of functions with the time below them, for the picture.
type flame struct {
	name     string
	ns       float64
	children map[string]*flame
}

func (f *flame) child(name string) *flame {
	if f.children == nil {
		f.children = map[string]*flame{}
	}
	c := f.children[name]
	if c == nil {
		c = &flame{name: name}
		f.children[name] = c
	}
	return c
}

const flameDepth = 40

// add adds time to a path, of which names are left out that are not known.
func (f *flame) add(path []string, ns float64) {
	f.ns += ns
	at := f
	for i, name := range path {
		if i == flameDepth {
			break
		}
		at = at.child(name)
		at.ns += ns
	}
}

const (
	sampledFlames = `SELECT folded, sum(weight_ns)::DOUBLE, '' FROM sample JOIN stack USING (session_id, stack_id) WHERE state = '%s'
		GROUP BY ALL`
	deviceFlames = `SELECT coalesce(s.folded, ''), sum(d.duration_ns)::DOUBLE, coalesce(o.operator || ';', '') || replace(d.name, ';', ':')
		FROM rows d LEFT JOIN launch_owner o USING (session_id, launch_id) LEFT JOIN stack s ON s.session_id = d.session_id
		AND s.stack_id = o.stack_id
		WHERE d.layer = 'device' AND d.category IN ('kernel', 'collective', 'copy', 'set') GROUP BY ALL`
)

// flames adds up what there is: time on the device, each below the stack that it came from, and of sampled stacks time
// on the CPU and time in waits.
func (b *builder) flames() error {
	if b.devicesLead() {
		if err := b.addFlames("time on the device, below the Python line and the operator that launched the work", deviceFlames); err != nil {
			return err
		}
	}
	if b.samples == 0 {
		return nil
	}
	if err := b.addFlames("time on the CPU, from samples", fmt.Sprintf(sampledFlames, "on_cpu")); err != nil {
		return err
	}
	if err := b.addFlames("time in waits, from samples", fmt.Sprintf(sampledFlames, "off_cpu")); err != nil {
		return err
	}
	if p := b.report.Profiled; p != nil {
		return b.addFlames("time on the device of "+p.covered.Text(), deviceFlames)
	}
	return nil
}

func (b *builder) addFlames(title, query string) error {
	g := flameGraph{title, &flame{name: "all"}, &flame{name: "all"}}
	err := b.each(query, func(scan scan) error {
		var folded, below string
		var ns float64
		if err := scan(&folded, &ns, &below); err != nil {
			return err
		}
		path := strings.Split(folded, ";")
		if below != "" {
			path = append(path, strings.Split(below, ";")...)
		}
		path = slices.DeleteFunc(path, func(name string) bool { return name == "" })
		g.down.add(path, ns)
		slices.Reverse(path)
		g.up.add(path, ns)
		return nil
	})
	if g.down.ns > 0 {
		b.report.flames = append(b.report.flames, g)
	}
	return err
}

// flameCharts draws all graphs. The first is open; the page has no script, so that the others open by themselves.
func (r *Report) flameCharts() template.HTML {
	var b strings.Builder
	for i, g := range r.flames {
		open := ""
		if i == 0 {
			open = " open"
		}
		fmt.Fprintf(&b, `<details%s><summary>%s: who called what</summary>%s</details>`, open, esc(g.title), r.flameChart(g.down))
		fmt.Fprintf(&b, `<details><summary>%s: bottom-up, the innermost function first and below it who called it</summary>%s</details>`,
			esc(g.title), r.flameChart(g.up))
	}
	if len(r.flames) > 0 {
		fmt.Fprintf(&b, `<p class="more">Frames narrower than a thousandth of the picture are not drawn, nor those more than %d deep.</p>`,
			flameDepth)
	}
	if len(r.flames) > 0 && slices.ContainsFunc(r.Findings, func(f findings.Finding) bool { return f.Name != "" }) {
		b.WriteString(`<p class="more">A frame with a thick edge is named by a finding, which its title names.</p>`)
	}
	return template.HTML(b.String())
}

// accused is the finding that names a frame: a function in a file, or an operator or a kernel.
func accused(all []findings.Finding, frame string) *findings.Finding {
	function, file, placed := strings.Cut(strings.TrimSuffix(frame, ")"), " (")
	for i, f := range all {
		switch {
		case f.Function != nil && f.File != nil && *f.Function != "":
			if placed && function == *f.Function && strings.HasSuffix(*f.File, file) {
				return &all[i]
			}
		case f.Name != "" && frame == strings.ReplaceAll(f.Name, ";", ":"):
			return &all[i]
		}
	}
	return nil
}

const flameRow = 17.0

// flameChart draws a tree, its root at the top; what is narrower than a pixel is not drawn.
func (r *Report) flameChart(root *flame) template.HTML {
	var b strings.Builder
	depth := 0
	var draw func(f *flame, x, width float64, level int)
	draw = func(f *flame, x, width float64, level int) {
		if width < 1 {
			return
		}
		depth = max(depth, level)
		text := ""
		if letters := int(width / 6.6); letters >= 4 {
			text = fmt.Sprintf(`<text x="%.1f" y="%.1f" class="dark">%s</text>`, x+2, flameRow*float64(level)+12.5, esc(shorten(f.name, letters)))
			if len([]rune(f.name)) > letters && letters < 8 {
				text = ""
			}
		}
		class, because := "frame", ""
		if found := accused(r.Findings, f.name); found != nil && level > 0 {
			class, because = "frame accused", "; "+strings.ReplaceAll(found.Rule, "_", " ")
		}
		fmt.Fprintf(&b, `<g><title>%s: %s (%s %%)%s</title><rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%g" fill="%s"/>%s</g>`,
			esc(f.name), esc(msText(f.ns/1e6)), percentText(100*f.ns/root.ns), esc(because), class, x, flameRow*float64(level), width, flameRow-1,
			color(f.name), text)
		var children []*flame
		for _, c := range f.children {
			children = append(children, c)
		}
		slices.SortFunc(children, func(a, c *flame) int { return cmp.Or(cmp.Compare(c.ns, a.ns), strings.Compare(a.name, c.name)) })
		for _, c := range children {
			w := width * c.ns / f.ns
			draw(c, x, w, level+1)
			x += w
		}
	}
	draw(root, 0, 1080, 0)
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 1080 %g" role="img" aria-label="flame graph">%s</svg>`, flameRow*float64(depth+1),
		b.String()))
}

// color is the same for a name wherever it stands.
func color(name string) string {
	h := uint32(2166136261)
	for _, c := range []byte(name) {
		h = (h ^ uint32(c)) * 16777619
	}
	return fmt.Sprintf("hsl(%d 70%% %d%%)", 15+h%45, 62+h/64%14)
}
