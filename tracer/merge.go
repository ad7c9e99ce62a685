package tracer

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/symbolize/callstack"
)

// unknownCFA is how the walk says that a frame's address is not known.
const unknownCFA = ^uint32(0)

// evalFunction is the interpreter's loop, by which frames are counted where a
// version leaves nothing on the stack to go by (3.8, 3.9).
const evalFunction = "_PyEval_EvalFrameDefault"

// frames names the frames of a stack and puts its halves together, leaf first.
// whole is false where a name is missing that may be there another time.
func (t *stackTable) frames(r *stackRecord, space *space) (frames []symbolize.Frame, whole bool) {
	python := t.interpreters.of(r.Tgid)
	native, operators := nativeFrames(r, space)
	lines, whole := pythonFrames(r, python)
	merged := callstack.Merge(callStack(r, native, operators, python), callstack.HideInterpreter)

	frames = make([]symbolize.Frame, 0, len(r.kernel)+len(merged.Frames))
	for i, address := range r.kernel {
		frames = append(frames, t.kernel().Frame(address, i > 0))
	}
	for _, f := range merged.Frames {
		switch {
		case f.Python:
			frames = append(frames, lines[f.Index])
		case f.Operator:
			frames = append(frames, symbolize.Frame{Kind: symbolize.Op, Function: operators[f.Index], Offset: -1})
		default:
			frames = append(frames, native[f.Index])
		}
	}
	return frames, whole
}

// operatorEntry begins the names of the functions that are an operator's entry.
const operatorEntry = "at::_ops::"

// nativeFrames names the native frames; operators has the operator that one is
// the entry of, by its index.
func nativeFrames(r *stackRecord, space *space) (frames []symbolize.Frame, operators map[int]string) {
	frames = make([]symbolize.Frame, len(r.native))
	for i, f := range r.native {
		if space == nil {
			frames[i] = symbolize.Frame{Kind: symbolize.Native, Module: "[unknown]", Offset: -1}
			continue
		}
		// What a signal interrupted is no call.
		returns := i > 0 && f.Flags&uint32(bpf.SampleNativeFlagNATIVE_SIGNAL) == 0
		frames[i] = space.Frame(f.Pc, returns)
		if !strings.HasPrefix(frames[i].Function, operatorEntry) {
			continue
		}
		if operator := space.Operator(f.Pc, returns); operator != "" {
			if operators == nil {
				operators = map[int]string{}
			}
			operators[i] = operator
		}
	}
	return frames, operators
}

func pythonFrames(r *stackRecord, python *interpreter) (frames []symbolize.Frame, whole bool) {
	frames, whole = make([]symbolize.Frame, len(r.python)), true
	for i, f := range r.python {
		frames[i] = symbolize.Frame{Kind: symbolize.Python, Offset: -1}
		if python == nil || python.python == nil {
			whole = false
			continue
		}
		code, err := python.python.Resolver.Resolve(f.Code, f.Checksum)
		if err != nil {
			whole = false
			continue
		}
		frames[i].Function, frames[i].File = code.Function, code.File
		if line, ok := code.Line(f.Instruction); ok {
			frames[i].Line = int32(line)
		}
	}
	return frames, whole
}

// callStack is a stack as the merge wants it.
func callStack(r *stackRecord, native []symbolize.Frame, operators map[int]string, python *interpreter) *callstack.Stack {
	s := &callstack.Stack{
		SP: r.Sp, Python: len(r.python),
		NativeWhole: bpf.SampleNativeOutcome(r.NativeOutcome) == bpf.SampleNativeOutcomeNATIVE_END,
		PythonWhole: bpf.SamplePythonOutcome(r.PythonOutcome) == bpf.SamplePythonOutcomePYTHON_OK,
	}
	for i, f := range r.native {
		n := callstack.Native{
			Signal: f.Flags&uint32(bpf.SampleNativeFlagNATIVE_SIGNAL) != 0,
			Eval:   native[i].Function == evalFunction,
		}
		_, n.Operator = operators[i]
		if f.Cfa != unknownCFA {
			n.CFA = r.Sp + uint64(f.Cfa)
		}
		n.Interpreter = python != nil && python.module != "" && native[i].Module == python.module
		s.Native = append(s.Native, n)
	}
	for _, segment := range r.segments {
		s.Segments = append(s.Segments, callstack.Segment{Anchor: segment.Anchor, End: int(segment.End)})
	}
	return s
}
