// Package testrecord makes records as the BPF programs write them, for tests of what
// reads them.
package testrecord

import (
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// process is above what the kernel gives: nothing can be looked up of it.
const process = 1<<22 + 1

// Stack is the record of a sample's stack with so many frames of each kind, all zeros.
func Stack(id uint64, native, kernel int) []byte {
	return stack(bpf.SampleStackRecord{Id: id, Native: uint16(native), Kernel: uint8(kernel),
		PythonOutcome: uint8(bpf.SamplePythonOutcomePYTHON_NO_INTERPRETER)})
}

// CallStack is the record of a call's stack with so many native and Python frames, all
// zeros.
func CallStack(id uint64, native, python int) []byte {
	return stack(bpf.SampleStackRecord{Id: id, Native: uint16(native), Python: uint16(python), OfCall: 1,
		PythonOutcome: uint8(bpf.SamplePythonOutcomePYTHON_OK)})
}

func stack(r bpf.SampleStackRecord) []byte {
	r.Kind, r.Tgid = uint8(bpf.CallRecordKindRECORD_STACK), process
	r.NativeOutcome = uint8(bpf.SampleNativeOutcomeNATIVE_END)
	size := int(unsafe.Sizeof(r)) + 16*(int(r.Native)+int(r.Python)) + 8*int(r.Kernel)
	words := make([]uint64, size/8) // aligned as in the ring
	*(*bpf.SampleStackRecord)(unsafe.Pointer(&words[0])) = r
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
}
