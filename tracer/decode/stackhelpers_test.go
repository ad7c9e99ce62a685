package decode

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

// rawCallStack is a record of a call's stack with so many native and Python frames.
func rawCallStack(id uint64, native, python int) []byte {
	all := make([]uint64, 64)
	r := (*bpf.SampleStackRecord)(unsafe.Pointer(&all[0]))
	r.Kind = uint8(bpf.CallRecordKindRECORD_STACK)
	r.Id, r.Tgid, r.OfCall = id, 1<<22+1, 1
	r.Native, r.Python = uint16(native), uint16(python)
	r.NativeOutcome, r.PythonOutcome = uint8(bpf.SampleNativeOutcomeNATIVE_END), uint8(bpf.SamplePythonOutcomePYTHON_OK)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&all[0])), 8*len(all))
	return bytes[:stacks.StackBytes+16*(native+python)]
}

func addStack(t *testing.T, s *stacks.Table, raw []byte) {
	t.Helper()
	r, ok := stacks.Parse(raw)
	if !ok {
		t.Fatal("a record that is none")
	}
	s.Add(&r)
}
