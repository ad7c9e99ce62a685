package decode

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
)

// TestSizesOfFreesEndWithTheSlice: an address that was freed and came again
// between two slices has another size by then.
func TestSizesOfFreesEndWithTheSlice(t *testing.T) {
	d, sink, index := testDecoder(t)
	alloc, free := span(index("ProfiledCPUMemoryReporter::New"), 0), span(index("free_cpu"), 0)
	alloc.Kind, free.Kind = uint8(bpf.CallRecordKindRECORD_EVENT), uint8(bpf.CallRecordKindRECORD_EVENT)
	free.StartNs, free.EndNs = alloc.EndNs, alloc.EndNs
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
	if h.crowded != 100 || len(h.processes[1].blocks) != maxLiveAllocations {
		t.Errorf("%d allocations are followed, %d not", len(h.processes[1].blocks), h.crowded)
	}
	if free.Bytes == nil || *free.Bytes != 8 {
		t.Errorf("another process's free has %v bytes", free.Bytes)
	}
	if h.Forget(1); len(h.processes) != 1 {
		t.Errorf("%d processes are left", len(h.processes))
	}
}

// A free begins where its row is, and took what the probes did not; where its return was
// not seen, nobody knows how long.
func TestFreesHaveTheirDuration(t *testing.T) {
	d, sink, index := testDecoder(t)
	free := span(index("free_cpu"), 7) // of the span around it: it is none
	for _, r := range []struct {
		end event.EndMethod
		ns  uint64
	}{{event.EndReturn, 160}, {event.EndReturn, 120}, {event.EndNextEntry, 160}, {event.EndUnfinished, 160}} {
		free.End, free.EndNs = uint8(r.end), r.ns
		d.calls.record(encode(free, 1, 0x1000))
	}
	d.Unfinished(kernel.OpenCall{Spec: index("free_cpu"), Tgid: 10, TID: 11})
	d.Flush()
	want := []int64{20, 0, -1, -1}
	for i, m := range sink.memory {
		got := int64(-1)
		if m.DurationNS != nil {
			got = *m.DurationNS
		}
		if got != want[i] || m.TSNS != 1100 || m.Action != "free" || m.SpanID != 7 {
			t.Errorf("row %d took %d ns, want %d: %+v", i, got, want[i], m)
		}
	}
	if len(sink.memory) != len(want) || len(sink.spans) != 0 {
		t.Errorf("%d rows and %d spans", len(sink.memory), len(sink.spans))
	}
}

// A free is told when it is over: another thread may have had its address meanwhile.
func TestFreesHaveTheSizeOfWhatTheyFreed(t *testing.T) {
	d, sink, index := testDecoder(t)
	alloc, free := span(index("ProfiledCPUMemoryReporter::New"), 0), span(index("free_cpu"), 7)
	alloc.Kind, free.End = uint8(bpf.CallRecordKindRECORD_EVENT), uint8(event.EndReturn)
	at := func(r bpf.CallCallRecord, ns uint64) bpf.CallCallRecord { r.StartNs, r.EndNs = ns, ns+1; return r }
	d.calls.record(encode(at(free, 100), 1, 0x2000)) // of before the recording
	d.calls.record(encode(at(alloc, 200), 0, 0x1000, 64))
	d.calls.record(encode(at(alloc, 310), 0, 0x1000, 32))
	d.calls.record(encode(at(free, 300), 1, 0x1000)) // of the first
	d.calls.record(encode(at(free, 400), 1, 0x1000))
	d.Flush()
	want := []int64{-1, 64, 32, 64, 32}
	for i, m := range sink.memory {
		got := int64(-1)
		if m.Bytes != nil {
			got = *m.Bytes
		}
		if got != want[i] {
			t.Errorf("row %d, %s: %d bytes, want %d", i, m.Action, got, want[i])
		}
	}
	if p := d.calls.host.processes[10]; p.live != 0 || len(p.blocks) != 0 {
		t.Errorf("%d bytes are live in %d blocks", p.live, len(p.blocks))
	}
}

// What the kernel kills has the stack of its last sample, and that is said; who asks for
// what is held then is told.
func TestAKilledProcessHasTheStackOfItsLastSample(t *testing.T) {
	table := &probetable.Table{}
	sink, asked := &recordingSink{}, 0
	d := New(Config{Sink: sink, Probes: table, RanOut: func(*Decoder) { asked++ }})
	first, second := int64(3), int64(4)
	for _, s := range []event.Sample{
		{PID: 10, TID: 11, TSNS: 100, State: event.OnCPU, StackID: &second, SpanID: 5},
		{PID: 10, TID: 12, TSNS: 90, State: event.OnCPU, StackID: &first},   // it came late
		{PID: 10, TID: 12, TSNS: 110, State: event.OffCPU, StackID: &first}, // it waited
		{PID: 10, TID: 12, TSNS: 120, State: event.OnCPU},                   // without a stack
		{PID: 20, TID: 20, TSNS: 120, State: event.OnCPU, StackID: &first},  // another process
		{PID: 30, TID: 30, TSNS: 120, State: event.OffCPU, StackID: &first},
		{PID: 10, TID: 12, TSNS: 210, State: event.OnCPU, StackID: &first}, // on its way out
	} {
		d.samples.last.saw(&s)
	}
	for _, pid := range []int32{10, 30, 40} {
		d.Killed(pid, 200)
	}
	d.Flush()
	if len(sink.memory) != 3 || asked != 3 {
		t.Fatalf("%d rows, asked %d times", len(sink.memory), asked)
	}
	m := sink.memory[0]
	if m.StackID == nil || *m.StackID != second || m.StackSource != event.StackOfLastSample || m.TID != 11 || m.SpanID != 5 ||
		m.Level != event.LevelKernel || m.Action != event.ActionOutOfMemory || m.Bytes != nil || m.TSNS != 200 {
		t.Errorf("%+v", m)
	}
	if m := sink.memory[1]; m.StackID == nil || *m.StackID != first {
		t.Errorf("of one that only waited: %+v", m)
	}
	if m := sink.memory[2]; m.StackID != nil || m.StackSource != "" {
		t.Errorf("of one without samples: %+v", m)
	}
	if d.samples.last.Forget(10); len(d.samples.last) != 2 {
		t.Errorf("%d processes are kept", len(d.samples.last))
	}
}
