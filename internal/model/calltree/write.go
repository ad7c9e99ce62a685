package calltree

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// Style is how much of the tree is written, and how wide.
type Style struct {
	MinPercent float64 // of the whole; smaller branches are counted together
	Depth      int     // 0 is all
	Width      int     // of the terminal, 0 where there is none
}

// Write writes a metric of the tree as text. Nodes with one child and nothing of
// their own are not indented further.
func (n *Node) Write(w io.Writer, metric string, style Style) error {
	out := bufio.NewWriter(w)
	total := n.Inclusive(metric)
	all := total[n]
	if all == 0 {
		return fmt.Errorf("the tree has no values of %s", metric)
	}
	intervals := n.Intervals(metric)
	apart := func(n *Node) string { // a column, where there are estimates
		if intervals == nil {
			return ""
		}
		return fmt.Sprintf(" %6s", off(intervals, n, total[n]))
	}
	if n.Shortened > 0 && metric == "host_ns" {
		fmt.Fprintf(out, "calls in slices were longer than the others: a thread's rows stand for up to %.2g times the time that there was, and "+
			"are divided by it\n",
			n.Shortened)
	}
	heading, sure := "", ""
	if intervals != nil {
		heading = fmt.Sprintf(" %6s", "± %")
		if off := off(intervals, n, all); off != "" {
			sure = ", ± " + off + " %"
		}
	}
	fmt.Fprintf(out, "%s in all%s\n\n%9s%s %7s %7s %9s  %s\n", amount(metric, all), sure, metric[:strings.IndexAny(metric+"_", "_")], heading,
		"%", "own %", "count", "")
	var walk func(*Node, int, int)
	walk = func(n *Node, indent, level int) {
		if style.Depth > 0 && level > style.Depth {
			return
		}
		rest, hidden := 0.0, 0
		for _, c := range n.Children(total) {
			share := 100 * total[c] / all
			if share < style.MinPercent || total[c] == 0 {
				rest += total[c]
				hidden++
				continue
			}
			own, count := 0.0, 0.0
			if m := c.Own[metric]; m != nil {
				own, count = 100*m.Sum/all, m.Count
			}
			name := strings.Repeat("  ", indent) + c.label()
			if style.Width > 44 {
				name = cut(name, style.Width-40-len(heading))
			}
			fmt.Fprintf(out, "%9s%s %6.1f%% %6s %9s  %s\n", amount(metric, total[c]), apart(c), share, blank(own, "%.1f%%"),
				blank(count, "%.0f"), name)
			next := indent + 1
			if own == 0 && c.alone(total, all*style.MinPercent/100) {
				next = indent
			}
			walk(c, next, level+1)
		}
		if hidden > 0 && rest > 0 {
			fmt.Fprintf(out, "%9s%*s %6.1f%% %6s %9s  %s… %d smaller\n", amount(metric, rest), utf8.RuneCountInString(heading), "", 100*rest/all, "",
				"", strings.Repeat("  ", indent), hidden)
		}
	}
	walk(n, 0, 1)
	return out.Flush()
}

// off is how far a node's value may be off, in percent of it: "" where it is no estimate, "?" where
// nothing tells.
func off(intervals map[*Node]Interval, n *Node, value float64) string {
	i, estimated := intervals[n]
	switch {
	case !estimated || value <= 0:
		return ""
	case math.IsNaN(i.High):
		return "?"
	}
	return fmt.Sprintf("%.0f", 100*(i.High-value)/value)
}

// alone says whether all that is below a node is below one child of it: such
// chains stay in their column.
func (n *Node) alone(total map[*Node]float64, least float64) bool {
	for _, c := range n.children {
		if total[c] == total[n] && total[c] >= least {
			return true
		}
	}
	return false
}

func blank(v float64, format string) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(format, v)
}

func cut(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	return string(runes[:width-1]) + "…"
}

var letters = map[Kind]string{Python: "py", Operator: "op", Backward: "bw", Native: "c ", Call: "rt", Kernel: "gpu"}

func (n *Node) label() string {
	text := letters[n.Kind] + " " + printable.Text(n.Name)
	switch {
	case n.Kind == Python && n.File != "":
		text += fmt.Sprintf("  %s:%d", printable.Text(n.File), n.Line)
	case n.Link == "forward":
		text += "  (backward of the operator above)"
	}
	return text
}

func amount(metric string, v float64) string {
	if strings.HasSuffix(metric, "_ns") {
		switch {
		case v >= 1e9:
			return fmt.Sprintf("%.2f s", v/1e9)
		case v >= 1e6:
			return fmt.Sprintf("%.2f ms", v/1e6)
		}
		return fmt.Sprintf("%.1f µs", v/1e3)
	}
	for _, unit := range []struct {
		size float64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if v >= unit.size {
			return fmt.Sprintf("%.1f %s", v/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.0f B", v)
}

// jsonNode is a node as --json has it; docs/json.md describes it.
type jsonNode struct {
	ID       int  `json:"node_id"`
	ParentID *int `json:"parent_id"`
	Identity
	Link   string  `json:"link_method,omitempty"`
	Metric string  `json:"metric"`
	Count  float64 `json:"count"`
	Sum    float64 `json:"sum"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Mean   float64 `json:"mean"`
	Stddev float64 `json:"stddev"`
	Total  float64 `json:"inclusive"`
	// Where it is an estimate, how far off that may be, at 95 %; no High where nothing tells.
	Low  *float64 `json:"inclusive_lo,omitempty"`
	High *float64 `json:"inclusive_hi,omitempty"`
	m2   float64
}

// rows lists the nodes that have something of the metric, parents first.
func (n *Node) rows(metric string) []jsonNode {
	total, intervals := n.Inclusive(metric), n.Intervals(metric)
	all := []jsonNode{}
	var walk func(*Node, *int)
	walk = func(n *Node, parent *int) {
		id := len(all)
		j := jsonNode{ID: id, ParentID: parent, Identity: n.Identity, Link: n.Link, Metric: metric, Total: total[n]}
		if m := n.Own[metric]; m != nil {
			j.Count, j.Sum, j.Min, j.Max, j.Mean, j.Stddev, j.m2 = m.Count, m.Sum, m.Min, m.Max, m.Mean, m.Stddev(), m.M2
		}
		if i, estimated := intervals[n]; estimated {
			j.Low = &i.Low
			if !math.IsNaN(i.High) {
				j.High = &i.High
			}
		}
		all = append(all, j)
		for _, c := range n.Children(total) {
			if total[c] != 0 {
				walk(c, &id)
			}
		}
	}
	walk(n, nil)
	return all
}

// WriteJSON writes a list of nodes, parents first.
func (n *Node) WriteJSON(w io.Writer, metric string) error {
	out := json.NewEncoder(printable.JSON(w))
	out.SetEscapeHTML(false)
	return out.Encode(n.rows(metric))
}
