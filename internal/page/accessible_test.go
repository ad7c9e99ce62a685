package page_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/page"
	"github.com/ebpfprof/ebpfprof/internal/testkit/browser"
)

// runAxe returns what axe-core finds, a line each.
const runAxe = `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.flatMap((v) =>
	v.nodes.map((n) => v.id + ": " + n.target.join(" ") + ": " + (n.any[0] ?? n.all[0] ?? n.none[0])?.message)).join("\n"))`

// axe-core finds no violation in any view, light or dark.
func TestTheViewsAreAccessible(t *testing.T) {
	axe := browser.Axe(t)
	fleet, _ := job(t)
	for _, c := range []struct {
		name, path string
		options    page.Options
		links      []string
	}{
		{"a loop", write(t, loop()), page.Options{}, []string{"overview", "timeline", "timeline?from=10ms&until=14ms&sel=7.7~21", "flame", "source",
			"operators", "path", "memory", "sql", "schema", "live"}},
		{"a hang", write(t, hung()), page.Options{}, []string{"hang", "map"}},
		{"a store", filepath.Join(fleet, store.Version), page.Options{Store: fleet}, []string{"map"}},
	} {
		b := browseWith(t, c.path, c.options)
		for _, link := range c.links {
			b.open(link)
			evaluate[bool](b, axe+"\n;true")
			for _, scheme := range []string{"light", "dark"} {
				media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
				if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
					t.Fatal(err)
				}
				awaited := func(p *runtime.EvaluateParams) { p.AwaitPromise = new(true) }
				found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](runAxe, awaited))
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(found) {
					t.Errorf("%s, %s, %s: %s", c.name, link, scheme, line)
				}
			}
		}
	}
}
