package tracer

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// labelled finds a function of the catalog.
func labelled(t *testing.T, label string) *catalog.Function {
	t.Helper()
	for _, g := range catalog.Groups() {
		for i := range g.Functions {
			if g.Functions[i].Label == label || g.Name == label {
				return &g.Functions[i]
			}
		}
	}
	t.Fatalf("no function %q in the catalog", label)
	return nil
}

func TestWhichCallsTakeTheirStack(t *testing.T) {
	for label, want := range map[string][3]bool{ // at anchor, window, deep
		"cuMemAlloc":                             {true, true, true},
		"hipMalloc":                              {true, true, true},
		"ProfiledCPUMemoryReporter::OutOfMemory": {true, true, true},
		"ProfiledCPUMemoryReporter::New":         {false, false, false},
		"cuLaunchKernel":                         {false, true, true},
		"hipModuleLaunchKernel":                  {false, true, true},
		"ncclAllReduce":                          {false, true, true},
		"scope":                                  {false, true, true},
		"op":                                     {false, false, true},
		"cuMemFree":                              {false, false, false},
		"cuStreamSynchronize":                    {false, false, false},
	} {
		f := labelled(t, label)
		for i, level := range []Level{LevelAnchor, LevelWindow, LevelDeep} {
			if got := wantsStack(level, f); got != want[i] {
				t.Errorf("%s at %s: %v, want %v", label, level, got, want[i])
			}
		}
	}
}

func TestAnAllocationAndAFailedOneHaveTheStackOfTheirCall(t *testing.T) {
	d, sink, index := testDecoder(t)
	resolved, _ := noStacks(t)
	d.stacks = resolved
	addStack(t, d.stacks, rawStackRecord(7, 2, 0))
	spec := index("cuMemAlloc")
	probe := d.probes.Find(spec).Planned
	probe.TakeStack()
	if !probe.TakesStack() {
		t.Fatal("no room for the stack")
	}
	d.probes.Find(spec).Stack = true
	call := func(status uint64) {
		values := make([]uint64, len(probe.Function.Values), len(probe.Function.Values)+1)
		values[0], values[1] = 0x7f0000, 4096
		d.record(encode(bpf.CallCallRecord{
			Kind: uint8(bpf.CallRecordKindRECORD_SPAN), End: uint8(EndReturn), Status: uint8(StatusOK), Spec: spec, SpanId: 1, Tgid: 1, Tid: 1,
			StartNs: 1, EndNs: 2, Sequence: ^uint64(0),
		}, status, append(values, 7)...))
	}
	call(0)
	call(2)
	call(1) // neither an allocation nor out of memory
	if err := d.flush(); err != nil {
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

func TestRememberedStacksArePricedAsSuch(t *testing.T) {
	for _, test := range []struct {
		name   string
		totals kernel.MemoTotals
		want   float64
	}{
		{"nothing is known", kernel.MemoTotals{Found: 10}, stackPrice},
		{"all walked", kernel.MemoTotals{Walked: 1000}, stackPrice},
		{"half remembered", kernel.MemoTotals{Found: 500, Walked: 500}, (rememberedPrice + stackPrice) / 2},
		{"compared as well", kernel.MemoTotals{Found: 1000, Verified: 100}, rememberedPrice + 0.1*stackPrice},
	} {
		if got := stackCostOf(&test.totals); got != test.want {
			t.Errorf("%s: %v ns, want %v", test.name, got, test.want)
		}
	}
}
