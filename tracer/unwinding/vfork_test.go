package unwinding

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// As glibc's vfork does: parent and child have one stack, on which the child's calls would
// write over a return address.
func TestX86ReturnsThroughRDIOnlyInTheLeaf(t *testing.T) {
	popped := unwind.Rule{Kind: unwind.Offset, ReturnAddress: unwind.Link}
	pushed := unwind.Rule{Kind: unwind.Offset, CFA: 8, ReturnAddress: unwind.Link}
	plain := unwind.Rule{Kind: unwind.Offset, CFA: 8}
	for leaf, rule := range map[string]unwind.Rule{"before the push": popped, "behind it": pushed} {
		s := newTape(t, "x86", rule, plain, rule, ending)
		s.put(int(rule.CFA), code(3))
		s.say('c')
		s.say('m', uint64(stackStart), s.stack)
		var start bpf.NativeWalkNativeTaken
		start.Start.Pc, start.Start.Sp, start.Start.Lr = code(0), stackStart, code(1)
		stack := s.walk(start)
		stack.check(t, "native_end", code(0), code(1), code(3))
		start.Start.Lr = code(2) // a caller's return address is on the stack
		stack = s.walk(start)
		stack.check(t, "native_register", code(0), code(2))
		if t.Failed() {
			t.Fatal(leaf)
		}
	}
}
