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
	h := heights{code: code, address: address, covered: make([]bool, len(code)), starts: map[int]bool{}, seen: make([]int32, len(code))}
	for at := 0; at < len(code); {
		if h.covered[at] {
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
	var in insn
	if decodeAMD64(b, 0, 0, &in) && in.nop {
		return int(in.size)
	}
	return 0
}

type heights struct {
	code    []byte
	address uint64
	covered []bool       // bytes of the functions that are believed
	starts  map[int]bool // their first bytes
	found   []Height

	// Of the function that is looked at: seen[offset]-1 is the visit's number.
	seen   []int32
	visits []visit
}

// visit is an instruction and the state before it.
type visit struct {
	at int
	height
}

// pass is the first offset behind an instruction that does not go on.
func (h *heights) pass(at int) int {
	var in insn
	for at < len(h.code) && !h.covered[at] {
		if !decodeAMD64(h.code, at, h.address, &in) {
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
	size      uint8
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
	s.size = max(s.size, o.size)
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
	defer h.forget()
	todo := []visit{{start, height{state: state{spKnown: true}}}}
	returns, steps := 0, 0
	for len(todo) > 0 {
		e := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if e.at < 0 || e.at >= len(h.code) || len(h.visits) > maxFunction {
			return false
		}
		if number := h.seen[e.at]; number > 0 {
			before := h.visits[number-1].height
			met, sound := before.meet(e.height)
			if !sound {
				return false
			}
			if met == before {
				continue
			}
			e.height = met
		}
		var in insn
		if !decodeAMD64(h.code, e.at, h.address, &in) {
			return false
		}
		if h.covered[e.at] {
			// Into another function: as a whole, at its start, or not at all.
			if !h.starts[e.at] || e.sp != 0 || !e.spKnown {
				return false
			}
			continue
		}
		e.size = in.size
		h.visit(e)
		if steps++; steps > 4*maxFunction {
			return false
		}
		after := visit{e.at + int(in.size), h.after(e.at, e.height, &in)}
		switch in.flow {
		case flowReturn:
			if !e.spKnown || e.sp != 0 {
				return false
			}
			returns++
		case flowJump, flowCond:
			target := visit{int(int64(in.target - h.address)), after.height}
			if target.at >= 0 && target.at < len(h.code) {
				todo = append(todo, target)
			} // else a tail call, or a part of the function that lies elsewhere
			if in.flow == flowCond {
				todo = append(todo, after)
			}
		case flowJumpIndirect, flowStop:
		case flowCall, flowCallIndirect:
			if !h.endsAt(after.at) {
				todo = append(todo, after)
			}
		default:
			todo = append(todo, after)
		}
	}
	if returns > 0 {
		h.take(start)
	}
	return returns > 0
}

func (h *heights) visit(v visit) {
	if h.seen[v.at] == 0 {
		h.visits = append(h.visits, v)
		h.seen[v.at] = int32(len(h.visits))
	}
	h.visits[h.seen[v.at]-1] = v
}

func (h *heights) forget() {
	for _, v := range h.visits {
		h.seen[v.at] = 0
	}
	h.visits = h.visits[:0]
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

// after is the state after the instruction at an offset.
func (h *heights) after(at int, before height, in *insn) height {
	n := before
	if in.flow == flowCall || in.flow == flowCallIndirect {
		if !preserved(before.held.in) {
			n.held = held{}
		}
		return n // both pointers are as before when it returns
	}
	n.state = before.step(in)
	h.follow(at, before, &n, in)
	switch code := h.code[at : at+int(in.size)]; {
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
	case len(code) >= 4 && code[0] == 0x48 && code[1] == 0x89 && code[2]&0x38 == 0x28 && in.store == storeSP: // mov %rbp, n(%rsp)
		if slot := before.sp - in.storeDisp; !before.fpChanged && before.fpSaved == 0 && before.spKnown && slot > 0 {
			n.fpSaved = slot
		}
	case in.writes&maskBP != 0:
		n.fpChanged = true
	}
	return n
}

// take makes rows of a function's instructions.
func (h *heights) take(start int) {
	h.starts[start] = true
	end, last := -1, Height{}
	for s := range h.ordered() {
		at := s.at
		if end >= 0 && at != end {
			h.found = append(h.found, Height{Address: h.address + uint64(end)})
			last = Height{}
		}
		now := s.row()
		if now != last {
			last = now
			now.Address = h.address + uint64(at)
			h.found = append(h.found, now)
		}
		end = at + int(s.size)
		for i := at; i < end; i++ {
			h.covered[i] = true
		}
	}
	h.found = append(h.found, Height{Address: h.address + uint64(end)})
}

// ordered yields the visits in the order of their offsets. Nearly all functions
// are in one piece: to look at each of its bytes is faster than to sort.
func (h *heights) ordered() iter.Seq[*visit] {
	first, last := len(h.code), 0
	for i := range h.visits {
		first, last = min(first, h.visits[i].at), max(last, h.visits[i].at)
	}
	if last-first > 64*len(h.visits) {
		numbers := make([]int32, len(h.visits))
		for i := range numbers {
			numbers[i] = int32(i)
		}
		slices.SortFunc(numbers, func(a, b int32) int { return cmp.Compare(h.visits[a].at, h.visits[b].at) })
		return func(yield func(*visit) bool) {
			for _, number := range numbers {
				if !yield(&h.visits[number]) {
					return
				}
			}
		}
	}
	return func(yield func(*visit) bool) {
		for _, number := range h.seen[first : last+1] {
			if number > 0 && !yield(&h.visits[number-1]) {
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
