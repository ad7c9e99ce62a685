package unwinding

import (
	"encoding/binary"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// The walk of bpf/unwind.h once more, from outside: of a thread that stands still, which
// no program will find on a CPU. Its registers are what it entered the kernel with, its
// memory is read, and none is stopped. Tests hold the two walks against each other.

// Memory reads a process's, and reports whether it could.
type Memory func(address uint64, to []byte) bool

// Start is where a walk from outside begins.
type Start struct {
	bpf.PythonWalkWalkStart
	// Pending are the return addresses that return probes have taken the place of, the
	// innermost first, and ProbePage is where they return to instead; 0: none.
	Pending   []PendingReturn
	ProbePage uint64
}

// PendingReturn is a return address that a return probe hides.
type PendingReturn struct{ Stack, Address uint64 }

// Stack is what a walk found, the leaf first.
type Stack struct {
	SP      uint64
	Frames  []bpf.SampleNativeFrame
	Outcome Outcome
}

// Rules are what the tables know of one process's code. It is for one look: what they
// say is remembered.
type Rules struct {
	unwinder *Unwinder
	pid      int
	known    map[uint64]found
	numbers  map[uint16]unwind.Rule // of the kernel's rules
}

// RulesOf are those of a process that was added.
func RulesOf(u *Unwinder, pid int) *Rules {
	return &Rules{unwinder: u, pid: pid, known: map[uint64]found{}}
}

// where is what there is at an address.
type where uint8

const (
	nowhere where = iota // no mapping
	unknownProcess
	compatProcess
	generatedCode // of which no rule is known
	noTable
	described // its rule may be None all the same
)

type found struct {
	where where
	rule  unwind.Rule
}

// at finds the rule for an address.
func (r *Rules) at(address uint64) found {
	f, ok := r.known[address]
	if !ok {
		f = r.find(address)
		r.known[address] = f
	}
	return f
}

func (r *Rules) find(address uint64) found {
	u := r.unwinder
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.processes[r.pid]
	switch {
	case t == nil || u.closed:
		return found{where: unknownProcess}
	case t.compat:
		return found{where: compatProcess}
	}
	for i := range t.mappings {
		if m := &t.mappings[i]; address >= m.start && address < m.end {
			return r.in(t, m, address-m.start)
		}
	}
	return found{where: nowhere}
}

// in finds it in one mapping. The lock is held.
func (r *Rules) in(t *processTable, m *mapping, offset uint64) found {
	from, generated := m.address, false
	var f *file
	if m.file == anonymous {
		address, ok := t.generated.at(*m)
		if !ok {
			return found{where: generatedCode}
		}
		f, from, generated = t.generated.file, address, true
	} else {
		for known := range t.files {
			if known.number == m.file {
				f = known
			}
		}
	}
	if f == nil || f.image == nil {
		return found{where: noTable}
	}
	leaves := &r.unwinder.room.leaves
	number, ok := f.image.RuleNumber(from+offset, func(n int) []byte { return leaves.leaf(f.image.first + n) })
	rule := r.rule(number)
	if generated && (!ok || rule.Kind == unwind.None) {
		return found{where: generatedCode}
	}
	if !ok {
		rule = unwind.Rule{}
	}
	return found{described, rule}
}

// rule is the one that has a number in the kernel. The lock is held.
func (r *Rules) rule(number uint16) unwind.Rule {
	if rule, ok := r.numbers[number]; ok {
		return rule
	}
	known := r.unwinder.room.rules.numbers
	r.numbers = make(map[uint16]unwind.Rule, len(known))
	for rule, is := range known {
		r.numbers[is.number] = rule
	}
	return r.numbers[number]
}

// standing is a walk that goes on.
type standing struct {
	rules   *Rules
	machine elf.Machine
	memory  Memory
	start   *Start
	out     Stack
	pending int // how many of start.Pending are behind it

	pc, lr     uint64
	registers  [4]uint64 // by unwind.Base
	known      [4]bool
	flags      uint32
	caller     uint64 // 1: pc is a return address, which may be the next function's
	link       bool   // lr is this frame's return address
	mostFrames int
}

// outcomes of bpf/unwind_maps.h.
const (
	goesOn        = Outcome(bpf.NativeWalkNativeOutcomeNATIVE_GOES_ON)
	ended         = Outcome(bpf.NativeWalkNativeOutcomeNATIVE_END)
	badRead       = Outcome(bpf.NativeWalkNativeOutcomeNATIVE_BAD_READ)
	noRegister    = Outcome(bpf.NativeWalkNativeOutcomeNATIVE_REGISTER)
	byReturnProbe = Outcome(bpf.NativeWalkNativeOutcomeNATIVE_RETURN_PROBE)
)

// Walk follows a thread's frames from its registers, up to a number of them.
func (r *Rules) Walk(machine elf.Machine, start *Start, memory Memory, most int) Stack {
	w := standing{rules: r, machine: machine, memory: memory, start: start, out: Stack{SP: start.Sp}, mostFrames: most, link: true}
	w.pc, w.lr = start.Pc, w.code(start.Lr)
	w.registers = [4]uint64{unwind.SP: start.Sp, unwind.FP: start.Fp, unwind.R10: start.R10, unwind.R13: start.R13}
	w.known = [4]bool{true, true, true, true}
	// Each frame takes a step, each return probe in the way another.
	for range most + len(start.Pending) + 1 {
		if w.out.Outcome = w.step(); w.out.Outcome != goesOn {
			return w.out
		}
	}
	w.out.Outcome = Outcome(bpf.NativeWalkNativeOutcomeNATIVE_MAX_FRAMES)
	return w.out
}

// code is an address without what pointer authentication signs it with.
func (w *standing) code(address uint64) uint64 {
	if w.machine == elf.MachineARM64 {
		return address & (1<<48 - 1)
	}
	return address
}

func (w *standing) word(address uint64) (uint64, bool) {
	var b [8]byte
	ok := w.memory(address, b[:])
	return binary.LittleEndian.Uint64(b[:]), ok
}

// step records the frame at pc and goes to its caller.
func (w *standing) step() Outcome {
	key := w.pc - w.caller
	if key>>63 != 0 {
		return Outcome(bpf.NativeWalkNativeOutcomeNATIVE_NO_MAPPING)
	}
	at := w.rules.at(key)
	switch at.where {
	case unknownProcess:
		return Outcome(bpf.NativeWalkNativeOutcomeNATIVE_NO_PROCESS)
	case compatProcess:
		return Outcome(bpf.NativeWalkNativeOutcomeNATIVE_COMPAT)
	case nowhere:
		return w.repair()
	}
	if len(w.out.Frames) >= w.mostFrames {
		return Outcome(bpf.NativeWalkNativeOutcomeNATIVE_MAX_FRAMES)
	}
	w.out.Frames = append(w.out.Frames, bpf.SampleNativeFrame{Pc: w.pc, Cfa: unknownCFA, Flags: w.flags})
	w.flags = 0
	switch {
	case at.where == generatedCode && w.inTrampoline():
		return w.byTrampoline()
	case at.where == generatedCode:
		return w.byFramePointer(Outcome(bpf.NativeWalkNativeOutcomeNATIVE_ANONYMOUS_CODE))
	case at.where == noTable:
		return w.byFramePointer(Outcome(bpf.NativeWalkNativeOutcomeNATIVE_NO_TABLE))
	}
	return w.byRule(&at.rule)
}

// unknownCFA is CFA_UNKNOWN.
const unknownCFA = ^uint32(0)

func (w *standing) foundCFA(cfa uint64) {
	if d := cfa - w.out.SP; d < uint64(unknownCFA) {
		w.out.Frames[len(w.out.Frames)-1].Cfa = uint32(d)
	}
}

// goTo makes the caller the frame at hand.
func (w *standing) goTo(pc, sp, fp uint64, fpKnown bool) {
	w.pc = w.code(pc)
	w.registers[unwind.SP], w.registers[unwind.FP] = sp, fp
	w.known = [4]bool{unwind.SP: true, unwind.FP: fpKnown}
	w.caller, w.link = 1, false
}

// inTrampoline reports whether the frame is one of CPython's trampolines for perf: what follows its call is
// add $8, %rsp; ret.
func (w *standing) inTrampoline() bool {
	if w.machine == elf.MachineARM64 || w.caller == 0 {
		return false // there they keep a frame record
	}
	code, ok := w.word(w.pc)
	return ok && code<<24 == 0xc308c48348<<24
}

func (w *standing) byTrampoline() Outcome {
	sp := w.registers[unwind.SP]
	address, ok := w.word(sp + 8)
	switch {
	case !ok:
		return Outcome(bpf.NativeWalkNativeOutcomeNATIVE_BAD_READ)
	case address == 0:
		return ended
	}
	w.foundCFA(sp + 16)
	w.goTo(address, sp+16, w.registers[unwind.FP], w.known[unwind.FP])
	return goesOn
}

// byFramePointer is for code that no table describes.
func (w *standing) byFramePointer(otherwise Outcome) Outcome {
	fp := w.registers[unwind.FP]
	if w.machine == elf.MachineARM64 {
		// mov x8, #__NR_rt_sigreturn; svc #0: the vDSO need not describe it.
		if code, ok := w.word(w.pc); ok && code == 0xd4000001d2801168 {
			return w.interrupted()
		}
	}
	if fp == 0 {
		return ended
	}
	if fp&7 != 0 || fp < w.registers[unwind.SP] {
		return otherwise
	}
	caller, ok := w.word(fp)
	address, also := w.word(fp + 8)
	if !ok || !also {
		return otherwise
	}
	if address == 0 {
		return ended
	}
	w.foundCFA(fp + 16)
	w.goTo(address, fp+16, caller, true)
	w.flags = uint32(bpf.SampleNativeFlagNATIVE_FRAME_POINTER)
	return goesOn
}

// interrupted goes to the frame that a signal interrupted: the kernel saved its registers
// on the stack.
func (w *standing) interrupted() Outcome {
	sp := w.registers[unwind.SP]
	var context [17 * 8]byte
	if w.machine == elf.MachineARM64 {
		if !w.memory(sp+544, context[:32]) {
			return badRead
		}
		w.goTo(binary.LittleEndian.Uint64(context[24:]), binary.LittleEndian.Uint64(context[16:]), binary.LittleEndian.Uint64(context[0:]), true)
		w.lr, w.link = w.code(binary.LittleEndian.Uint64(context[8:])), true
	} else {
		if !w.memory(sp+40, context[:]) {
			return badRead
		}
		register := func(n int) uint64 { return binary.LittleEndian.Uint64(context[8*n:]) }
		w.goTo(register(16), register(15), register(10), true)
		w.registers[unwind.R10], w.registers[unwind.R13] = register(2), register(5)
		w.lr, w.link = register(8), true
	}
	if w.registers[unwind.SP] > sp { // on a signal stack of its own the order begins anew
		w.foundCFA(w.registers[unwind.SP])
	}
	w.known = [4]bool{true, true, true, true}
	w.caller, w.flags = 0, uint32(bpf.SampleNativeFlagNATIVE_SIGNAL)
	return goesOn
}

// byRule goes to the caller of a frame that a table describes.
func (w *standing) byRule(rule *unwind.Rule) Outcome {
	sp := w.registers[unwind.SP]
	switch rule.Kind {
	case unwind.None:
		return Outcome(bpf.NativeWalkNativeOutcomeNATIVE_NO_ROW)
	case unwind.Signal:
		return w.interrupted()
	case unwind.Expression:
		return Outcome(bpf.NativeWalkNativeOutcomeNATIVE_EXPRESSION)
	}
	if rule.Kind == unwind.Register || int(rule.Register) >= len(w.known) || !w.known[rule.Register] {
		if rule.ReturnAddress == unwind.End {
			return ended
		}
		return noRegister
	}
	cfa, ok := w.cfa(rule)
	if !ok {
		return badRead
	}
	if rule.ReturnAddress == unwind.End {
		w.foundCFA(cfa)
		return ended
	}
	linked := rule.ReturnAddress == unwind.Link
	if linked && !w.link {
		return noRegister
	}
	// Only a function that keeps its return address in a register has no frame.
	if cfa < sp || cfa == sp && !linked {
		return Outcome(bpf.NativeWalkNativeOutcomeNATIVE_LOOP)
	}
	w.foundCFA(cfa)
	return w.leave(rule, cfa)
}

// cfa is the frame's address, false where it cannot be read.
func (w *standing) cfa(rule *unwind.Rule) (uint64, bool) {
	sp := w.registers[unwind.SP]
	if rule.Kind == unwind.PLT {
		if w.pc&15 >= uint64(uint32(rule.Aux)) {
			return sp + 16, true
		}
		return sp + 8, true
	}
	cfa, ok := w.registers[rule.Register], true
	if rule.Kind == unwind.Deref || rule.Kind == unwind.Inferred && rule.Aux != 0 {
		cfa, ok = w.word(cfa + uint64(int64(rule.Aux)))
	}
	return cfa + uint64(int64(rule.CFA)), ok
}

// leave goes to the caller of a frame whose address is known.
func (w *standing) leave(rule *unwind.Rule, cfa uint64) Outcome {
	fp, ok := w.registers[unwind.FP], true
	fpKnown := w.known[unwind.FP] && rule.FramePointer != unwind.Lost
	switch rule.FramePointer {
	case unwind.AtCFA:
		fp, ok = w.word(cfa + uint64(int64(rule.FPOffset)))
	case unwind.AtFP:
		fp, ok = w.word(fp + uint64(int64(rule.FPOffset)))
	}
	if !ok {
		return badRead
	}
	address := w.lr
	if rule.ReturnAddress != unwind.Link {
		slot := cfa - 8
		if w.machine == elf.MachineARM64 {
			slot = cfa + uint64(int64(rule.Aux))
		}
		if address, ok = w.word(slot); !ok {
			return badRead
		}
	}
	if address == 0 {
		return ended
	}
	w.goTo(address, cfa, fp, fpKnown)
	if rule.Kind != unwind.Inferred {
		return goesOn
	}
	w.flags = uint32(bpf.SampleNativeFlagNATIVE_INFERRED)
	if !w.behindCall() {
		return Outcome(bpf.NativeWalkNativeOutcomeNATIVE_NOT_A_CALL)
	}
	return goesOn
}

// behindCall reports whether an instruction that ends at pc can be a call.
func (w *standing) behindCall() bool {
	const page = ^uint64(4095)
	if w.machine == elf.MachineARM64 || w.start.ProbePage != 0 && w.pc&page == w.start.ProbePage&page {
		return true
	}
	var code [7]byte
	if !w.memory(w.pc-7, code[:]) {
		return false
	}
	if code[2] == 0xe8 || code[2] == 0xcc {
		return true
	}
	for _, size := range []int{2, 3, 4, 6, 7} { // ff /2, its first byte perhaps that of a probe
		if (code[7-size] == 0xff || code[7-size] == 0xcc) && code[8-size]&0x38 == 0x10 {
			return true
		}
	}
	return false
}
