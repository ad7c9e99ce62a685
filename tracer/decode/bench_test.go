package decode

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// counting is a sink that counts the spans.
type counting struct {
	spans int
}

// Write implements event.Sink.
func (c *counting) Write(b *event.Batch) error {
	c.spans += len(b.Spans)
	return nil
}

// BenchmarkDecode turns synthetic records of operators into spans; writing
// them is output's benchmark, both together `make bench`.
func BenchmarkDecode(b *testing.B) {
	calls := make([]*event.Call, 60)
	for i := range calls {
		calls[i] = &event.Call{Layer: "op", Category: "forward", Name: fmt.Sprintf("aten::operator_%d", i)}
	}
	sink := &counting{}
	replay := NewReplay(sink, calls)
	random := rand.New(rand.NewPCG(1, 2))
	records := make([]bpf.CallCallRecord, 1<<14)
	for i := range records {
		records[i] = bpf.CallCallRecord{
			Kind: uint8(bpf.CallRecordKindRECORD_SPAN), End: uint8(event.EndExitSite), Status: uint8(event.StatusOK), Spec: uint32(random.IntN(60)),
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
