// Package callstack puts the two halves of a call stack together: the native
// frames and the Python frames of one thread, which were walked independently
// of each other, become one list.
//
// What ties them is the stack itself. Each run of the interpreter loop keeps a
// small structure in its own C frame (the anchor of a segment of Python
// frames), so the C frame in which an anchor lies is the one that executes the
// segment. No symbol of the interpreter is needed, and neither its name nor its
// boundaries matter: it may be stripped, split, inlined or made of tail calls.
//
// A framework's operator has no code of its own, but a function that everyone
// passes who calls it. Its frame stands directly outside of that function's.
//
// The package is no part of the public API: it may change with any version.
package callstack

// Native is one frame of machine code.
type Native struct {
	// CFA is the frame's canonical frame address, its upper end; 0 when not known.
	CFA uint64
	// Signal marks the frame that a signal handler interrupted. From it on the
	// frames may be on another stack.
	Signal bool
	// Interpreter: the code is the interpreter's own file.
	Interpreter bool
	// Eval: the code is _PyEval_EvalFrameDefault, as far as symbols say. Only
	// 3.8 and 3.9 need to know, and they in vain where it is not known.
	Eval bool
	// Operator: the code is the entry of one of the framework's operators.
	Operator bool
}

// Segment is a run of Python frames that one run of the interpreter loop
// executes.
type Segment struct {
	Anchor uint64 // an address inside the C frame that executes it; 0: not known
	End    int    // the index behind its last frame
}

// Stack is what the two walks found, leaf first.
type Stack struct {
	SP       uint64 // where the leaf's frame ends
	Native   []Native
	Python   int // how many frames
	Segments []Segment
	// NativeWhole and PythonWhole: the walk reached the thread's start.
	NativeWhole bool
	PythonWhole bool
}

// Frame is one of the merged list: Native[Index], Python frame Index, or the
// operator that Native[Index] is the entry of.
type Frame struct {
	Python   bool
	Operator bool
	Index    int
}

// Merged is the whole stack, leaf first.
type Merged struct {
	Frames []Frame
	// Unmerged: some Python frames could not be tied to the native ones though
	// these are complete. They stand in their order, at a place that is a guess
	// (greenlets, a foreign stack).
	Unmerged bool
}

// Option changes what Merge leaves out.
type Option uint8

// HideInterpreter leaves out the interpreter's own C functions that lead to a
// run of Python frames: those directly outside of it.
const HideInterpreter Option = 1

// maxFrame bounds the C frame whose lower end is not known: the first after a
// switch of stacks.
const maxFrame = 1 << 20

// Merge puts Python frames in the place of the C frames that execute them.
func Merge(s *Stack, options Option) Merged {
	if s.Python == 0 || len(s.Native) == 0 {
		return only(s)
	}
	m := merger{stack: s, options: options, owned: make([][2]int, len(s.Native))}
	if anchored(s.Segments) {
		m.placeAnchored()
	} else {
		m.placeCounted()
	}
	return m.emit()
}

// only is the list of a stack that has one half at most.
func only(s *Stack) Merged {
	m := Merged{Frames: make([]Frame, 0, len(s.Native)+s.Python)}
	for i := range s.Native {
		m.Frames = appendNative(m.Frames, s, i)
	}
	for i := range s.Python {
		m.Frames = append(m.Frames, Frame{Python: true, Index: i})
	}
	return m
}

// appendNative adds a native frame, and outside of an operator's entry the
// operator: from there on everything happens in it.
func appendNative(to []Frame, s *Stack, i int) []Frame {
	to = append(to, Frame{Index: i})
	if s.Native[i].Operator {
		to = append(to, Frame{Operator: true, Index: i})
	}
	return to
}

func anchored(segments []Segment) bool {
	for _, s := range segments {
		if s.Anchor != 0 {
			return true
		}
	}
	return false
}

// merger decides which native frame stands for which Python frames.
type merger struct {
	stack   *Stack
	options Option
	// owned holds the Python frames [from, to) that replace a native frame, or
	// with before set stand in front of it; empty for the others.
	owned    [][2]int
	before   int // the native frame in front of which its frames stand, -1 for none
	placed   int // Python frames that have their place; the rest goes to the end
	unmerged bool
}

func (m *merger) own(native, to int) {
	if m.owned[native] == ([2]int{}) {
		m.owned[native] = [2]int{m.placed, to}
	}
	m.owned[native][1] = to
	m.placed = to
}

// placeAnchored gives each segment to the frame in which its anchor lies.
func (m *merger) placeAnchored() {
	m.before = -1
	at := 0
	for _, segment := range m.stack.Segments {
		if segment.End <= m.placed {
			continue // the loop has just begun, or is about to end
		}
		owner := m.ownerOf(segment.Anchor, at)
		if owner < 0 {
			break
		}
		m.own(owner, segment.End)
		at = owner
	}
	m.unmerged = m.placed < m.stack.Python && m.stack.NativeWhole && m.stack.PythonWhole
}

// ownerOf is the first frame from at on whose CFA is above the anchor, on the
// stack that the anchor is on. Segments come in the order of their C frames, so
// that frames before at are not asked again. -1 where there is none.
func (m *merger) ownerOf(anchor uint64, at int) int {
	native := m.stack.Native
	if anchor == 0 {
		return -1
	}
	for i := at; i < len(native); i++ {
		cfa := native[i].CFA
		if cfa == 0 || anchor >= cfa {
			continue
		}
		if lower, known := m.lowerEnd(i); known && anchor >= lower || !known && cfa-anchor < maxFrame {
			return i
		}
		// It lies below a frame of this stack: on another one, which a signal
		// handler may have left.
		for i+1 < len(native) && !native[i+1].Signal {
			i++
		}
	}
	return -1
}

// lowerEnd is where a frame ends: at the CFA of the one that it called.
func (m *merger) lowerEnd(i int) (uint64, bool) {
	native := m.stack.Native
	switch {
	case i == 0:
		return m.stack.SP, true
	case native[i].Signal || native[i-1].CFA == 0 || native[i-1].CFA > native[i].CFA:
		return 0, false
	}
	return native[i-1].CFA, true
}

// placeCounted is for versions without anchors (3.8, 3.9): there every Python
// frame has its own C frame of the interpreter loop, so they can be counted,
// provided that the symbol is known.
func (m *merger) placeCounted() {
	m.before = -1
	var loops []int
	first := -1
	for i, n := range m.stack.Native {
		if n.Eval {
			loops = append(loops, i)
		}
		if first < 0 && (n.Interpreter || n.Eval) {
			first = i
		}
	}
	// The leaf may be entering the loop, its Python frame not yet linked.
	if m.stack.NativeWhole && m.stack.PythonWhole && len(loops) == m.stack.Python+1 {
		loops = loops[1:]
	}
	fits := len(loops) == m.stack.Python ||
		!m.stack.NativeWhole && len(loops) < m.stack.Python ||
		!m.stack.PythonWhole && len(loops) > m.stack.Python
	if fits && len(loops) > 0 {
		for i, loop := range loops[:min(len(loops), m.stack.Python)] {
			m.own(loop, i+1)
		}
		return
	}
	// Above the interpreter's first C frame everything was called by Python.
	m.unmerged = true
	if first >= 0 {
		m.before = first
		m.own(first, m.stack.Python)
	}
}

func (m *merger) emit() Merged {
	out := Merged{Frames: make([]Frame, 0, len(m.stack.Native)+m.stack.Python), Unmerged: m.unmerged}
	hiding := false
	for i, n := range m.stack.Native {
		python := m.owned[i]
		for k := python[0]; k < python[1]; k++ {
			out.Frames = append(out.Frames, Frame{Python: true, Index: k})
		}
		owner := python[1] > python[0]
		if owner {
			hiding = m.options&HideInterpreter != 0
		}
		if !n.Interpreter {
			hiding = hiding && owner
		}
		if owner && i != m.before || hiding && n.Interpreter {
			continue
		}
		out.Frames = appendNative(out.Frames, m.stack, i)
	}
	for k := m.placed; k < m.stack.Python; k++ {
		out.Frames = append(out.Frames, Frame{Python: true, Index: k})
	}
	return out
}
