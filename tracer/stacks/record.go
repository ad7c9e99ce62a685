package stacks

import (
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
)

const StackBytes = int(unsafe.Sizeof(bpf.SampleStackRecord{}))

// Record is a stack record and its frames, in the record's own memory.
type stackRecord struct {
	*bpf.SampleStackRecord
	native   []bpf.SampleNativeFrame
	python   []bpf.SamplePythonFrame
	segments []bpf.SamplePythonSegment
	kernel   []uint64
}

// Parse checks a record's size against what it says follows.
func Parse(raw []byte) (r stackRecord, ok bool) {
	if len(raw) < StackBytes || uintptr(unsafe.Pointer(&raw[0]))%8 != 0 {
		return r, false
	}
	r.SampleStackRecord = (*bpf.SampleStackRecord)(unsafe.Pointer(&raw[0]))
	rest := raw[StackBytes:]
	ok = take(&rest, &r.native, int(r.Native)) && take(&rest, &r.python, int(r.Python)) &&
		take(&rest, &r.segments, int(r.Segments)) && take(&rest, &r.kernel, int(r.Kernel))
	return r, ok
}

// take cuts n elements off the bytes.
func take[T any](rest *[]byte, to *[]T, n int) bool {
	bytes := n * int(unsafe.Sizeof(*new(T)))
	if n == 0 {
		return true
	}
	if len(*rest) < bytes {
		return false
	}
	*to = unsafe.Slice((*T)(unsafe.Pointer(&(*rest)[0])), n)
	*rest = (*rest)[bytes:]
	return true
}
