package stacks

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/symbolize/callstack"
	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
)

// unknownCFA is how the walk says that a frame's address is not known.
const unknownCFA = ^uint32(0)

// evalFunction is the interpreter's loop, by which frames are counted where a
// version leaves nothing on the stack to go by (3.8, 3.9).
const evalFunction = "_PyEval_EvalFrameDefault"

// naming is room for what is made of one stack's halves before they are put
// together, kept for the next one.
type naming struct {
	native    []*symbolize.NamedFrame
	operators map[int]string // that a native frame is the entry of, by its index
	python    []symbolize.NamedFrame
	stack     callstack.Stack
	labels    []string // of the whole stack, as they are folded
}

// frames names the frames of a stack and puts its halves together, leaf first;
// their labels are in t.naming until the next call. whole is false where a name is
// missing that may be there another time.
func (t *Table) frames(r *stackRecord, space *space) (frames []symbolize.Frame, whole bool) {
	python := t.interpreters.of(r.Tgid)
	n := &t.naming
	n.nameNative(r, space)
	whole = t.namePython(r, python)
	n.describe(r, python)
	merged := callstack.Merge(&n.stack, callstack.HideInterpreter)

	frames, n.labels = make([]symbolize.Frame, 0, len(r.kernel)+len(merged.Frames)), n.labels[:0]
	add := func(f *symbolize.Frame, label string) {
		frames, n.labels = append(frames, *f), append(n.labels, label)
	}
	for i, address := range r.kernel {
		f := t.kernel().Frame(address, i > 0)
		add(&f, f.FoldedLabel())
	}
	for _, m := range merged.Frames {
		switch {
		case m.Python:
			f := &n.python[m.Index]
			add(&f.Frame, f.Folded)
		case m.Operator:
			f := symbolize.Frame{Kind: symbolize.Op, Function: n.operators[m.Index], Offset: -1}
			add(&f, f.FoldedLabel())
		default:
			f := n.native[m.Index]
			add(&f.Frame, f.Folded)
		}
	}
	return frames, whole
}

// operatorEntry begins the names of the functions that are an operator's entry.
const operatorEntry = "at::_ops::"

var unknownFrame = symbolize.NamedFrame{Frame: symbolize.Frame{Kind: symbolize.Native, Module: "[unknown]", Offset: -1},
	Folded: "[unknown]"}

// nameNative names the native frames, and the operators that one is the entry of.
func (n *naming) nameNative(r *stackRecord, space *space) {
	n.native = n.native[:0]
	clear(n.operators)
	for i, f := range r.native {
		if space == nil {
			n.native = append(n.native, &unknownFrame)
			continue
		}
		// What a signal interrupted is no call.
		returns := i > 0 && f.Flags&uint32(bpf.SampleNativeFlagNATIVE_SIGNAL) == 0
		named := space.Named(f.Pc, returns)
		n.native = append(n.native, named)
		if !strings.HasPrefix(named.Function, operatorEntry) {
			continue
		}
		if operator := space.Operator(f.Pc, returns); operator != "" {
			if n.operators == nil {
				n.operators = map[int]string{}
			}
			n.operators[i] = operator
		}
	}
}

// namePython names the Python frames; false where a name is missing.
func (t *Table) namePython(r *stackRecord, python *interpreter) (whole bool) {
	frames := t.naming.python[:0]
	if !t.interpreters.guarded(python, r.Tgid, func() { frames, whole = namedPython(frames, r, python) }) {
		frames, whole = namedPython(t.naming.python[:0], r, nil)
	}
	t.naming.python = frames
	return whole
}

func namedPython(frames []symbolize.NamedFrame, r *stackRecord, python *interpreter) (named []symbolize.NamedFrame, whole bool) {
	whole = true
	for _, f := range r.python {
		frame := symbolize.NamedFrame{Frame: symbolize.Frame{Kind: symbolize.Python, Offset: -1}}
		if code := python.resolve(f.Code, f.Checksum); code == nil {
			whole = false
			frame.Folded = frame.FoldedLabel()
		} else {
			frame.Function, frame.File = code.Function, code.File
			if line, ok := code.Line(f.Instruction); ok {
				frame.Line = int32(line)
			}
			frame.Folded = pythonLabel(code, &frame.Frame)
		}
		frames = append(frames, frame)
	}
	return frames, whole
}

// resolve names a code object; nil where it cannot be.
func (i *interpreter) resolve(code uint64, checksum uint32) *cpython.Code {
	if i == nil || i.python == nil {
		return nil
	}
	c, _ := i.python.Resolver.Resolve(code, checksum)
	return c
}

// pythonLabel is the label of a frame of some code, whatever its line.
func pythonLabel(code *cpython.Code, frame *symbolize.Frame) string {
	if code.Folded == "" {
		code.Folded = frame.FoldedLabel()
	}
	return code.Folded
}

// describe is the stack as the merge wants it.
func (n *naming) describe(r *stackRecord, python *interpreter) {
	s := &n.stack
	*s = callstack.Stack{
		SP: r.Sp, Python: len(r.python), Native: s.Native[:0], Segments: s.Segments[:0],
		NativeWhole: bpf.SampleNativeOutcome(r.NativeOutcome) == bpf.SampleNativeOutcomeNATIVE_END,
		PythonWhole: bpf.SamplePythonOutcome(r.PythonOutcome) == bpf.SamplePythonOutcomePYTHON_OK,
	}
	module := ""
	if python != nil {
		module = python.module
	}
	for i, f := range r.native {
		native := callstack.Native{
			Signal: f.Flags&uint32(bpf.SampleNativeFlagNATIVE_SIGNAL) != 0,
			Eval:   n.native[i].Function == evalFunction,
		}
		_, native.Operator = n.operators[i]
		if f.Cfa != unknownCFA {
			native.CFA = r.Sp + uint64(f.Cfa)
		}
		native.Interpreter = module != "" && n.native[i].Module == module
		s.Native = append(s.Native, native)
	}
	for _, segment := range r.segments {
		s.Segments = append(s.Segments, callstack.Segment{Anchor: segment.Anchor, End: int(segment.End)})
	}
}
