package decode

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
	"github.com/ebpfprof/ebpfprof/tracer/site"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// recordingSink keeps what it is given.
type recordingSink struct {
	samples []event.Sample
	stacks  []event.Stack
	spans   []event.Span
	memory  []event.Memory
	flows   []event.Flow
}

// Write implements event.Sink.
func (s *recordingSink) Write(b *event.Batch) error {
	s.stacks = append(s.stacks, b.Stacks...)
	s.samples = append(s.samples, b.Samples...)
	s.spans = append(s.spans, b.Spans...)
	s.memory = append(s.memory, b.Memory...)
	s.flows = append(s.flows, b.Flows...)
	return nil
}

// oneClass knows one vtable.
type oneClass struct{ vtable uint64 }

func (c oneClass) Class(_ uint32, vtable uint64) (string, bool) {
	return "AddmmBackward0", vtable == c.vtable
}

// testDecoder has one probe for each of the catalog's functions, in order.
func testDecoder(t testing.TB) (*Decoder, *recordingSink, func(label string) uint32) {
	t.Helper()
	made := &plan.Plan{Path: "test"}
	index := map[string]uint32{}
	groups := catalog.Groups()
	for g := range groups {
		for f := range groups[g].Functions {
			function := &groups[g].Functions[f]
			label := function.Label
			if label == "" {
				label = groups[g].Name
			}
			index[label] = uint32(len(made.Probes))
			made.Probes = append(made.Probes, plan.Probe{
				Group: &groups[g], Function: function, Entry: site.Entry{Cost: site.CostEmulated},
				Call: &event.Call{Layer: function.Layer, Category: function.Category, Runtime: function.Runtime, Name: label},
			})
		}
	}
	table := &probetable.Table{}
	table.Put(0, made.Probes, &tensor.Trust{})
	sink := &recordingSink{}
	return New(Config{Sink: sink, Probes: table, Classes: oneClass{0x7000}, OffsetNS: 1000, ProbesTook: ProbesTook{SinceMark: 30,
			UntilReturn: 40}}), sink, func(label string) uint32 {
			i, ok := index[label]
			if !ok {
				t.Fatalf("no probe %q in the catalog", label)
			}
			return i
		}
}

// encode writes a call record the way the kernel does.
func encode(r bpf.CallCallRecord, ret uint64, args ...uint64) []byte {
	r.Args = uint8(len(args))
	var b bytes.Buffer
	binary.Write(&b, binary.NativeEndian, r)
	if len(args) > 0 || ret != 0 {
		room := 4
		if len(args) > room {
			room = len(bpf.CallCallRecordFull{}.Arg)
		}
		words := make([]uint64, 1+room)
		words[0] = ret
		copy(words[1:], args)
		binary.Write(&b, binary.NativeEndian, words)
	}
	return b.Bytes()
}

func encodeText(id uint64, spec uint32, text string) []byte {
	b := make([]byte, textBytes)
	b[0] = byte(bpf.CallRecordKindRECORD_TEXT)
	binary.NativeEndian.PutUint16(b[2:], uint16(len(text)))
	binary.NativeEndian.PutUint32(b[4:], spec)
	binary.NativeEndian.PutUint64(b[8:], id)
	copy(b[16:], text)
	return b
}

func span(spec uint32, id uint64) bpf.CallCallRecord {
	return bpf.CallCallRecord{
		Kind: uint8(bpf.CallRecordKindRECORD_SPAN), End: uint8(event.EndExitSite), Status: uint8(event.StatusOK), Spec: spec,
		SpanId: id, ParentId: 7, StartNs: 100, EndNs: 150, Tgid: 10, Tid: 11, Sequence: ^uint64(0), Epoch: 1,
	}
}

func TestSpanKeepsWhatTheKernelSaw(t *testing.T) {
	d, sink, index := testDecoder(t)
	d.calls.record(encode(span(index("op"), 42), 0))
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(sink.spans) != 1 {
		t.Fatalf("%d spans, want 1", len(sink.spans))
	}
	s := sink.spans[0]
	if s.ID != 42 || s.ParentID != 7 || s.StartNS != 1100 || s.DurationNS != 50 || s.PID != 10 || s.TID != 11 ||
		s.End != event.EndExitSite || s.Status != event.StatusOK || s.Weight != 1 || s.SequenceNumber != -1 || s.Detail != nil {
		t.Errorf("got %+v", s)
	}
}

func TestUnfinishedSpanHasNoDuration(t *testing.T) {
	d, sink, index := testDecoder(t)
	r := span(index("op"), 1)
	r.End, r.Status = uint8(event.EndUnfinished), 0
	d.calls.record(encode(r, 0))
	d.Flush()
	if s := sink.spans[0]; s.DurationNS != -1 || s.Status != event.StatusAbsent {
		t.Errorf("duration %d, status %q", s.DurationNS, s.Status)
	}
}

func TestBackwardNodeIsNamedAndJoinedToItsOperator(t *testing.T) {
	d, sink, index := testDecoder(t)
	forward := span(index("op"), 1)
	forward.Sequence = 5 | 3<<sequenceBits
	d.calls.record(encode(forward, 0))
	d.calls.record(encode(span(index("Engine::evaluate_function"), 2), 0, 0x7000, 5, 3))
	d.Flush()
	if name := sink.spans[1].Call.Name; name != "AddmmBackward0" {
		t.Errorf("the node is called %q", name)
	}
	if len(sink.flows) != 1 || sink.flows[0].FromSpanID != 1 || sink.flows[0].ToSpanID != 2 {
		t.Errorf("flows: %+v", sink.flows)
	}
}

func TestNodesOfTwoTrainingThreadsAreJoinedEachToItsOwn(t *testing.T) {
	d, sink, index := testDecoder(t)
	node := span(index("Engine::evaluate_function"), 0)
	for thread := range uint64(2) {
		for number := range uint64(3) {
			forward := span(index("op"), 1+10*thread+number)
			forward.Tid = uint32(20 + thread)
			forward.Sequence = number | (thread+1)<<sequenceBits
			d.calls.record(encode(forward, 0))
		}
	}
	for thread := range uint64(2) {
		for number := range uint64(3) {
			node.SpanId = 100 + 10*thread + number
			d.calls.record(encode(node, 0, 0x7000, number, thread+1))
		}
	}
	unread := span(index("Engine::evaluate_function"), 200)
	unread.Faults = 1 << 2
	d.calls.record(encode(unread, 0, 0x7000, 1, 0)) // whose thread could not be read
	d.Flush()
	if len(sink.flows) != 6 || d.calls.forwards.edgeless != 1 {
		t.Fatalf("%d edges, %d nodes without: %+v", len(sink.flows), d.calls.forwards.edgeless, sink.flows)
	}
	for _, f := range sink.flows {
		if f.ToSpanID-f.FromSpanID != 99 {
			t.Errorf("node %d comes from %d", f.ToSpanID, f.FromSpanID)
		}
	}
	for _, s := range sink.spans {
		if s.SequenceNumber > 2 {
			t.Errorf("span %d has number %d", s.ID, s.SequenceNumber)
		}
	}
}

func TestNodeWithoutSequenceNumberHasNoFlow(t *testing.T) {
	d, sink, index := testDecoder(t)
	d.calls.record(encode(span(index("op"), 1), 0))
	d.calls.record(encode(span(index("Engine::evaluate_function"), 2), 0, 0x7000, ^uint64(0)))
	d.Flush()
	if len(sink.flows) != 0 || sink.spans[1].SequenceNumber != -1 {
		t.Errorf("flows %+v, sequence %d", sink.flows, sink.spans[1].SequenceNumber)
	}
}

func TestKernelLaunchIsNamedByItsHandle(t *testing.T) {
	d, sink, index := testDecoder(t)
	create := span(index("clCreateKernel"), 1)
	create.End = uint8(event.EndReturn)
	d.calls.record(encodeText(1, create.Spec, "scale"))
	d.calls.record(encode(create, 0xbeef))
	launch := span(index("clEnqueueNDRangeKernel"), 2)
	launch.End = uint8(event.EndReturn)
	launch.Faults = 1 << 8 // the third block size is behind the end of the caller's array
	d.calls.record(encode(launch, 0, 0x11, 0xbeef, 2, 100, 7, 99, 16, 7, 0))
	d.Finish()
	s := sink.spans[1]
	if s.Call.Name != "scale" {
		t.Errorf("the launch is called %q", s.Call.Name)
	}
	if s.Detail == nil || s.Detail.Work == nil || *s.Detail.Work != [3]int64{100, 7, 1} || *s.Detail.Block != [3]int64{16, 7, 1} ||
		*s.Detail.Grid != [3]int64{7, 1, 1} {
		t.Errorf("sizes: %+v", s.Detail)
	}
}

func TestErrorCodeBecomesAStatus(t *testing.T) {
	d, sink, index := testDecoder(t)
	finish := span(index("clFinish"), 1)
	finish.End = uint8(event.EndReturn)
	code := int32(-36) // CL_INVALID_COMMAND_QUEUE
	d.calls.record(encode(finish, uint64(uint32(code)), 0))
	d.Flush()
	if s := sink.spans[0]; s.Status != event.StatusError || s.Detail == nil || s.Detail.ErrorCode == nil || *s.Detail.ErrorCode != -36 {
		t.Errorf("status %q, detail %+v", s.Status, s.Detail)
	}
}

func TestFreeKnowsTheSizeOfWhatItFrees(t *testing.T) {
	d, sink, index := testDecoder(t)
	alloc, free := span(index("ProfiledCPUMemoryReporter::New"), 0), span(index("ProfiledCPUMemoryReporter::Delete"), 0)
	alloc.Kind, free.Kind = uint8(bpf.CallRecordKindRECORD_EVENT), uint8(bpf.CallRecordKindRECORD_EVENT)
	free.StartNs, free.EndNs = alloc.EndNs, alloc.EndNs
	d.calls.record(encode(alloc, 0, 0x1000, 64))
	d.calls.record(encode(free, 0, 0x1000))
	d.calls.record(encode(free, 0, 0x2000)) // allocated before the recording
	d.calls.record(encode(free, 0, 0))      // Delete(nullptr) frees nothing
	d.Flush()
	if len(sink.memory) != 3 {
		t.Fatalf("%d rows, want 3", len(sink.memory))
	}
	if b := sink.memory[1].Bytes; b == nil || *b != 64 {
		t.Errorf("the free's size is %v, want 64", b)
	}
	if sink.memory[2].Bytes != nil {
		t.Errorf("a free of unknown size says %d bytes", *sink.memory[2].Bytes)
	}
	if d.Rows.Sums.Totals.PeakLiveBytes != 64 {
		t.Errorf("peak %d, want 64", d.Rows.Sums.Totals.PeakLiveBytes)
	}
}

// An allocation is there when its call is over, and took what the probes did not; one
// whose beginning was not seen took an unknown time.
func TestAllocationsHaveTheirDuration(t *testing.T) {
	d, sink, index := testDecoder(t)
	alloc := span(index("ProfiledCPUMemoryReporter::New"), 0)
	alloc.Kind = uint8(bpf.CallRecordKindRECORD_EVENT)
	for _, end := range []uint64{150, 110, 100} {
		alloc.EndNs = end
		d.calls.record(encode(alloc, 0, 0x1000, 64))
	}
	d.Flush()
	known, atOnce := int64(20), int64(0)
	for i, want := range []struct {
		ts   int64
		took *int64
	}{{1150, &known}, {1110, &atOnce}, {1100, nil}} {
		m := sink.memory[i]
		if m.TSNS != want.ts || (m.DurationNS == nil) != (want.took == nil) || want.took != nil && *m.DurationNS != *want.took {
			t.Errorf("row %d at %d took %v, want %+v", i, m.TSNS, m.DurationNS, want)
		}
	}
}

func TestADeviceWithoutRoomSaysWhatItHad(t *testing.T) {
	d, sink, index := testDecoder(t)
	r := span(index("reportOutOfMemoryToProfiler"), 0)
	r.Kind, r.EndNs = uint8(bpf.CallRecordKindRECORD_EVENT), r.StartNs
	d.calls.record(encode(r, 0, 1<<40, 4096, 8192, 0x0101)) // cuda:1
	d.calls.record(encode(r, 0, 1<<40, 4096, 8192, 0xff00)) // cpu: OutOfMemory saw it
	d.Flush()
	if len(sink.memory) != 1 {
		t.Fatalf("%d rows, want 1", len(sink.memory))
	}
	m := sink.memory[0]
	if m.Action != event.ActionOutOfMemory || m.Space != "device" || *m.Bytes != 1<<40 || *m.TotalAllocatedBytes != 4096 ||
		*m.TotalReservedBytes != 8192 || *m.DeviceID != 1 || m.DurationNS != nil {
		t.Errorf("%+v", m)
	}
}

func TestDeviceAllocatorEventsCarryTotalsAndDevice(t *testing.T) {
	d, sink, index := testDecoder(t)
	r := span(index("reportMemoryUsageToProfiler"), 0)
	r.Kind = uint8(bpf.CallRecordKindRECORD_EVENT)
	minus := int64(-512)
	d.calls.record(encode(r, 0, 0x1000, uint64(minus), 4096, 8192, 0x0101)) // cuda:1
	d.calls.record(encode(r, 0, 0x1000, 512, 4096, 8192, 0xff00))           // cpu: New saw it
	d.Flush()
	if len(sink.memory) != 1 {
		t.Fatalf("%d rows, want 1: the CPU's own report is a second one", len(sink.memory))
	}
	m := sink.memory[0]
	if m.Action != "free" || *m.Bytes != 512 || *m.DeviceID != 1 || *m.TotalAllocatedBytes != 4096 || *m.TotalReservedBytes != 8192 {
		t.Errorf("got %+v", m)
	}
}

func TestRowsOfASliceWaitForTheirWeight(t *testing.T) {
	d, sink, index := testDecoder(t)
	d.Rows.Slices.Hold(true)
	d.calls.record(encode(span(index("op"), 1), 0))
	d.calls.record(encode(span(index("Engine::execute"), 2), 0)) // an anchor: not sliced
	d.Flush()
	if len(sink.spans) != 1 || sink.spans[0].ID != 2 {
		t.Fatalf("before the weight is known: %+v", sink.spans)
	}
	d.Rows.Slices.Weigh(1, rows.WholeEpoch, share(12.5))
	d.Flush()
	if len(sink.spans) != 2 || sink.spans[1].Weight != 12.5 {
		t.Errorf("after: %+v", sink.spans)
	}
}

func TestARowThatComesAfterItsSliceWasReleasedHasItsWeight(t *testing.T) {
	d, sink, index := testDecoder(t)
	d.Rows.Slices.Hold(true)
	d.Rows.Slices.Weigh(1, rows.WholeEpoch, share(12.5))
	d.calls.record(encode(span(index("op"), 1), 0)) // epoch 1
	d.Rows.Slices.WeighLate()
	d.Flush()
	if len(sink.spans) != 1 || sink.spans[0].Weight != 12.5 {
		t.Errorf("%+v", sink.spans)
	}
}

// A slice goes on while its first rows are let go.
func TestRowsAreLetGoUpToATime(t *testing.T) {
	d, sink, index := testDecoder(t)
	d.Rows.Slices.Hold(true)
	early, late := span(index("op"), 1), span(index("op"), 2)
	early.StartNs, late.StartNs = 100, 200
	d.calls.record(encode(late, 0))
	d.calls.record(encode(early, 0))
	d.Rows.Slices.Weigh(1, int64(late.StartNs)+d.calls.offsetNS, share(3))
	d.Flush()
	if len(sink.spans) != 1 || sink.spans[0].ID != 1 || sink.spans[0].Weight != 3 || sink.spans[0].SliceID != 9 {
		t.Fatalf("first: %+v", sink.spans)
	}
	d.Rows.Slices.WeighRest()
	d.Flush()
	if len(sink.spans) != 2 || sink.spans[1].ID != 2 || sink.spans[1].Weight != 1 || sink.spans[1].SliceID != 0 {
		t.Errorf("at the end: %+v", sink.spans)
	}
}

// share is a Weigher of rows that are all alike, in slice 9.
func share(weight float64) weights.Weigher {
	return func(uint32, int32, int64) weights.Share { return weights.Share{Weight: weight, Slice: 9} }
}

func TestAScopeThatASliceLeftOpenHasTheNameThatIsStillInTheRing(t *testing.T) {
	d, sink, index := testDecoder(t)
	probe := index("record_function")
	d.Departed.Scope(kernel.OpenCall{Spec: probe, Tgid: 1, TID: 1, SpanID: 7, StartNS: 5, Epoch: 1})
	d.calls.record(encodeText(7, probe, "forward"))
	d.drained()
	d.Flush()
	if len(sink.spans) != 1 || sink.spans[0].Call.Name != "forward" || sink.spans[0].End != event.EndUnfinished {
		t.Errorf("%+v", sink.spans)
	}
}

func TestAnAnchorProbeInSlicesWaitsFromItsEpochOn(t *testing.T) {
	d, sink, index := testDecoder(t)
	d.Rows.Slices.Hold(true)
	anchor := d.calls.probes.Find(index("Engine::execute"))
	anchor.SliceFrom(2)
	early, late := span(anchor.Index, 1), span(anchor.Index, 2)
	late.Epoch = 2
	d.calls.record(encode(early, 0))
	d.calls.record(encode(late, 0))
	d.Flush()
	if len(sink.spans) != 1 || sink.spans[0].ID != 1 {
		t.Errorf("%+v", sink.spans)
	}
}

func TestRowsThatStandForMoreThanThemselvesAreSaidToComeFromSlices(t *testing.T) {
	for weight, want := range map[float64]bool{1: false, 8.5: true} {
		d, _, index := testDecoder(t)
		d.Rows.Slices.Hold(true)
		anchor := d.calls.probes.Find(index("Engine::execute"))
		anchor.SliceFrom(1)
		d.calls.record(encode(span(anchor.Index, 1), 0))
		d.Rows.Slices.Weigh(1, rows.WholeEpoch, share(weight))
		d.Rows.Slices.Hold(false) // as at the end
		if got := d.Rows.Sums.Totals.InSlices; got != want {
			t.Errorf("weight %v: in slices %t", weight, got)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(encode(span(0, 1), 0, 1, 2, 3))
	f.Add(encodeText(1, 0, "text"))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, _, _ := testDecoder(t)
		d.calls.record(append([]byte(nil), raw...))
		if err := d.Flush(); err != nil {
			t.Fatal(err)
		}
	})
}
