package python

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
)

// The walk of bpf/python.h once more, from outside: of a thread that stands still, whose
// memory is read. Tests hold the two against each other.

// Memory reads a process's, and reports whether it could.
type Memory func(address uint64, to []byte) bool

// Stack is what a walk found, the leaf first.
type Stack struct {
	Frames   []bpf.SamplePythonFrame
	Segments []bpf.SamplePythonSegment
	Outcome  Outcome
}

// outcomes of bpf/python_runtime.h.
const (
	walked    = Outcome(bpf.PythonWalkPythonOutcomePYTHON_OK)
	badFrame  = Outcome(bpf.PythonWalkPythonOutcomePYTHON_BAD_FRAME)
	badAnchor = Outcome(bpf.PythonWalkPythonOutcomePYTHON_BAD_ANCHOR)
	tooLong   = Outcome(bpf.PythonWalkPythonOutcomePYTHON_MAX_FRAMES)
	listEnd   = ^Outcome(0)     // of the list of frames
	onward    = ^Outcome(0) - 1 // to the next one
)

// Of bpf/stack.h: MAX_PYTHON_SEGMENTS, and as many steps as PYTHON_MAX_STEPS.
const (
	mostSegments = 256
	mostSteps    = 2*256 + 2 // between two frames there is at most one of the interpreter's own
)

// NoInterpreter is the stack of a thread whose process has no CPython that is known.
func NoInterpreter() Stack {
	return Stack{Outcome: Outcome(bpf.PythonWalkPythonOutcomePYTHON_NO_INTERPRETER)}
}

// Walker walks the threads of one process.
type Walker struct {
	rt       *bpf.PythonWalkPythonRuntime
	checksum func(code []byte) uint32
}

// Walker is that of the interpreter's process. It asks nothing more of the interpreter.
func (i *Interpreter) Walker() (*Walker, error) {
	value, err := i.KernelValue()
	if err != nil {
		return nil, err
	}
	offsets := i.Offsets
	return &Walker{value, offsets.Checksum}, nil
}

// standing is a walk that goes on.
type standing struct {
	*Walker
	memory Memory
	most   int
	out    Stack

	state, frame, cframe uint64
	tortoise             uint64 // a frame passed earlier: met again, it is a loop
	steps                uint
	entering             bool // the first frame may not be one yet
}

// Walk follows a thread's Python frames, up to a number of them.
func (of *Walker) Walk(start *bpf.PythonWalkWalkStart, memory Memory, most int) Stack {
	w := standing{Walker: of, memory: memory, most: most}
	if w.out.Outcome = w.findState(start); w.out.Outcome != walked {
		return w.out
	}
	if w.out.Outcome = w.readState(start); w.out.Outcome != walked {
		return w.out
	}
	if w.out.Outcome = w.firstFrame(); w.out.Outcome != walked {
		return w.out
	}
	w.out.Outcome = w.walk()
	return w.out
}

func (w *standing) word(address uint64) (uint64, bool) {
	var b [8]byte
	ok := w.memory(address, b[:])
	return binary.LittleEndian.Uint64(b[:]), ok
}

// findState reads the thread's slot of the key under which CPython keeps its state.
func (w *standing) findState(start *bpf.PythonWalkWalkStart) Outcome {
	rt := w.rt
	from := func(offset int32) uint64 { return start.ThreadPointer + uint64(int64(offset)) }
	tss, ok := uint64(1|uint64(rt.Key)<<32), true
	if rt.Autotss != 0 {
		tss, ok = w.word(rt.Autotss)
	}
	if !ok || uint32(tss) == 0 {
		return Outcome(bpf.PythonWalkPythonOutcomePYTHON_NOT_INITIALISED)
	}
	key, block := tss>>32, from(rt.KeyBlock)
	if rt.KeysPlain != 0 || key >= 32 { // 32 blocks of 32: glibc's PTHREAD_KEYS_MAX
		entry := from(rt.KeyTable)
		if rt.KeysPlain == 0 {
			entry += 8 * (key / 32 & 31)
		}
		if block, ok = w.word(entry); !ok {
			return Outcome(bpf.PythonWalkPythonOutcomePYTHON_BAD_SLOT)
		}
		if block == 0 {
			return Outcome(bpf.PythonWalkPythonOutcomePYTHON_NO_THREAD_STATE)
		}
	}
	slot := block + 16*(key&31) + 8
	if rt.KeysPlain != 0 {
		slot = block + 8*(key&127)
	}
	switch w.state, ok = w.word(slot); {
	case !ok:
		return Outcome(bpf.PythonWalkPythonOutcomePYTHON_BAD_SLOT)
	case w.state == 0:
		return Outcome(bpf.PythonWalkPythonOutcomePYTHON_NO_THREAD_STATE)
	}
	return walked
}

// readState makes sure that it is a state, and this thread's.
func (w *standing) readState(start *bpf.PythonWalkWalkStart) Outcome {
	const foreign = Outcome(bpf.PythonWalkPythonOutcomePYTHON_FOREIGN_STATE)
	rt := w.rt
	var state [stateBytes]byte
	if !w.memory(w.state, state[:]) {
		return Outcome(bpf.PythonWalkPythonOutcomePYTHON_BAD_STATE)
	}
	self := start.ThreadPointer + uint64(int64(rt.ThreadSelf))
	// Either proves it: see bpf/python.h.
	mine := binary.LittleEndian.Uint64(state[rt.StateThread:]) == self
	if !mine && (rt.StateNative == absent || binary.LittleEndian.Uint32(state[rt.StateNative:]) != start.NsTid) {
		return foreign
	}
	interpreter := binary.LittleEndian.Uint64(state[rt.StateInterpreter:])
	if interpreter != rt.Interpreter && !w.known(interpreter) {
		return foreign
	}
	w.frame = binary.LittleEndian.Uint64(state[rt.StateFrames:])
	if rt.Anchor == uint8(bpf.PythonWalkPythonAnchorPYTHON_ANCHOR_EACH) {
		w.cframe = binary.LittleEndian.Uint64(state[rt.StateCframe:])
	}
	return walked
}

// known reports whether the process has such an interpreter.
func (w *standing) known(interpreter uint64) bool {
	const most = 8
	address := w.rt.Interpreters
	for range most {
		next, ok := w.word(address)
		if !ok || next == 0 {
			return false
		}
		if next == interpreter {
			return true
		}
		address = next + uint64(w.rt.InterpreterNext)
	}
	return false
}

func (w *standing) firstFrame() Outcome {
	if w.rt.CframeCurrent == absent {
		return walked
	}
	w.cframe, w.entering = w.frame, true
	var ok bool
	if w.frame, ok = w.word(w.cframe + uint64(w.rt.CframeCurrent)); !ok {
		return badAnchor
	}
	return walked
}

func (w *standing) endSegment(anchor uint64) {
	if len(w.out.Segments) < mostSegments {
		w.out.Segments = append(w.out.Segments, bpf.SamplePythonSegment{Anchor: anchor, End: uint32(len(w.out.Frames))})
	}
}

// popCFrame ends a segment, whose C frame is its CFrame's; the next has the one before.
func (w *standing) popCFrame() Outcome {
	w.endSegment(w.cframe)
	if w.frame == 0 {
		return onward
	}
	var ok bool
	if w.cframe, ok = w.word(w.cframe + uint64(w.rt.CframePrevious)); !ok {
		return badAnchor
	}
	return onward
}

// notEntered: 3.11 and 3.12 link a CFrame before they say which frame it runs; the thread
// still runs what the CFrame before says.
func (w *standing) notEntered() Outcome {
	w.entering, w.out.Segments = false, w.out.Segments[:0]
	var ok, also bool
	if w.cframe, ok = w.word(w.cframe + uint64(w.rt.CframePrevious)); ok {
		w.frame, also = w.word(w.cframe + uint64(w.rt.CframeCurrent))
	}
	if !also {
		return badAnchor
	}
	return onward
}

func (w *standing) walk() Outcome {
	end := tooLong
	for range mostSteps {
		if o := w.step(); o != onward {
			end = o
			break
		}
	}
	// The last run is open where the walk was cut or the version has no anchors. Of 3.11
	// the C frame that executes it is known all the same.
	if n := len(w.out.Segments); n == 0 || int(w.out.Segments[n-1].End) < len(w.out.Frames) {
		anchor := uint64(0)
		if w.rt.Anchor == uint8(bpf.PythonWalkPythonAnchorPYTHON_ANCHOR_ENTRY) {
			anchor = w.cframe
		}
		w.endSegment(anchor)
	}
	switch {
	case end != listEnd:
		return end
	case len(w.out.Frames) == 0:
		return Outcome(bpf.PythonWalkPythonOutcomePYTHON_NO_FRAMES)
	}
	return walked
}

// step takes one frame of the list.
func (w *standing) step() Outcome {
	rt, frame := w.rt, w.frame
	if frame == 0 {
		return listEnd
	}
	if frame == w.tortoise {
		return Outcome(bpf.PythonWalkPythonOutcomePYTHON_LOOP)
	}
	if bits.OnesCount(w.steps+1) == 1 {
		w.tortoise = frame
	}
	w.steps++
	var piece [maxFrameBytes + 1]byte
	if frame&7 != 0 || !w.memory(frame, piece[:rt.FrameBytes&maxFrameBytes]) {
		if w.entering {
			return w.notEntered()
		}
		return badFrame
	}
	w.frame = binary.LittleEndian.Uint64(piece[rt.FramePrevious:])
	full := len(w.out.Frames) >= w.most
	owner := byte(0)
	if int(rt.FrameOwner) < len(piece) {
		owner = piece[rt.FrameOwner]
	}
	shims := rt.Anchor == uint8(bpf.PythonWalkPythonAnchorPYTHON_ANCHOR_SHIM)
	const shim = 3 // from here on a frame is the interpreter's own
	switch {
	case shims && owner >= shim:
		w.endSegment(frame)
		if full {
			return tooLong
		}
		return onward
	case full && shims: // which C frame runs the last ones is known only at its own frame
		return onward
	case full:
		return tooLong
	}
	f, err := w.describe(piece[:])
	switch {
	case err != nil && w.entering:
		return w.notEntered()
	case err == errNotCode:
		return badFrame
	}
	w.entering = false
	w.out.Frames = append(w.out.Frames, f)
	if rt.Anchor == uint8(bpf.PythonWalkPythonAnchorPYTHON_ANCHOR_EACH) ||
		rt.Anchor == uint8(bpf.PythonWalkPythonAnchorPYTHON_ANCHOR_ENTRY) && owner != 0 {
		return w.popCFrame()
	}
	return onward
}

// Why a frame has not got its code described.
var (
	errCold    = errors.New("the code object cannot be read")
	errNotCode = errors.New("no code object")
)

// describe says which code a frame runs, and where in it it is.
func (w *standing) describe(piece []byte) (f bpf.SamplePythonFrame, err error) {
	const unknown = -2 // PYTHON_INSTRUCTION_UNKNOWN
	rt := w.rt
	f.Code = binary.LittleEndian.Uint64(piece[rt.FrameCode:]) &^ 7
	if rt.CodeStart != 0 {
		at := int64(binary.LittleEndian.Uint64(piece[rt.FrameInstruction:]) - w.codeStart(piece, f.Code))
		if f.Instruction = int32(at >> 1); at < -2 || at > 1<<30 {
			f.Instruction = unknown
		}
	} else {
		f.Instruction = int32(binary.LittleEndian.Uint32(piece[rt.FrameInstruction:])) >> (rt.LastiShift & 1)
	}
	var code [cpython.CodeBytes]byte
	if !w.memory(f.Code, code[:]) {
		return f, errCold
	}
	if rt.CodeType != 0 && binary.LittleEndian.Uint64(code[rt.ObjectType:]) != rt.CodeType {
		return f, errNotCode
	}
	f.Checksum = w.checksum(code[:])
	return f, nil
}

// codeStart is where the bytecode begins that the frame runs: in the code object, or in
// the thread's own copy of it.
func (w *standing) codeStart(piece []byte, code uint64) uint64 {
	start := code + uint64(w.rt.CodeStart)
	if w.rt.FrameTlbc == absent {
		return start
	}
	index := binary.LittleEndian.Uint32(piece[w.rt.FrameTlbc:])
	copies, ok := w.word(code + uint64(w.rt.CodeTlbc))
	if index == 0 || !ok {
		return start
	}
	// Behind their number; entry 0 is the code object's own.
	if made, ok := w.word(copies + 8 + 8*uint64(index)); ok && made != 0 {
		return made
	}
	return start
}
