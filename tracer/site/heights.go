package site

import (
	"cmp"
	"iter"
	"slices"
)

// Height says where a function's frame is, from one of its instructions on:
// the CFA is Offset above the stack pointer, above the frame pointer, or above
// what lies in memory Slot above the stack pointer.
type Height struct {
	Address uint64
	Known   bool // false from here on: no code that was understood
	ByFP    bool
	Slot    int32 // 0: not through memory
	Offset  int32
	// The caller's frame pointer is still in its register, at SavedFP from the
	// CFA, or lost.
	FP      FramePointer
	SavedFP int32
}

// FramePointer is where a caller's frame pointer is.
type FramePointer uint8

// The places of a frame pointer.
const (
	FPInRegister FramePointer = iota
	FPSaved
	FPLost
)

// Heights follows the stack pointer through x86-64 code that no frame
// description covers, as hand-written kernels (the MKL inside PyTorch's wheels
// is a tenth of its code). A function is believed only if it returns, and on
// every way to a return the stack pointer is back where it was, so that a piece
// of a function that is taken for a whole one is found out. The result is ordered by address.
// Of more than 16 MiB without a description there is none.
func Heights(code []byte, address uint64) []Height {
	if len(code) > maxHeights {
		return nil
	}
	h := heights{code: code, address: address, marks: make([]mark, len(code))}
	for at := 0; at < len(code); {
		if h.marks[at].covered() {
			at++
			continue
		}
		if n := padding(code[at:]); n > 0 {
			at += n
			continue
		}
		if (at == 0 || (address+uint64(at))%functionAlignment == 0) && h.function(at) {
			continue
		}
		at = h.pass(at)
	}
	slices.SortFunc(h.found, func(a, b Height) int { return cmp.Compare(a.Address, b.Address) })
	return h.found
}

const (
	functionAlignment = 16
	// maxFunction bounds the instructions of one function.
	maxFunction = 1 << 17
	// maxHeights bounds the code: what is larger is device code in a segment that
	// is executable by mistake (270 MB in libcublasLt).
	maxHeights = 16 << 20
)

// padding is the length of what aligns functions at the start of b.
func padding(b []byte) int {
	switch b[0] {
	case 0x00, 0xcc, 0x90:
		return 1
	}
	var e encoding
	if parseAMD64(b, &e) && e.nop() {
		return e.size
	}
	return 0
}

// heights is a piece of code and what is known of it.
type heights struct {
	code    []byte
	address uint64
	marks   []mark // of each byte
	found   []Height

	// Of the function that is looked at.
	states  []height // those that marks name by their number
	visited []int32  // the offsets of its instructions
	todo    []visit  // from where ways remain to be followed
	returns int
	steps   int
}

// visit is an instruction and the number of the state before it.
type visit struct{ at, state int32 }

// mark is what is known of a byte: nothing, that it belongs to a function that is
// believed, or that an instruction of the function that is looked at begins with
// it, of what size, and the number of the state before it. Most instructions
// change nothing, so that a state is that of many.
type mark uint32

const (
	unmarked      mark = 0
	coveredByte   mark = 1 << 31
	functionStart      = coveredByte | 1

	sizeBits = 4 // no instruction has more than 15 bytes
)

func instructionMark(state int32, size int) mark { return mark(state)<<sizeBits | mark(size) }

func (m mark) covered() bool { return m&coveredByte != 0 }

func (m mark) instruction() bool { return m != unmarked && !m.covered() }

func (m mark) size() int { return int(m & (1<<sizeBits - 1)) }

func (m mark) state() int32 { return int32(m >> sizeBits) }

// pass is the first offset behind an instruction that does not go on.
func (h *heights) pass(at int) int {
	var in insn
	for at < len(h.code) && !h.marks[at].covered() {
		if !branchAMD64(h.code, at, h.address, &in) {
			return at + 1
		}
		at += int(in.size)
		if !in.goesOn() {
			break
		}
	}
	return at
}

// height is the state before an instruction.
type height struct {
	state
	fpChanged bool  // the register is the function's own
	fpSaved   int32 // how far below the return address it was saved, 0: it was not

	// Where the stack was realigned, functions keep the old stack pointer, slotSP
	// below the return address, in memory slot above the new one.
	slotted      bool
	slot, slotSP int32
	held         held
}

// held is a register, other than the frame pointer, in which a function has a
// stack pointer: the old one while it realigns the stack, or the new one, above
// which it will find the old one in memory.
type held struct {
	in     int8  // its number; 0, which rax is, for none
	toSlot bool  // from the slot on; else below the return address
	at     int32 // how far
}

// meet is what holds whichever way an instruction was reached by; not sound
// where the ways disagree about the stack pointer.
func (s height) meet(o height) (height, bool) {
	sound := !s.spKnown || !o.spKnown || s.sp == o.sp
	s.state = s.state.meet(o.state)
	s.fpChanged = s.fpChanged || o.fpChanged
	if s.fpSaved != o.fpSaved {
		s.fpSaved = 0
	}
	if s.slotted != o.slotted || s.slot != o.slot || s.slotSP != o.slotSP {
		s = s.withoutSlot()
	}
	if s.held != o.held {
		s.held = held{}
	}
	return s, sound
}

// function explores the function at an offset, and takes it if it is sound.
func (h *heights) function(start int) bool {
	h.returns, h.steps = 0, 0
	h.states, h.visited = append(h.states[:0], height{state: state{spKnown: true}}), h.visited[:0]
	h.todo = append(h.todo[:0], visit{at: int32(start)})
	for len(h.todo) > 0 {
		v := h.todo[len(h.todo)-1]
		h.todo = h.todo[:len(h.todo)-1]
		if !h.explore(int(v.at), v.state) {
			h.forget()
			return false
		}
	}
	if h.returns == 0 {
		h.forget()
		return false
	}
	h.take(start)
	return true
}

// explore follows one way, from the instruction at an offset and the state before
// it on, until the way is at its end or joins another in a state that is known
// there. Other ways that it meets go into todo. It reports whether all is sound.
func (h *heights) explore(at int, number int32) bool {
	now := h.states[number]
	become := func(s height) {
		if s != now {
			now, number = s, int32(len(h.states))
			h.states = append(h.states, s)
		}
	}
	var e encoding
	var in insn
	for {
		if at < 0 || at >= len(h.code) || len(h.visited) > maxFunction {
			return false
		}
		switch m := h.marks[at]; {
		case m == unmarked:
			h.visited = append(h.visited, int32(at))
		case m.covered():
			// Into another function: as a whole, at its start, or not at all.
			return m == functionStart && now.sp == 0 && now.spKnown
		case m.state() == number:
			return true
		default:
			before := h.states[m.state()]
			met, sound := before.meet(now)
			if !sound {
				return false
			}
			if met == before {
				return true
			}
			become(met)
		}
		if !h.decode(at, &e, &in) {
			return false
		}
		h.marks[at] = instructionMark(number, e.size)
		if h.steps++; h.steps > 4*maxFunction {
			return false
		}
		if in.flow == flowReturn {
			h.returns++
			return now.spKnown && now.sp == 0
		}
		if in.flow != flowNext || now.changedBy(&e, &in) {
			become(h.after(at, now, &e, &in))
		}
		at += e.size
		switch in.flow {
		case flowJump:
			target, ok := h.within(in.target)
			if !ok {
				return true // a tail call, or a part of the function that lies elsewhere
			}
			at = target
		case flowCond:
			if target, ok := h.within(in.target); ok {
				h.todo = append(h.todo, visit{int32(target), number})
			}
		case flowJumpIndirect, flowStop:
			return true
		case flowCall, flowCallIndirect:
			if h.endsAt(at) {
				return true
			}
		}
	}
}

// decode reads of an instruction what explore asks for: no grade, no load.
func (h *heights) decode(at int, e *encoding, in *insn) bool {
	if !parseAMD64(h.code[at:], e) {
		return false
	}
	*in = insn{flow: flowAMD64(e), writes: writesAMD64(e)}
	switch in.flow {
	case flowJump, flowCond, flowCall:
		in.target = h.address + uint64(at+e.size) + uint64(e.imm)
	}
	stackAMD64(e, in)
	return true
}

// within is the offset of an address in the code.
func (h *heights) within(address uint64) (int, bool) {
	at := address - h.address
	return int(at), at < uint64(len(h.code))
}

func (h *heights) forget() {
	for _, at := range h.visited {
		h.marks[at] = unmarked
	}
}

// endsAt reports whether the code before an offset is followed by what looks
// like the next function: then a call there does not return.
func (h *heights) endsAt(at int) bool {
	begin := at
	for at < len(h.code) && (h.address+uint64(at))%functionAlignment != 0 {
		n := padding(h.code[at:])
		if n == 0 {
			return false
		}
		at += n
	}
	return at > begin || at == len(h.code)
}

// changedBy reports whether an instruction may change the state: few do.
func (s *height) changedBy(e *encoding, in *insn) bool {
	return in.sp != moveNone || in.fp != moveNone || in.writes&(maskBP|1<<s.held.in&^maskAX) != 0 || e.wideMove()
}

// after is the state after the instruction at an offset.
func (h *heights) after(at int, before height, e *encoding, in *insn) height {
	n := before
	if in.flow == flowCall || in.flow == flowCallIndirect {
		if !preserved(before.held.in) {
			n.held = held{}
		}
		return n // both pointers are as before when it returns
	}
	n.state = before.step(in)
	n.follow(before, e, in)
	switch code := h.code[at : at+e.size]; {
	case len(code) == 1 && code[0] == 0x55: // push %rbp
		if !before.fpChanged && before.fpSaved == 0 && n.spKnown {
			n.fpSaved = n.sp
		}
	case len(code) == 1 && code[0] == 0x5d: // pop %rbp
		if before.fpSaved != 0 && before.spKnown && before.sp == before.fpSaved {
			n.fpChanged, n.fpSaved = false, 0
		} else {
			n.fpChanged = true
		}
	case e.wideMove() && e.opcode == 0x89 && e.reg == regBP && e.onStack(): // mov %rbp, n(%rsp)
		if slot := before.sp - e.disp; !before.fpChanged && before.fpSaved == 0 && before.spKnown && slot > 0 {
			n.fpSaved = slot
		}
	case in.writes&maskBP != 0:
		n.fpChanged = true
	}
	return n
}

// take makes rows of a function's instructions, and covers them.
func (h *heights) take(start int) {
	end, number, last := -1, int32(-1), Height{}
	for at := range h.ordered() {
		m := h.marks[at]
		if end >= 0 && at != end {
			h.found = append(h.found, Height{Address: h.address + uint64(end)})
			number, last = -1, Height{}
		}
		if m.state() != number {
			number = m.state()
			if now := h.states[number].row(); now != last {
				last = now
				now.Address = h.address + uint64(at)
				h.found = append(h.found, now)
			}
		}
		end = at + m.size()
		h.marks[at] = coveredByte
		for i := at + 1; i < end; i++ {
			if h.marks[i] == unmarked { // else an instruction within this one, whose turn comes
				h.marks[i] = coveredByte
			}
		}
	}
	h.marks[start] = functionStart
	h.found = append(h.found, Height{Address: h.address + uint64(end)})
}

// ordered yields the offsets of the function's instructions in their order. Nearly
// all functions are in one piece: to look at each of its bytes is faster than to
// sort.
func (h *heights) ordered() iter.Seq[int] {
	first, last := slices.Min(h.visited), slices.Max(h.visited)
	if int(last-first) > 64*len(h.visited) {
		slices.Sort(h.visited)
		return func(yield func(int) bool) {
			for _, at := range h.visited {
				if !yield(int(at)) {
					return
				}
			}
		}
	}
	return func(yield func(int) bool) {
		for at := int(first); at <= int(last); at++ {
			if h.marks[at].instruction() && !yield(at) {
				return
			}
		}
	}
}

// row is what a walk needs to know: the CFA is a word above where the return
// address is, from which the states count.
func (s *height) row() Height {
	const word = 8
	r := Height{}
	switch {
	case s.spKnown:
		r.Known, r.Offset = true, s.sp+word
	case s.slotted && s.slot != 0:
		r.Known, r.Slot, r.Offset = true, s.slot, s.slotSP+word
	case s.fpKnown:
		r.Known, r.ByFP, r.Offset = true, true, s.fp+word
	default:
		return r
	}
	switch {
	case s.fpChanged && s.fpSaved != 0:
		r.FP, r.SavedFP = FPSaved, -s.fpSaved-word
	case s.fpChanged:
		r.FP = FPLost
	}
	return r
}
