package tracer

import (
	"testing"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

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

func TestWhichCallsHaveALineOfTheirOwn(t *testing.T) {
	for label, want := range map[string]bool{
		"op": true, "Engine::execute": true, "Engine::evaluate_function": true, "set_gradient_edge": true,
		"ProfiledCPUMemoryReporter::New": true, "ProfiledCPUMemoryReporter::Delete": true, "cuStreamSynchronize": true,
		"PyNode::apply": false, "record_function_exit_new": false,
	} {
		f := labelled(t, label)
		if got := wantsLine(LevelWindow, f); got != want {
			t.Errorf("%s at window: %v, want %v", label, got, want)
		}
		if wantsLine(LevelAnchor, f) {
			t.Errorf("%s at anchor wants a line", label)
		}
	}
}

func TestOnlyABackwardNodeAsksForItsForwardLine(t *testing.T) {
	for label, want := range map[string]bool{"op": false, "Engine::evaluate_function": true, "set_gradient_edge": false} {
		p := plan.Probe{Function: labelled(t, label)}
		p.TakeLine()
		if got := p.Spec.Flags&uint16(bpf.CallSpecFlagSPEC_BACKWARD) != 0; got != want || !p.TakesLine() {
			t.Errorf("%s: %v, want %v", label, got, want)
		}
	}
}

// A row's line comes as the kernel's name of a stack with its source in the lowest
// bits; the stack may be one of Python frames alone or one that has native ones too.
func TestRowsHaveThePythonFramesBehindThem(t *testing.T) {
	d, sink, index := testDecoder(t)
	resolved, _ := noStacks(t)
	d.stacks = resolved
	addStack(t, d.stacks, rawCallStack(1<<4, 0, 3))
	addStack(t, d.stacks, rawCallStack(1<<5, 2, 3)) // the same Python frames below native ones
	addStack(t, d.stacks, rawCallStack(1<<6, 2, 0))
	op := index("op")
	for i, line := range []uint64{1<<4 | 1, 1<<4 | 2, 1<<5 | 3, 1<<6 | 1, 0, 1 << 7 /* its frames never came */, 1} {
		d.record(encode(bpf.CallCallRecord{
			Kind: uint8(bpf.CallRecordKindRECORD_SPAN), End: uint8(EndExitSite), Spec: op, SpanId: uint64(i + 1), Tgid: 1, Tid: 1,
			StartNs: 1, EndNs: 2, Sequence: ^uint64(0), Line: line,
		}, 0))
	}
	if err := d.flush(); err != nil {
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
	if d.totals.Lines.Unresolved != 1 {
		t.Errorf("%d lines whose frames never came, want 1", d.totals.Lines.Unresolved)
	}
}

func TestLinesArePricedByWhatIsTaken(t *testing.T) {
	for _, test := range []struct {
		name   string
		totals kernel.MemoTotals
		rows   uint64
		want   float64
	}{
		{"nothing is known", kernel.MemoTotals{Found: 10}, 20, usualLinePrice},
		{"a quarter is outermost, all remembered", kernel.MemoTotals{Found: 1000}, 4000, rememberedLinePrice / 4},
		{"all walked", kernel.MemoTotals{Walked: 1000}, 1000, walkedLinePrice},
		{"compared as well", kernel.MemoTotals{Found: 1000, Verified: 100}, 1000, rememberedLinePrice + 0.1*walkedLinePrice},
	} {
		if got := lineCostOf(&test.totals, test.rows); got != test.want {
			t.Errorf("%s: %v ns, want %v", test.name, got, test.want)
		}
	}
}
