package site

import "fmt"

// entryWindow is how far from the function's first byte a site is looked for.
const entryWindow = 64

// PlanEntry returns the cheapest site that every call of the function passes
// exactly once with the needs in place: the first cheap instruction of the
// straight line that begins at the entry, or the first instruction.
//
// A site is refused where a direct branch anywhere in the known code leads to
// it or to an instruction before it. The targets of jump tables are not
// looked at: compilers do not put them into the straight line before a
// function's first branch.
//
// Errors: ErrUndecodable, ErrEntryInLoop, ErrNoEntrySite.
func PlanEntry(f Function, n Need) (Entry, error) {
	p, err := newProgram(&f, entryWindow)
	if err != nil {
		return Entry{}, err
	}
	defer p.release()
	limit, ok := p.backEdge()
	if !ok {
		return Entry{}, fmt.Errorf("%w: branch into an instruction", ErrUndecodable)
	}
	if limit == 0 {
		return Entry{}, ErrEntryInLoop
	}
	var longNop *Entry
	walk := line{arch: f.Arch, need: n, state: state{spKnown: true}}
	for i := int32(0); i < p.first[1]; i++ {
		in := &p.ins[i]
		if in.off >= entryWindow || in.off >= limit || !walk.holds() || n.Before > 0 && uint64(in.off) >= n.Before {
			break
		}
		e := Entry{Offset: uint64(in.off), Displacement: walk.state.sp, Cost: CostEmulated}
		switch {
		case in.grade == gradeEmulated:
			e.Reason = p.reasonEntry(i)
			return e, nil
		case !n.LongNops || longNop != nil:
		case in.grade == gradeNop5 && walk.start:
			e.Cost, e.Reason = CostNop5, p.reasonEntry(i)
			return e, nil
		case in.grade == gradeLongNop:
			e.Reason = p.reasonEntry(i)
			longNop = &e
		}
		if in.flow != flowNext {
			break
		}
		walk.pass(in, p.frags[0].Code)
	}
	if longNop != nil {
		return *longNop, nil
	}
	if p.ins[0].grade == gradeRefused {
		return Entry{}, fmt.Errorf("%w: the kernel refuses the first instruction", ErrNoEntrySite)
	}
	return Entry{Cost: CostStepped, Reason: p.reasonEntry(0) + ", no cheap instruction follows"}, nil
}

// backEdge returns the lowest offset in the body that a direct branch leads
// to, or the length of the body; false where one leads into the middle of an
// instruction, so that other instructions run than were decoded.
func (p *program) backEdge() (uint32, bool) {
	low := uint64(len(p.fn.Code))
	for i := range p.ins {
		in := &p.ins[i]
		if in.flow == flowJump || in.flow == flowCond {
			if p.find(in.target) == -2 {
				return 0, false
			}
			low = min(low, in.target-p.fn.Address)
		}
	}
	return uint32(low), true
}

// line is what the instructions passed so far have left of the needs.
type line struct {
	arch   Arch
	need   Need
	state  state
	writes uint32
	stored bool // stack arguments may have been overwritten
	memory bool // so may memory that arguments point to
	link   bool // arm64: the link register was used
	moved  bool
	start  bool // nothing but landing marks (endbr64) so far
	passed int
}

// pass notes one skipped instruction.
func (l *line) pass(in *insn, code []byte) {
	l.start = (l.passed == 0 || l.start) && isLandingMark(l.arch, code[in.off:in.off+uint32(in.size)])
	l.passed++
	switch in.store {
	case storeSP:
		l.stored = l.stored || in.storeDisp-l.state.sp >= 0
	case storeFP:
		l.stored = l.stored || !l.state.fpKnown || in.storeDisp-l.state.fp >= 0
	case storeFixed:
		l.memory = true
	case storeOther:
		l.stored = true
	}
	l.memory = l.memory || l.stored
	l.writes |= in.writes
	l.link = l.link || in.linkUse
	l.state = l.state.step(in)
	l.moved = l.moved || !l.state.spKnown || l.state.sp != 0
}

// holds reports whether the needs are in place before the next instruction.
func (l *line) holds() bool {
	if l.passed == 0 {
		l.start = true
		return true
	}
	if !l.state.spKnown || l.writes&argMask(l.arch, l.need.Args) != 0 {
		return false
	}
	if l.need.Stack && l.stored || l.need.Memory && l.memory {
		return false
	}
	return !l.need.Return || !l.moved && (l.arch != ARM64 || !l.link)
}

// argMask turns argument numbers into registers.
func argMask(arch Arch, args uint8) uint32 {
	if arch == ARM64 {
		return uint32(args)
	}
	var m uint32
	for i, r := range [...]uint{regDI, regSI, regDX, regCX, 8, 9} {
		m |= uint32(args) >> i & 1 << r
	}
	return m
}
