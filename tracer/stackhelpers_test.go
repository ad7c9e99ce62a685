package tracer

import (
	"testing"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// rawStackRecord makes the bytes of a stack record with so many frames of each kind.
func rawStackRecord(id uint64, native, kernel int) []byte {
	all := make([]uint64, 64)
	r := (*bpf.SampleStackRecord)(unsafe.Pointer(&all[0]))
	r.Kind = uint8(bpf.CallRecordKindRECORD_STACK)
	r.Id, r.Tgid = id, 1<<22+1
	r.Native, r.Kernel = uint16(native), uint8(kernel)
	r.NativeOutcome = uint8(bpf.SampleNativeOutcomeNATIVE_END)
	r.PythonOutcome = uint8(bpf.SamplePythonOutcomePYTHON_NO_INTERPRETER)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&all[0])), 8*len(all))
	return bytes[:stacks.StackBytes+16*native+8*kernel]
}

// noStacks is a table of stacks without any process.
func noStacks(t *testing.T) (*stacks.Table, *stacks.Totals) {
	t.Helper()
	totals := &stacks.Totals{}
	s := stacks.NewTable(stacks.NewSpaces(), totals)
	return s, totals
}

func addStack(t *testing.T, s *stacks.Table, raw []byte) {
	t.Helper()
	r, ok := stacks.Parse(raw)
	if !ok {
		t.Fatal("a record that is none")
	}
	s.Add(&r)
}
