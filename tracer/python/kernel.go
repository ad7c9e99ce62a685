package python

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
)

// absent is PYTHON_ABSENT in bpf/python.h.
const absent = 0xffff

// fieldLimit bounds the offsets that the walk can reach: it looks at the first
// 256 bytes of a structure at most.
const fieldLimit = 252

// Limits of what the walk reads of each structure (bpf/python.h).
const (
	stateBytes    = 184
	maxFrameBytes = 127
)

// KernelValue is the value for the map python_runtimes, under the process's
// tgid.
func (i *Interpreter) KernelValue() (*bpf.PythonWalkPythonRuntime, error) {
	return kernelValue(i.Runtime)
}

func kernelValue(rt *cpython.Runtime) (*bpf.PythonWalkPythonRuntime, error) {
	o := &rt.Offsets
	v := &bpf.PythonWalkPythonRuntime{
		Autotss: rt.AutoTSS, Key: rt.Key,
		Interpreters: rt.Address + uint64(o.RuntimeInterpreters),
		Interpreter:  rt.Interpreter, Gil: rt.GIL, Collecting: rt.Collecting,
		CodeType: rt.CodeType, ObjectType: field(o.ObjectType),
		ThreadSelf: int32(rt.Pthread.Self), KeyBlock: int32(rt.Pthread.KeyBlock), KeyTable: int32(rt.Pthread.KeyTable),

		InterpreterNext:  uint16(o.InterpreterNext),
		StateInterpreter: field(o.StateInterpreter), StateFrames: field(o.StateFrames), StateCframe: field(o.StateCFrame),
		StateThread: field(o.StateThread), StateNative: field(o.StateNative),
		CframeCurrent: field(o.CFrameCurrent), CframePrevious: field(o.CFramePrevious),
		FrameBytes: frameBytes(o),
		FrameCode:  field(o.FrameCode), FramePrevious: field(o.FramePrevious),
		FrameInstruction: field(o.FrameInstruction), FrameOwner: field(o.FrameOwner), FrameTlbc: field(o.FrameTLBC),
		CodeArgcount: field(o.CodeArgcount), CodeKwonly: field(o.CodeKwonly), CodeFlags: field(o.CodeFlags),
		CodeLine: field(o.CodeLine), CodeName: field(o.CodeName), CodeLinetable: field(o.CodeLinetable),
		CodeTlbc: field(o.CodeTLBC),
		Anchor:   anchorOf(rt.Version),
	}
	if o.CodeStart != cpython.Absent {
		v.CodeStart = uint16(o.CodeStart)
	}
	if rt.Version.Minor <= 9 {
		v.LastiShift = 1
	}
	if rt.Pthread.Plain {
		v.KeysPlain = 1
	}
	return v, reachable(rt)
}

func field(offset int) uint16 {
	if offset == cpython.Absent {
		return absent
	}
	return uint16(offset)
}

// frameBytes ends behind the last field that is read: behind that may be the
// end of the interpreter's stack of frames.
func frameBytes(o *cpython.Offsets) uint16 {
	end := max(o.FrameCode+8, o.FramePrevious+8, o.FrameInstruction+8, o.FrameOwner+1, o.FrameTLBC+4)
	return uint16(end+7) &^ 7
}

func anchorOf(v cpython.Version) uint8 {
	switch {
	case v.Minor <= 9:
		return uint8(bpf.PythonWalkPythonAnchorPYTHON_ANCHOR_NONE)
	case v.Minor == 10:
		return uint8(bpf.PythonWalkPythonAnchorPYTHON_ANCHOR_EACH)
	case v.Minor == 11:
		return uint8(bpf.PythonWalkPythonAnchorPYTHON_ANCHOR_ENTRY)
	}
	return uint8(bpf.PythonWalkPythonAnchorPYTHON_ANCHOR_SHIM)
}

// reachable refuses a build whose own offsets lie beyond what the walk reads.
func reachable(rt *cpython.Runtime) error {
	o := &rt.Offsets
	for _, f := range []struct {
		offset, size, limit int
		name                string
	}{
		{o.StateInterpreter, 8, stateBytes, "interp"}, {o.StateFrames, 8, stateBytes, "current_frame"},
		{o.StateThread, 8, stateBytes, "thread_id"}, {o.StateNative, 8, stateBytes, "native_thread_id"},
		{o.StateCFrame, 8, stateBytes, "cframe"}, {o.CFrameCurrent, 8, fieldLimit, "current_frame"}, {o.CFramePrevious, 8, fieldLimit,
			"previous"},
		{int(frameBytes(o)), 0, maxFrameBytes, "the frame"},
		{o.CodeName, 8, cpython.CodeBytes, "co_name"}, {o.CodeLinetable, 8, cpython.CodeBytes, "co_linetable"},
		{o.CodeLine, 4, cpython.CodeBytes, "co_firstlineno"}, {o.CodeFlags, 4, cpython.CodeBytes, "co_flags"},
		{o.CodeArgcount, 4, cpython.CodeBytes, "co_argcount"}, {o.CodeKwonly, 4, cpython.CodeBytes, "co_kwonlyargcount"},
		{o.ObjectType, 8, cpython.CodeBytes, "ob_type"}, {o.InterpreterNext, 8, 1 << 16, "next"}, {o.CodeTLBC, 8, 1 << 16, "co_tlbc"},
		{o.CodeStart, 0, fieldLimit, "the bytecode"},
	} {
		if f.offset+f.size > f.limit {
			return fmt.Errorf("describing Python %s to the kernel: %s is at %d, beyond the %d bytes that are read: %w", rt.Version, f.name,
				f.offset, f.limit, &cpython.UnsupportedError{Version: rt.Version.String(), Flavour: cpython.FlavourUnknown})
		}
	}
	return nil
}
