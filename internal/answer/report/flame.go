package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

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

// flames adds up what there is: time on the CPU of sampled stacks, else time on
// the device, else of outermost operators, each below the stack it came from.
func (b *builder) flames() error {
	query, title := `SELECT folded, sum(weight_ns)::DOUBLE, '' FROM sample JOIN stack USING (session_id, stack_id) WHERE state = 'on_cpu' GROUP BY ALL`,
		"time on the CPU, from samples"
	switch {
	case b.devicesLead():
		query = `SELECT coalesce(s.folded, ''), sum(d.duration_ns)::DOUBLE, coalesce(o.operator || ';', '') || replace(d.name, ';', ':')
			FROM rows d LEFT JOIN launch_owner o USING (session_id, launch_id) LEFT JOIN stack s ON s.session_id = d.session_id AND s.stack_id = o.stack_id
			WHERE d.layer = 'device' AND d.category IN ('kernel', 'collective', 'copy', 'set') GROUP BY ALL`
		title = "time on the device, below the Python line and the operator that launched the work"
	case b.samples == 0:
		return nil
	}
	root := &flame{name: "all"}
	err := b.each(query, func(scan scan) error {
		var folded, below string
		var ns float64
		if err := scan(&folded, &ns, &below); err != nil {
			return err
		}
		at := root
		at.ns += ns
		path := strings.Split(folded, ";")
		if below != "" {
			path = append(path, strings.Split(below, ";")...)
		}
		for i, name := range path {
			if name == "" {
				continue
			}
			if i == flameDepth {
				break
			}
			at = at.child(name)
			at.ns += ns
		}
		return nil
	})
	b.report.flame, b.report.flameTitle = root, title
	return err
}

const flameRow = 17.0

// flameChart draws the tree, roots at the top; what is narrower than a pixel is
// not drawn.
func (r *Report) flameChart() template.HTML {
	if r.flame == nil || r.flame.ns == 0 {
		return ""
	}
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
		fmt.Fprintf(&b, `<g><title>%s: %s (%s %%)</title><rect class="frame" x="%.1f" y="%.1f" width="%.1f" height="%g" fill="%s"/>%s</g>`,
			esc(f.name), esc(msText(f.ns/1e6)), percentText(100*f.ns/r.flame.ns), x, flameRow*float64(level), width, flameRow-1, color(f.name), text)
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
	draw(r.flame, 0, 1080, 0)
	return template.HTML(fmt.Sprintf(`<p>%s</p><svg viewBox="0 0 1080 %g" role="img" aria-label="flame graph">%s</svg>`,
		esc(r.flameTitle), flameRow*float64(depth+1), b.String()))
}

// color is the same for a name wherever it stands.
func color(name string) string {
	h := uint32(2166136261)
	for _, c := range []byte(name) {
		h = (h ^ uint32(c)) * 16777619
	}
	return fmt.Sprintf("hsl(%d 70%% %d%%)", 15+h%45, 62+h/64%14)
}
