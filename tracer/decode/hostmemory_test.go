package decode

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TestSizesOfFreesEndWithTheSlice: an address that was freed and came again
// between two slices has another size by then.
func TestSizesOfFreesEndWithTheSlice(t *testing.T) {
	d, sink, index := testDecoder(t)
	alloc, free := span(index("ProfiledCPUMemoryReporter::New"), 0), span(index("ProfiledCPUMemoryReporter::Delete"), 0)
	alloc.Kind, free.Kind = uint8(bpf.CallRecordKindRECORD_EVENT), uint8(bpf.CallRecordKindRECORD_EVENT)
	alloc.Epoch, free.Epoch = 4, 4
	d.calls.record(encode(alloc, 0, 0x1000, 64))
	d.calls.record(encode(alloc, 0, 0x2000, 32))
	d.calls.record(encode(alloc, 0, 0x2000, 48)) // its free was lost
	late := free
	alloc.Epoch, free.Epoch = 5, 5
	d.calls.record(encode(free, 0, 0x1000)) // of the slice before
	d.calls.record(encode(alloc, 0, 0x1000, 16))
	d.calls.record(encode(late, 0, 0x1000)) // a straggler of the slice before
	d.calls.record(encode(free, 0, 0x1000))
	d.Flush()
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
	if len(sink.memory) != len(want) || d.calls.host.peak != 112 {
		t.Errorf("%d events, peak %d; want %d and 112", len(sink.memory), d.calls.host.peak, len(want))
	}
}

// A job that allocates and never frees is followed up to a number.
func TestLiveAllocationsOfAProcessAreFollowedUpToANumber(t *testing.T) {
	h := newHostMemory()
	bytes := int64(8)
	for i := range int64(maxLiveAllocations + 100) {
		h.follow(&event.Memory{PID: 1, Action: "alloc", Address: i + 1, Bytes: &bytes}, 1)
	}
	free := &event.Memory{PID: 2, Action: "free", Address: 1}
	h.follow(&event.Memory{PID: 2, Action: "alloc", Address: 1, Bytes: &bytes}, 1)
	h.follow(free, 1)
	if h.crowded != 100 || len(h.processes[1].size) != maxLiveAllocations {
		t.Errorf("%d allocations are followed, %d not", len(h.processes[1].size), h.crowded)
	}
	if free.Bytes == nil || *free.Bytes != 8 {
		t.Errorf("another process's free has %v bytes", free.Bytes)
	}
	if h.Forget(1); len(h.processes) != 1 {
		t.Errorf("%d processes are left", len(h.processes))
	}
}
