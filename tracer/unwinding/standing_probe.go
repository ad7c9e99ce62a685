package unwinding

import (
	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// bpf/unwind_probe.h once more: what uprobes hide from the walk.

// pageMask leaves an address its page.
const pageMask = ^uint64(4095)

// repair puts the address in place that a return probe replaced.
func (w *standing) repair() Outcome {
	frames := len(w.out.Frames)
	switch {
	case !inPage(w.code(w.pc), w.code(w.start.ProbePage)):
		if w.pc == 0 && frames > 0 {
			return ended
		}
		if !w.pushedAtEntry() {
			return Outcome(bpf.NativeWalkNativeOutcomeNATIVE_NO_MAPPING)
		}
	case frames == 0:
		// Where a single step runs is not told to those outside.
		if w.pc&^pageMask >= firstSlot(w.machine) {
			return byReturnProbe
		}
		if outcome := w.returnedToProbe(); outcome != goesOn {
			return outcome
		}
	default:
		stack := w.registers[unwind.SP]
		if w.machine != elf.MachineARM64 {
			stack -= 8
		}
		next, ok := w.nextReturn()
		if !ok || next.Stack > stack {
			return byReturnProbe
		}
		if next.Stack == stack {
			w.pc = next.Address
		}
	}
	w.flags |= uint32(bpf.SampleNativeFlagNATIVE_REPAIRED)
	return goesOn
}

// inPage reports whether an address is in a page; there is none at 0.
func inPage(address, page uint64) bool {
	return page != 0 && address&pageMask == page&pageMask
}

// firstSlot is the size of the slot that return probes return to.
func firstSlot(machine elf.Machine) uint64 {
	if machine == elf.MachineARM64 {
		return 4
	}
	return 128
}

// nextReturn is the innermost return probe that was not met yet; it is met then.
func (w *standing) nextReturn() (PendingReturn, bool) {
	if w.pending >= len(w.start.Pending) {
		return PendingReturn{}, false
	}
	w.pending++
	return w.start.Pending[w.pending-1], true
}

// returnedToProbe is for a thread whose innermost frame has returned to a return probe.
func (w *standing) returnedToProbe() Outcome {
	sp := w.registers[unwind.SP]
	w.caller, w.link = 1, false
	if w.machine == elf.MachineARM64 {
		next, ok := w.nextReturn()
		if !ok || next.Stack != sp {
			return byReturnProbe
		}
		w.pc = next.Address
		return goesOn
	}
	offset := w.pc &^ pageMask
	if pushes, ok := map[uint64]uint64{0: 0, 1: 8, 2: 16, 4: 24, 11: 24, 13: 24}[offset]; ok {
		if next, ok := w.nextReturn(); ok && next.Stack+8 == sp+pushes {
			w.registers[unwind.SP], w.pc = sp+pushes, next.Address
			return goesOn
		}
		w.pending = 0 // that one is yet to be met
	}
	// Behind the system call, and where r11 and then rcx are popped.
	above, ok := map[uint64]uint64{13: 16, 15: 8, 16: 0}[offset]
	if !ok {
		return byReturnProbe
	}
	if w.pc, ok = w.word(sp + above); !ok {
		return badRead
	}
	w.registers[unwind.SP] = sp + above + 8
	return goesOn
}

// pushedAtEntry reports whether the first frame was entered through a probed push, and
// goes to its caller then.
func (w *standing) pushedAtEntry() bool {
	sp := w.registers[unwind.SP]
	if w.machine == elf.MachineARM64 || len(w.out.Frames) != 1 || sp != w.out.SP+8 {
		return false
	}
	var code [1]byte
	if !w.memory(w.out.Frames[0].Pc, code[:]) || code[0] != 0xcc {
		return false
	}
	address, ok := w.word(sp)
	if !ok {
		return false
	}
	w.pc, w.registers[unwind.SP] = address, sp+8
	w.out.Frames[0].Cfa += 8
	return true
}
