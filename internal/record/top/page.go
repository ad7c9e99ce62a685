package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/model/profile"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// Page is how a view is laid out.
type Page struct {
	Title         string // what is looked at
	Width, Height int    // of the terminal; 0: as much as there is
	Order         Order
	Functions     int // how many at most; 0: as many as fit
	Color         bool
}

// maxThreads is how many threads are listed.
const maxThreads = 5

// Lines lays out a view.
func (p Page) Lines(v View) []string {
	lines := []string{
		printable.Text(p.Title),
		fmt.Sprintf("%s  %d samples  GIL %s  active %s  threads %d", v.Elapsed.Round(time.Second), v.Samples,
			share(v.GIL), share(v.Active), len(v.Threads)),
	}
	for _, warning := range v.Warnings {
		lines = append(lines, printable.Text(warning))
	}
	lines = append(lines, "")
	for i, t := range v.Threads {
		if i == maxThreads || t.Active == 0 {
			break
		}
		lines = append(lines, fmt.Sprintf("%9s active %9s GIL  %s (%d)", share(t.Active), share(t.GIL), printable.Text(t.Name), t.TID))
	}
	if lines[len(lines)-1] != "" {
		lines = append(lines, "")
	}
	lines = append(lines, p.header())
	v.Sort(p.Order)
	room := len(v.Functions)
	if p.Functions > 0 {
		room = min(room, p.Functions)
	}
	if p.Height > 0 {
		room = min(room, max(p.Height-len(lines)-1, 0))
	}
	for _, f := range v.Functions[:room] {
		lines = append(lines, p.function(&f))
	}
	if p.Width > 0 {
		for i := range lines {
			if !strings.Contains(lines[i], "\x1b") {
				lines[i] = cut(lines[i], p.Width)
			}
		}
	}
	return lines
}

// columns are the headings with their order; the chosen one is marked.
func (p Page) header() string {
	var b strings.Builder
	for i, name := range []string{"%own", "%total", "own", "total"} {
		if Order(i+1) == p.Order {
			name = "▼" + name
		}
		fmt.Fprintf(&b, "%9s ", name)
	}
	line := b.String() + " function"
	if p.Color {
		line = "\x1b[7m" + pad(line, p.Width) + "\x1b[0m"
	}
	return line
}

func (p Page) function(f *Function) string {
	numbers := fmt.Sprintf("%9s %9s %9s %9s  ", share(f.Own), share(f.Total), seconds(f.OwnTime), seconds(f.TotalTime))
	label := printable.Text(strings.TrimSuffix(f.Label, "_[k]"))
	if p.Width > 0 {
		label = profile.Shorten(label, max(p.Width-len(numbers)-1, 20))
	}
	return numbers + label
}

func share(s float64) string { return fmt.Sprintf("%.1f%%", 100*s) }

func seconds(d time.Duration) string {
	if d >= 1000*time.Second {
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}

func cut(line string, width int) string {
	runes := []rune(line)
	return string(runes[:min(len(runes), max(width-1, 0))])
}

func pad(line string, width int) string {
	line = cut(line, width)
	if missing := width - 1 - len([]rune(line)); missing > 0 {
		line += strings.Repeat(" ", missing)
	}
	return line
}
