package profile

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize"
)

func py(function string) symbolize.Frame {
	return symbolize.Frame{Kind: symbolize.Python, Function: function, File: "/job/train.py", Line: 3, Offset: -1}
}

func native(function string) symbolize.Frame {
	return symbolize.Frame{Kind: symbolize.Native, Function: function, Module: "libtorch_cpu.so", Offset: 64}
}

// training is 10 s in four stacks, written root first.
func training() Profile {
	kept := NewFrames()
	stack := func(seconds int64, rootFirst ...symbolize.Frame) Stack {
		frames := make([]*Frame, len(rootFirst))
		for i, f := range rootFirst {
			frames[len(frames)-1-i] = kept.Of(f)
		}
		return Stack{Frames: frames, WeightNS: seconds * 1e9, Samples: seconds * 100}
	}
	cut := stack(1, native("lost"))
	cut.Cut = "native_no_table"
	return Profile{
		stack(5, native("_start"), py("<module>"), native("a"), native("b"), native("c"), native("d"), native("gemm")),
		stack(2, native("_start"), py("<module>"), py("loss"), native("gemm")),
		stack(2, native("_start"), py("<module>"), py("loss"), py("loss")),
		cut,
	}
}

func TestTheTreeMovesRightOnlyWherePathsPart(t *testing.T) {
	var b strings.Builder
	if err := WriteTree(&b, training().Tree(), Style{}); err != nil {
		t.Fatal(err)
	}
	want := `  total     self
 90.0 %           c   ├─ _start (libtorch_cpu.so)
 90.0 %           py  │  <module> (train.py)
 50.0 %               │  ├─ ⋯ 4 native frames (libtorch_cpu.so)
 50.0 %   50.0 %  c   │  │  gemm (libtorch_cpu.so)
 40.0 %   20.0 %  py  │  └─ loss (train.py)
 20.0 %   20.0 %  c   │     gemm (libtorch_cpu.so)
 10.0 %               └─ [stack cut: native_no_table]
 10.0 %   10.0 %  c      lost (libtorch_cpu.so)
`
	if b.String() != want {
		t.Errorf("\n%s\nwant\n%s", b.String(), want)
	}
}

func TestFullTreesShowEveryFrame(t *testing.T) {
	var b strings.Builder
	if err := WriteTree(&b, training().Tree(), Style{Full: true}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{" a (", " b (", " c (", " d ("} {
		if !strings.Contains(b.String(), name) {
			t.Errorf("no%q in\n%s", name, b.String())
		}
	}
}

func TestTheHottestPathsKeepTheTotalsOfAll(t *testing.T) {
	root := training().Tree()
	if dropped := root.Hottest(1); dropped != 3 {
		t.Errorf("%d paths dropped", dropped)
	}
	n, depth := root, 0
	for ; len(n.Children) == 1; n = n.Children[0] {
		depth++
	}
	if depth != 7 || n.SelfNS != 5e9 || root.TotalNS != 10e9 || root.Children[0].TotalNS != 9e9 {
		t.Errorf("depth %d, leaf %d of %d ns, first child %d ns", depth, n.SelfNS, root.TotalNS, root.Children[0].TotalNS)
	}
}

func TestRecursionCountsOnceInTotals(t *testing.T) {
	p := training()
	functions := map[string]Function{}
	for _, f := range p.Functions() {
		functions[f.Label] = f
	}
	for label, want := range map[string][2]int64{
		"gemm (libtorch_cpu.so)": {7e9, 7e9}, "loss (train.py)": {2e9, 4e9}, "<module> (train.py)": {0, 9e9},
		"lost (libtorch_cpu.so)": {1e9, 1e9},
	} {
		if got := functions[label]; got.SelfNS != want[0] || got.TotalNS != want[1] {
			t.Errorf("%s: %+v, want %v", label, got, want)
		}
	}
	if p.Functions()[0].Label != "gemm (libtorch_cpu.so)" || p.WeightNS() != 10e9 || p.Samples() != 1000 {
		t.Errorf("%+v", p.Functions()[0])
	}
	var self int64
	for _, f := range functions {
		self += f.SelfNS
	}
	if self != p.WeightNS() {
		t.Errorf("own times sum up to %d", self)
	}
}

func TestLinesFitTheTerminalAndColoursAreAskedFor(t *testing.T) {
	kept := NewFrames()
	p := Profile{{Frames: []*Frame{kept.Of(py(strings.Repeat("very", 40) + "_long")), kept.Of(native("main"))}, WeightNS: 1, Samples: 1}}
	var narrow, colored strings.Builder
	if err := WriteTree(&narrow, p.Tree(), Style{Width: 60}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(narrow.String()) {
		if n := len([]rune(line)); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.Contains(narrow.String(), "\x1b") || !strings.Contains(narrow.String(), "_long (train.py)") {
		t.Errorf("%q", narrow.String())
	}
	if err := WriteFunctions(&colored, p.Functions(), p.WeightNS(), Style{Color: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(colored.String(), "\x1b[36mvery") {
		t.Errorf("%q", colored.String())
	}
}

func TestAnEmptyProfileIsNoFailure(t *testing.T) {
	var b strings.Builder
	var p Profile
	root := p.Tree()
	if root.Hottest(5) != 0 || WriteTree(&b, root, Style{}) != nil || len(p.Entries(3)) != 0 || len(p.Functions()) != 0 {
		t.Errorf("%q", b.String())
	}
}
