package tracer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// nowhere is a sink that keeps nothing.
type nowhere struct{ spans int }

func (n *nowhere) Spans(s []Span) error      { n.spans += len(s); return nil }
func (n *nowhere) Memory([]Memory) error     { return nil }
func (n *nowhere) Slices([]Slice) error      { return nil }
func (n *nowhere) OpenCalls(OpenCalls) error { return nil }
func (n *nowhere) Flows([]Flow) error        { return nil }
func (n *nowhere) Samples([]Sample) error    { return nil }
func (n *nowhere) Stacks([]Stack) error      { return nil }
func (n *nowhere) Process(Process) error     { return nil }
func (n *nowhere) Thread(Thread) error       { return nil }
func (n *nowhere) Library(Library) error     { return nil }
func (n *nowhere) Probes([]Probe) error      { return nil }
func (n *nowhere) Warning(w Warning) error   { return nil }
func (n *nowhere) Counters([]Counter) error  { return nil }

// BenchmarkDecode turns synthetic records of operators into spans; writing
// them is output's benchmark, both together `make bench`.
func BenchmarkDecode(b *testing.B) {
	calls := make([]*Call, 60)
	for i := range calls {
		calls[i] = &Call{Layer: "op", Category: "forward", Name: fmt.Sprintf("aten::operator_%d", i)}
	}
	sink := &nowhere{}
	replay, err := NewReplay(sink, calls)
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	records := make([]bpf.CallCallRecord, 1<<14)
	for i := range records {
		records[i] = bpf.CallCallRecord{
			Kind: uint8(bpf.CallRecordKindRECORD_SPAN), End: uint8(EndExitSite), Status: uint8(StatusOK), Spec: uint32(random.IntN(60)),
			SpanId: uint64(i + 1), StartNs: uint64(i) * 3000, EndNs: uint64(i)*3000 + 2500, Tgid: 1, Tid: 1, Sequence: math.MaxUint64,
		}
		if random.IntN(6) == 0 {
			records[i].Sequence = uint64(i)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n++ {
		r := &records[n%len(records)]
		if err := replay.Record(unsafe.Slice((*byte)(unsafe.Pointer(r)), callBytes)); err != nil {
			b.Fatal(err)
		}
	}
	if _, damaged, err := replay.Flush(); damaged > 0 || err != nil {
		b.Fatal(damaged, err)
	}
	if sink.spans != b.N {
		b.Fatalf("%d spans of %d records", sink.spans, b.N)
	}
}
