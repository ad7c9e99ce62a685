package callstack

import (
	"fmt"
	"strings"
	"testing"
)

// text writes a merged stack as "n0 p0 p1 n2".
func text(m Merged) string {
	var words []string
	for _, f := range m.Frames {
		kind := "n"
		switch {
		case f.Python:
			kind = "p"
		case f.Operator:
			kind = "o"
		}
		words = append(words, fmt.Sprintf("%s%d", kind, f.Index))
	}
	return strings.Join(words, " ")
}

// frames makes native frames of their CFAs.
func frames(cfas ...uint64) []Native {
	all := make([]Native, len(cfas))
	for i, cfa := range cfas {
		all[i].CFA = cfa
	}
	return all
}

func with(native []Native, set func(*Native), indexes ...int) []Native {
	for _, i := range indexes {
		set(&native[i])
	}
	return native
}

func eval(n *Native)        { n.Eval, n.Interpreter = true, true }
func interpreter(n *Native) { n.Interpreter = true }
func signal(n *Native)      { n.Signal = true }
func operator(n *Native)    { n.Operator = true }

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		name     string
		stack    Stack
		options  Option
		want     string
		unmerged bool
	}{
		{name: "two runs of the loop, C in between", want: "n0 p0 p1 n2 p2 n4",
			stack: Stack{SP: 100, Native: frames(120, 200, 250, 300, 400), Python: 3,
				Segments: []Segment{{150, 2}, {260, 3}}, NativeWhole: true, PythonWhole: true}},
		{name: "the leaf itself runs the loop", want: "p0 n1",
			stack: Stack{SP: 100, Native: frames(200, 300), Python: 1,
				Segments: []Segment{{110, 1}}, NativeWhole: true, PythonWhole: true}},
		{name: "an anchor at a frame's very end is its caller's", want: "n0 p0",
			stack: Stack{SP: 100, Native: frames(200, 300), Python: 1,
				Segments: []Segment{{200, 1}}, NativeWhole: true, PythonWhole: true}},
		{name: "3.10: a segment each", want: "n0 p0 p1 n3 p2",
			stack: Stack{SP: 100, Native: frames(110, 200, 300, 350, 500), Python: 3,
				Segments: []Segment{{150, 1}, {250, 2}, {450, 3}}, NativeWhole: true, PythonWhole: true}},
		{name: "a run without frames is passed over, wherever its anchor is", want: "n0 p0 n2",
			stack: Stack{SP: 100, Native: frames(110, 200, 300), Python: 1,
				Segments: []Segment{{7, 0}, {150, 1}, {250, 1}}, NativeWhole: true, PythonWhole: true}},
		{name: "operators stand outside of their entries", want: "n0 n1 o1 n2 n3 o3 p0 n5",
			stack: Stack{SP: 100, Native: with(frames(110, 120, 130, 140, 200, 300), operator, 1, 3), Python: 1,
				Segments: []Segment{{150, 1}}, NativeWhole: true, PythonWhole: true}},
		{name: "an operator called by an operator, and without Python", want: "n0 o0 n1 o1 n2",
			stack: Stack{SP: 100, Native: with(frames(110, 120, 130), operator, 0, 1), NativeWhole: true, PythonWhole: true}},
		{name: "an operator in a walk that stopped at it", want: "n0 n1 o1 p0",
			stack: Stack{SP: 100, Native: with(frames(110, 120), operator, 1), Python: 1,
				Segments: []Segment{{150, 1}}, PythonWhole: true}},
		{name: "an operator that calls Python", want: "n0 p0 n2 o2 p1 n4",
			stack: Stack{SP: 100, Native: with(frames(110, 200, 250, 300, 400), operator, 2), Python: 2,
				Segments: []Segment{{150, 1}, {260, 2}}, NativeWhole: true, PythonWhole: true}},
		{name: "no Python", want: "n0 n1",
			stack: Stack{SP: 100, Native: frames(110, 120), NativeWhole: true, PythonWhole: true}},
		{name: "no native frame", want: "p0 p1",
			stack: Stack{SP: 100, Python: 2, Segments: []Segment{{150, 2}}, PythonWhole: true}},
		{name: "a native walk that stopped early: the rest of Python is below it", want: "n0 p0 n2 p1 p2",
			stack: Stack{SP: 100, Native: frames(110, 200, 0), Python: 3,
				Segments: []Segment{{150, 1}, {900, 3}}, PythonWhole: true}},
		{name: "a Python walk that was cut between anchors: its last run at its own frame", want: "n0 p0 p1 n2",
			stack: Stack{SP: 100, Native: frames(110, 200, 300), Python: 2,
				Segments: []Segment{{150, 2}}, NativeWhole: true}},
		{name: "a Python walk that was cut before an anchor: its last run at the end", want: "n0 p0 n2 p1",
			stack: Stack{SP: 100, Native: frames(110, 200, 300), Python: 2,
				Segments: []Segment{{150, 1}, {0, 2}}, NativeWhole: true}},
		{name: "a frame whose end is not known is passed over", want: "n0 n1 p0 n3",
			stack: Stack{SP: 100, Native: frames(110, 0, 300, 400), Python: 1,
				Segments: []Segment{{250, 1}}, NativeWhole: true, PythonWhole: true}},
		{name: "a signal handler on its own stack, above the thread's", want: "n0 n1 p0 n3",
			stack: Stack{SP: 9000, Native: with(frames(9100, 9200, 300, 400), signal, 2), Python: 1,
				Segments: []Segment{{250, 1}}, NativeWhole: true, PythonWhole: true}},
		{name: "a signal handler on its own stack, below the thread's", want: "n0 n1 p0 n3",
			stack: Stack{SP: 100, Native: with(frames(200, 300, 9300, 9400), signal, 2), Python: 1,
				Segments: []Segment{{9250, 1}}, NativeWhole: true, PythonWhole: true}},
		{name: "Python in the handler and below it", want: "n0 p0 p1 n3",
			stack: Stack{SP: 9000, Native: with(frames(9100, 9200, 300, 400), signal, 2), Python: 2,
				Segments: []Segment{{9150, 1}, {250, 2}}, NativeWhole: true, PythonWhole: true}},
		{name: "a greenlet: an anchor that is on no stack here", want: "n0 n1 p0 p1", unmerged: true,
			stack: Stack{SP: 100 << 20, Native: frames(100<<20+10, 100<<20+500), Python: 2,
				Segments: []Segment{{50 << 20, 2}}, NativeWhole: true, PythonWhole: true}},
		{name: "3.8: a loop each, counted", want: "n0 p0 n2 p1 n4",
			stack: Stack{SP: 100, Native: with(frames(110, 120, 130, 140, 150), eval, 1, 3), Python: 2,
				Segments: []Segment{{0, 2}}, NativeWhole: true, PythonWhole: true}},
		{name: "3.8: the leaf is entering the loop", want: "n0 p0 n2",
			stack: Stack{SP: 100, Native: with(frames(110, 120, 130), eval, 0, 1), Python: 1,
				Segments: []Segment{{0, 1}}, NativeWhole: true, PythonWhole: true}},
		{name: "3.8: the native walk stopped early", want: "n0 p0 n2 p1 p2",
			stack: Stack{SP: 100, Native: with(frames(110, 120, 0), eval, 1), Python: 3,
				Segments: []Segment{{0, 3}}, PythonWhole: true}},
		{name: "3.8: the Python walk was cut", want: "p0 n1 n2",
			stack: Stack{SP: 100, Native: with(frames(110, 120, 130), eval, 0, 1), Python: 1,
				Segments: []Segment{{0, 1}}, NativeWhole: true}},
		{name: "3.8: without the symbol, in front of the interpreter's first C frame", want: "n0 p0 p1 n1 n2", unmerged: true,
			stack: Stack{SP: 100, Native: with(frames(110, 120, 130), interpreter, 1, 2), Python: 2,
				Segments: []Segment{{0, 2}}, NativeWhole: true, PythonWhole: true}},
		{name: "the interpreter's way to a run of Python is hidden", options: HideInterpreter, want: "n0 n1 p0 n4 p1",
			stack: Stack{SP: 100, Native: with(frames(110, 200, 300, 310, 400, 500, 600), interpreter, 1, 2, 3, 5, 6), Python: 2,
				Segments: []Segment{{250, 1}, {450, 2}}, NativeWhole: true, PythonWhole: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := Merge(&c.stack, c.options)
			if got := text(m); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if m.Unmerged != c.unmerged {
				t.Errorf("unmerged is %v", m.Unmerged)
			}
		})
	}
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte{10, 20, 30}, []byte{15, 1, 25, 2}, uint8(3), uint8(3))
	f.Fuzz(func(t *testing.T, cfas, segments []byte, python, flags uint8) {
		s := Stack{SP: 5, Python: int(python), NativeWhole: flags&1 != 0, PythonWhole: flags&2 != 0}
		for i, c := range cfas {
			s.Native = append(s.Native, Native{CFA: uint64(c), Signal: c%7 == 6, Interpreter: c%2 == 0, Eval: (int(c)+i)%5 == 0})
		}
		end := 0
		for ; len(segments) >= 2 && end < s.Python; segments = segments[2:] {
			end = min(end+1+int(segments[1]%4), s.Python)
			s.Segments = append(s.Segments, Segment{uint64(segments[0]), end})
		}
		next := 0
		native := -1
		for _, frame := range Merge(&s, 0).Frames {
			if frame.Python && frame.Index != next {
				t.Fatalf("Python frame %d where %d belongs", frame.Index, next)
			}
			if !frame.Python && frame.Index <= native {
				t.Fatalf("native frame %d after %d", frame.Index, native)
			}
			if frame.Python {
				next++
			} else {
				native = frame.Index
			}
		}
		if next != s.Python {
			t.Fatalf("%d of %d Python frames", next, s.Python)
		}
	})
}
