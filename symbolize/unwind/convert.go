package unwind

import (
	"math"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// machine is what the DWARF numbers of the registers are.
type machine struct {
	elf.Machine
	sp, fp, ra uint64
}

var machines = map[elf.Machine]machine{
	elf.MachineX86_64: {elf.MachineX86_64, 7, 6, 16},
	elf.MachineARM64:  {elf.MachineARM64, 31, 29, 30},
}

// rdi is where glibc's vfork keeps its return address on x86-64: parent and child have one
// stack. Both are there for as long as the child takes to call exec.
const rdi = 5

func (m *machine) base(register uint64) (Base, bool) {
	switch {
	case register == m.sp:
		return SP, true
	case register == m.fp:
		return FP, true
	case m.Machine == elf.MachineX86_64 && register == 10:
		return R10, true
	case m.Machine == elf.MachineX86_64 && register == 13:
		return R13, true
	}
	return 0, false
}

// entry is the state before a CIE's initial instructions.
func (m machine) entry() state { return state{} }

// how says where a register of the caller is.
type how uint8

const (
	unspecified how = iota
	undefined
	sameValue
	atOffset     // at CFA + offset
	atExpression // at the address that the expression gives
	inRegister   // in the register of that number
	elsewhere    // computed
)

type place struct {
	how        how
	offset     int64
	expression string
}

// state is what holds from one instruction on: the columns of the table that
// matter to a walk.
type state struct {
	register   uint64 // CFA = register + offset, unless there is an expression
	offset     int64
	expression string
	fp, ra     place
}

// interpreter executes call frame instructions.
type interpreter struct {
	common  *common
	machine machine
	state   state
	saved   []state
}

const maxSavedStates = 64

// DW_CFA_*: DWARF 5, section 6.4.2; the GNU extensions and that of arm64.
const (
	cfaAdvance        = 0x40
	cfaOffset         = 0x80
	cfaRestore        = 0xc0
	cfaNop            = 0x00
	cfaSetLoc         = 0x01
	cfaAdvance1       = 0x02
	cfaAdvance2       = 0x03
	cfaAdvance4       = 0x04
	cfaOffsetExtended = 0x05
	cfaRestoreExt     = 0x06
	cfaUndefined      = 0x07
	cfaSameValue      = 0x08
	cfaRegister       = 0x09
	cfaRememberState  = 0x0a
	cfaRestoreState   = 0x0b
	cfaDefCFA         = 0x0c
	cfaDefRegister    = 0x0d
	cfaDefOffset      = 0x0e
	cfaDefExpression  = 0x0f
	cfaExpression     = 0x10
	cfaOffsetExtSF    = 0x11
	cfaDefCFASF       = 0x12
	cfaDefOffsetSF    = 0x13
	cfaValOffset      = 0x14
	cfaValOffsetSF    = 0x15
	cfaValExpression  = 0x16
	cfaNegateRAState  = 0x2d // arm64: pointer authentication, undone by masking
	cfaGNUArgsSize    = 0x2e
	cfaGNUNegOffset   = 0x2f
)

// run executes instructions that begin at the address start and yields each
// state that holds somewhere below end, for as long as yield looks at it. It reports whether it understood all.
func (m *interpreter) run(instructions []byte, start, end uint64, yield func(uint64, *state)) bool {
	r := reader{data: instructions}
	at := start
	for !r.done() && !r.bad {
		op := r.u8()
		var next uint64
		switch {
		case op&0xc0 == cfaAdvance:
			next = at + uint64(op&0x3f)*m.common.codeAlign
		case op == cfaAdvance1:
			next = at + uint64(r.u8())*m.common.codeAlign
		case op == cfaAdvance2:
			next = at + uint64(r.u16())*m.common.codeAlign
		case op == cfaAdvance4:
			next = at + uint64(r.u32())*m.common.codeAlign
		case op == cfaSetLoc:
			return false // no compiler writes it
		default:
			if !m.execute(op, &r) {
				return false
			}
			continue
		}
		if next > at {
			yield(at, &m.state)
		}
		if at = next; at >= end {
			return !r.bad
		}
	}
	yield(at, &m.state)
	return !r.bad
}

func (m *interpreter) execute(op byte, r *reader) bool {
	s, c := &m.state, m.common
	switch op & 0xc0 {
	case cfaOffset:
		m.set(uint64(op&0x3f), place{how: atOffset, offset: int64(r.uleb()) * c.dataAlign})
		return true
	case cfaRestore:
		m.restore(uint64(op & 0x3f))
		return true
	}
	switch op {
	case cfaNop, cfaNegateRAState:
	case cfaGNUArgsSize:
		r.uleb()
	case cfaDefCFA:
		s.register, s.offset, s.expression = r.uleb(), int64(r.uleb()), ""
	case cfaDefCFASF:
		s.register, s.offset, s.expression = r.uleb(), r.sleb()*c.dataAlign, ""
	case cfaDefRegister:
		s.register, s.expression = r.uleb(), ""
	case cfaDefOffset:
		s.offset, s.expression = int64(r.uleb()), ""
	case cfaDefOffsetSF:
		s.offset, s.expression = r.sleb()*c.dataAlign, ""
	case cfaDefExpression:
		s.expression = m.block(r)
	case cfaRememberState:
		if len(m.saved) >= maxSavedStates {
			return false
		}
		m.saved = append(m.saved, *s)
	case cfaRestoreState:
		if len(m.saved) == 0 {
			return false
		}
		*s, m.saved = m.saved[len(m.saved)-1], m.saved[:len(m.saved)-1]
	default:
		return m.executeRegister(op, r)
	}
	return true
}

// executeRegister executes the instructions that say where a register is.
func (m *interpreter) executeRegister(op byte, r *reader) bool {
	c, register := m.common, r.uleb()
	switch op {
	case cfaOffsetExtended:
		m.set(register, place{how: atOffset, offset: int64(r.uleb()) * c.dataAlign})
	case cfaOffsetExtSF:
		m.set(register, place{how: atOffset, offset: r.sleb() * c.dataAlign})
	case cfaGNUNegOffset:
		m.set(register, place{how: atOffset, offset: -int64(r.uleb()) * c.dataAlign})
	case cfaRestoreExt:
		m.restore(register)
	case cfaUndefined:
		m.set(register, place{how: undefined})
	case cfaSameValue:
		m.set(register, place{how: sameValue})
	case cfaRegister:
		m.set(register, place{how: inRegister, offset: int64(r.uleb())})
	case cfaValOffset:
		r.uleb()
		m.set(register, place{how: elsewhere})
	case cfaValOffsetSF:
		r.sleb()
		m.set(register, place{how: elsewhere})
	case cfaExpression:
		m.set(register, place{how: atExpression, expression: m.block(r)})
	case cfaValExpression:
		m.block(r)
		m.set(register, place{how: elsewhere})
	default:
		return false
	}
	return true
}

func (m *interpreter) block(r *reader) string {
	length := r.uleb()
	if length > uint64(len(r.data)) {
		r.bad = true
		return ""
	}
	return string(r.take(int(length)))
}

func (m *interpreter) set(register uint64, p place) {
	switch register {
	case m.machine.fp:
		m.state.fp = p
	case m.machine.ra:
		m.state.ra = p
	}
}

func (m *interpreter) restore(register uint64) {
	switch register {
	case m.machine.fp:
		m.state.fp = m.common.initial.fp
	case m.machine.ra:
		m.state.ra = m.common.initial.ra
	}
}

// rule is what a walk has to do in a state.
func (m *machine) rule(s *state, signal bool) Rule {
	if signal {
		if m.Machine == elf.MachineARM64 || s.expression == signalExpression {
			return Rule{Kind: Signal}
		}
		return Rule{Kind: Expression}
	}
	r := m.frameAddress(s)
	if r.Kind == Expression || r.Kind == Register {
		if s.ra.how == undefined {
			r.ReturnAddress = End
		}
		return r
	}
	if !m.returnAddress(&r, &s.ra) {
		return Rule{Kind: Expression}
	}
	m.framePointer(&r, &s.fp)
	return r
}

func (m *machine) frameAddress(s *state) Rule {
	if s.expression != "" {
		return m.fromExpression(s.expression)
	}
	base, ok := m.base(s.register)
	if !ok {
		return Rule{Kind: Register}
	}
	if !fits(s.offset) {
		return Rule{Kind: Expression}
	}
	return Rule{Kind: Offset, Register: base, CFA: int32(s.offset)}
}

func (m *machine) returnAddress(r *Rule, p *place) bool {
	arm := m.Machine == elf.MachineARM64
	switch {
	case p.how == undefined:
		r.ReturnAddress = End
	case arm && (p.how == unspecified || p.how == sameValue):
		r.ReturnAddress = Link
	case arm && p.how == atOffset && fits(p.offset) && r.Kind == Offset:
		r.Aux = int32(p.offset)
	case !arm && p.how == inRegister && p.offset == rdi:
		r.ReturnAddress = Link
	case !arm && p.how == atOffset && p.offset == -8:
	default:
		return false
	}
	return true
}

func (m *machine) framePointer(r *Rule, p *place) {
	switch {
	case p.how == unspecified, p.how == sameValue:
	case p.how == atOffset && fits(p.offset):
		r.FramePointer, r.FPOffset = AtCFA, int32(p.offset)
	case p.how == atExpression:
		base, offset, rest, ok := m.baseOffset(p.expression)
		if !ok || rest != "" || base != FP {
			r.FramePointer = Lost
			return
		}
		r.FramePointer, r.FPOffset = AtFP, offset
	default:
		r.FramePointer = Lost
	}
}

func fits(v int64) bool { return v >= math.MinInt32 && v <= math.MaxInt32 }
