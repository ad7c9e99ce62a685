package tracer

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// TestSizesOfFreesEndWithTheSlice: an address that was freed and came again
// between two slices has another size by then.
func TestSizesOfFreesEndWithTheSlice(t *testing.T) {
	d, sink, index := testDecoder(t)
	alloc, free := span(index("ProfiledCPUMemoryReporter::New"), 0), span(index("ProfiledCPUMemoryReporter::Delete"), 0)
	alloc.Kind, free.Kind = uint8(bpf.CallRecordKindRECORD_EVENT), uint8(bpf.CallRecordKindRECORD_EVENT)
	alloc.Epoch, free.Epoch = 4, 4
	d.record(encode(alloc, 0, 0x1000, 64))
	d.record(encode(alloc, 0, 0x2000, 32))
	d.record(encode(alloc, 0, 0x2000, 48)) // its free was lost
	late := free
	alloc.Epoch, free.Epoch = 5, 5
	d.record(encode(free, 0, 0x1000)) // of the slice before
	d.record(encode(alloc, 0, 0x1000, 16))
	d.record(encode(late, 0, 0x1000)) // a straggler of the slice before
	d.record(encode(free, 0, 0x1000))
	d.flush()
	want := []int64{64, 32, 48, -1, 16, -1, 16}
	for i, m := range sink.memory {
		got := int64(-1)
		if m.Bytes != nil {
			got = *m.Bytes
		}
		if got != want[i] {
			t.Errorf("event %d, %s of %#x: %d bytes, want %d", i, m.Action, m.Address, got, want[i])
		}
	}
	if len(sink.memory) != len(want) || d.host.peak != 112 {
		t.Errorf("%d events, peak %d; want %d and 112", len(sink.memory), d.host.peak, len(want))
	}
}
