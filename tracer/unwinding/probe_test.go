package unwinding

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

const probePage = uint64(0x7fffffff0000)

// A thread that a return probe has caught is in the first slot of the kernel's page: on
// its way into the system call, in it, and after it, when the probe is no longer pending.
// Before, that passed for the instruction that was last single-stepped there.
func TestAThreadThatAReturnProbeHasCaughtIsWithItsCaller(t *testing.T) {
	const stale = 5 // of the thread's last single step
	s := newTape(t, "x86", pushed, pushed, pushed, ending)
	run := func(offset uint64, pending []uint64, words ...uint64) nativeStack {
		s.stack = nil
		s.put(0, words...)
		s.say('c')
		s.say('m', uint64(stackStart), s.stack)
		s.say('u', probePage, code(stale), pending)
		return s.from(probePage+offset, 0)
	}
	const rax, rcx, r11 = 0xa, 0xc, 0xb
	caller := []uint64{0, probePage, 0, code(3), 0} // of code(1): its slot, then what it returns to
	outer := func(sp uint64) []uint64 { return []uint64{sp + 8, code(2)} }
	for offset, pushes := range map[uint64][]uint64{0: {}, 1: {rax}, 2: {rcx, rax}, 4: {r11, rcx, rax}, 11: {r11, rcx, rax},
		13: {r11, rcx, rax}} {
		sp := uint64(stackStart) + 8*uint64(len(pushes)) // behind the return
		pending := append([]uint64{sp - 8, code(1)}, outer(sp)...)
		stack := run(offset, pending, append(pushes, caller...)...)
		stack.check(t, "native_end", code(1), code(2), code(3))
		if stack.Frame[0].Flags != 4 {
			t.Errorf("at %d, before: flags %d of the first frame", offset, stack.Frame[0].Flags)
		}
	}
	// One probed function jumped into another: two are pending on one return.
	stack := run(0, []uint64{stackStart - 8, probePage, stackStart - 8, code(1), stackStart + 8, code(2)}, caller...)
	stack.check(t, "native_end", code(1), code(2), code(3))
	for offset, pushes := range map[uint64][]uint64{13: {r11, rcx, code(1)}, 15: {rcx, code(1)}, 16: {code(1)}} {
		stack := run(offset, outer(stackStart+8*uint64(len(pushes))), append(pushes, caller...)...)
		stack.check(t, "native_end", code(1), code(2), code(3))
	}
	stack = run(40, outer(stackStart+24), append([]uint64{r11, rcx, code(1)}, caller...)...)
	stack.check(t, "native_return_probe")
	stack = run(0, nil, caller...)
	stack.check(t, "native_return_probe")
}

// The kernel does a probed push for the thread: the stack pointer moves first.
func TestAPushThatTheKernelDoesIsNoReturnAddress(t *testing.T) {
	const register = 0x1234
	entered := unwind.Rule{Kind: unwind.Offset, CFA: 8}
	s := newTape(t, "x86", entered, pushed, pushed, ending)
	s.text = map[uint64][]byte{code(0) + 8: {0xcc, 0, 0, 0, 0, 0, 0, 0}}
	s.put(0, register, code(1), 0, code(3))
	stack := s.run(code(0), 0)
	stack.check(t, "native_end", code(0), code(1), code(3))
	if stack.Frame[0].CFA != 16 || stack.Frame[1].Flags != 4 {
		t.Errorf("the first frame's address is %d, the second's flags are %d", stack.Frame[0].CFA, stack.Frame[1].Flags)
	}
	// Without a probe there, and further out, it is an address that nothing is mapped at.
	s.text = map[uint64][]byte{code(0) + 8: {0x55, 0, 0, 0, 0, 0, 0, 0}}
	stack = s.run(code(0), 0)
	stack.check(t, "native_no_mapping", code(0))
	s.text = map[uint64][]byte{code(0) + 8: {0xcc, 0, 0, 0, 0, 0, 0, 0}}
	s.stack = nil
	s.put(0, code(1), 0, register, code(3))
	stack = s.run(code(0), 0)
	stack.check(t, "native_no_mapping", code(0), code(1))
}
