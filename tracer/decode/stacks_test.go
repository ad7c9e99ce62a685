package decode

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testrecord"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func TestAnAllocationAndAFailedOneHaveTheStackOfTheirCall(t *testing.T) {
	d, sink, index := testDecoder(t)
	addStack(t, d.Rows.Stacks, testrecord.Stack(7, 2, 0))
	spec := index("cuMemAlloc")
	probe := d.calls.probes.Find(spec).Planned
	probe.TakeStack()
	if !probe.TakesStack() {
		t.Fatal("no room for the stack")
	}
	d.calls.probes.Find(spec).Stack = true
	call := func(status uint64) {
		values := make([]uint64, len(probe.Function.Values), len(probe.Function.Values)+1)
		values[0], values[1] = 0x7f0000, 4096
		d.calls.record(encode(bpf.CallCallRecord{
			Kind: uint8(bpf.CallRecordKindRECORD_SPAN), End: uint8(event.EndReturn), Status: uint8(event.StatusOK), Spec: spec, SpanId: 1, Tgid: 1,
			Tid:     1,
			StartNs: 1, EndNs: 2, Sequence: ^uint64(0),
		}, status, append(values, 7)...))
	}
	call(0)
	call(2)
	call(1) // neither an allocation nor out of memory
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(sink.memory) != 2 || sink.memory[0].Action != "alloc" || sink.memory[1].Action != event.ActionOutOfMemory {
		t.Fatalf("memory %+v", sink.memory)
	}
	for _, m := range sink.memory {
		if m.StackID == nil || len(sink.stacks) != 1 || *m.StackID != sink.stacks[0].ID {
			t.Errorf("%s has the stack %v of %+v", m.Action, m.StackID, sink.stacks)
		}
	}
}

// A row's line comes as the kernel's name of a stack with its source in the lowest
// bits; the stack may be one of Python frames alone or one that has native ones too.
func TestRowsHaveThePythonFramesBehindThem(t *testing.T) {
	d, sink, index := testDecoder(t)
	addStack(t, d.Rows.Stacks, testrecord.CallStack(1<<4, 0, 3))
	addStack(t, d.Rows.Stacks, testrecord.CallStack(1<<5, 2, 3)) // the same Python frames below native ones
	addStack(t, d.Rows.Stacks, testrecord.CallStack(1<<6, 2, 0))
	op := index("op")
	for i, line := range []uint64{1<<4 | 1, 1<<4 | 2, 1<<5 | 3, 1<<6 | 1, 0, 1 << 7 /* its frames never came */, 1} {
		d.calls.record(encode(bpf.CallCallRecord{
			Kind: uint8(bpf.CallRecordKindRECORD_SPAN), End: uint8(event.EndExitSite), Spec: op, SpanId: uint64(i + 1), Tgid: 1, Tid: 1,
			StartNs: 1, EndNs: 2, Sequence: ^uint64(0), Line: line,
		}, 0))
	}
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	var python int64
	for i := range sink.stacks {
		if len(sink.stacks[i].Frames) == 3 {
			python = sink.stacks[i].ID
		}
	}
	if python == 0 || len(sink.stacks) != 3 {
		t.Fatalf("stacks %+v", sink.stacks)
	}
	for i, want := range []struct {
		id     int64
		source event.LineSource
	}{{python, event.LineOwn}, {python, event.LineInherited}, {python, event.LineForward}, {}, {}, {}, {}} {
		if s := sink.spans[i]; s.PythonStackID != want.id || s.PythonStackSource != want.source {
			t.Errorf("span %d: line %d, %s; want %d, %s", i, s.PythonStackID, s.PythonStackSource, want.id, want.source)
		}
	}
	if d.Rows.Sums.Totals.Lines.Unresolved != 1 {
		t.Errorf("%d lines whose frames never came, want 1", d.Rows.Sums.Totals.Lines.Unresolved)
	}
}

// A batch may have rows of memory and no span.
func TestAllocationsAloneHaveThePythonFramesBehindThem(t *testing.T) {
	d, sink, index := testDecoder(t)
	addStack(t, d.Rows.Stacks, testrecord.CallStack(1<<4, 0, 3))
	alloc := span(index("ProfiledCPUMemoryReporter::New"), 0)
	alloc.Kind, alloc.Line = uint8(bpf.CallRecordKindRECORD_EVENT), 1<<4|1
	d.calls.record(encode(alloc, 0, 0x1000, 64))
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	if m := sink.memory[0]; m.PythonStackSource != event.LineOwn || m.PythonStackID != sink.stacks[0].ID {
		t.Errorf("line %d, %s", m.PythonStackID, m.PythonStackSource)
	}
}
