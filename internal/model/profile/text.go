package profile

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/symbolize"
)

// Style says how a profile is written for people.
type Style struct {
	Width int  // columns a line may take, 0 for as many as it needs
	Color bool // ANSI colours: Python cyan, operators green, the kernel faint
	Full  bool // every frame; otherwise runs of native or kernel frames are shown as one line
}

const (
	shortRun = 3   // so many native frames in a row are shown one by one
	hotShare = 200 // a frame with a 200th of all time for its own is always shown
)

// kindNames are the marks in front of a function.
var kindNames = map[symbolize.Kind]string{symbolize.Python: "py", symbolize.Native: "c", symbolize.Kernel: "k", symbolize.Op: "op"}

var kindColors = map[symbolize.Kind]string{symbolize.Python: "\x1b[36m", symbolize.Op: "\x1b[32m", symbolize.Kernel: "\x1b[2m"}

// WriteTree writes the tree, a line a function: its share of all time, its own
// share, what it is, its name. Only where paths part does the name move right.
func WriteTree(w io.Writer, root *Node, style Style) error {
	t := &treeText{out: bufio.NewWriter(w), style: style, all: root.TotalNS}
	fmt.Fprintf(t.out, "%7s  %7s\n", "total", "self")
	t.children(root, "")
	return t.out.Flush()
}

type treeText struct {
	out   *bufio.Writer
	style Style
	all   int64
}

// children writes what is below a node; indent is the drawing in front of it.
func (t *treeText) children(n *Node, indent string) {
	if len(n.Children) == 1 {
		t.chain(n.Children[0], indent, indent)
		return
	}
	for i, c := range n.Children {
		branch, below := "├─ ", "│  "
		if i == len(n.Children)-1 {
			branch, below = "└─ ", "   "
		}
		t.chain(c, indent+branch, indent+below)
	}
}

// chain writes a node and, without moving right, those below it as long as
// each has one child.
func (t *treeText) chain(n *Node, first, rest string) {
	for {
		if run := t.run(n); len(run) > shortRun {
			t.line(percent(n.TotalNS, t.all), "", "", first, summary(run))
			n = run[len(run)-1]
		} else {
			t.node(n, first)
		}
		if len(n.Children) != 1 {
			break
		}
		n, first = n.Children[0], rest
	}
	t.children(n, rest)
}

// run is the native, or the kernel's, frames from n on that say nothing but that
// there are some: one child each, little time of their own.
func (t *treeText) run(n *Node) (run []*Node) {
	if t.style.Full {
		return nil
	}
	kind := n.Kind
	if kind != symbolize.Native && kind != symbolize.Kernel {
		return nil
	}
	for n.Kind == kind && len(n.Children) == 1 && n.SelfNS*hotShare < t.all {
		run = append(run, n)
		n = n.Children[0]
	}
	return run
}

// summary says how many frames there are and which module most are in.
func summary(run []*Node) string {
	if run[0].Kind == symbolize.Kernel {
		return fmt.Sprintf("⋯ %d kernel frames", len(run))
	}
	count, most := map[string]int{}, ""
	for _, n := range run {
		module := moduleOf(n.Label)
		count[module]++
		if most == "" || count[module] > count[most] {
			most = module
		}
	}
	return fmt.Sprintf("⋯ %d native frames (%s)", len(run), most)
}

// moduleOf is the module in the label of a native frame.
func moduleOf(label string) string {
	if symbolize.IsNameless(label) {
		module, _, _ := strings.Cut(label, "+0x")
		return module
	}
	if i := strings.LastIndex(label, " ("); i >= 0 && strings.HasSuffix(label, ")") {
		return label[i+2 : len(label)-1]
	}
	return filepath.Base(label)
}

func (t *treeText) node(n *Node, indent string) {
	self := ""
	if n.SelfNS > 0 {
		self = percent(n.SelfNS, t.all)
	}
	t.line(percent(n.TotalNS, t.all), self, n.Kind, indent, n.Label)
}

func (t *treeText) line(total, self string, kind symbolize.Kind, indent, label string) {
	writeLine(t.out, t.style, fmt.Sprintf("%7s  %7s  %-2s  %s", total, self, kindNames[kind], indent), kind, label)
}

// WriteFunctions writes the first functions as a table.
func WriteFunctions(w io.Writer, functions []Function, all int64, style Style) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%7s  %7s\n", "self", "total")
	for _, f := range functions {
		writeLine(out, style, fmt.Sprintf("%7s  %7s  %-2s  ", percent(f.SelfNS, all), percent(f.TotalNS, all), kindNames[f.Kind]), f.Kind,
			f.Label)
	}
	return out.Flush()
}

func writeLine(out *bufio.Writer, style Style, before string, kind symbolize.Kind, label string) {
	label = printable.Text(strings.TrimSuffix(label, "_[k]"))
	if style.Width > 0 {
		label = Shorten(label, max(style.Width-utf8.RuneCountInString(before)-1, 20))
	}
	if color := kindColors[kind]; style.Color && color != "" {
		label = color + label + "\x1b[0m"
	}
	out.WriteString(strings.TrimRight(before+label, " ") + "\n")
}

// percent is a share with one decimal.
func percent(part, all int64) string {
	if all <= 0 {
		return "0.0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(all))
}

// Shorten cuts a text in its middle: a function's namespace and its file tell
// less than its own name, which is at neither end.
func Shorten(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width || width < 3 {
		return text
	}
	tail := (width - 1) * 2 / 3
	head := width - 1 - tail
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}
