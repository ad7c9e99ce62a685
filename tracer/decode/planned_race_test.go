package decode

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// While the decoder reads a probe for every record, the manager puts it into
// slices, takes its return probe away and lets its links take turns. The race
// detector holds this.
func TestTheDecoderReadsNothingThatTheManagerWrites(t *testing.T) {
	d, _, index := testDecoder(t)
	spec := index("cuMemAlloc")
	probe := d.calls.probes.Find(spec)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		plan := &plan.Plan{Probes: []plan.Probe{}}
		for range 1000 {
			probe.SliceFrom(2)
			probe.Planned.Spec.Turn ^= 1
			probe.Planned.Spec.Flags &^= uint16(bpf.CallSpecFlagSPEC_HAS_RETURN)
			plan.DropReturns()
		}
	}()
	for i := range uint64(1000) {
		d.calls.record(encode(bpf.CallCallRecord{
			Kind: uint8(bpf.CallRecordKindRECORD_SPAN), End: uint8(event.EndReturn), Status: uint8(event.StatusOK), Spec: spec, SpanId: i, Tgid: 1,
			Tid:     1,
			StartNs: i, EndNs: i + 1, Sequence: ^uint64(0),
		}, 0, 0x7f0000, 4096))
	}
	<-ended
	if d.Rows.Sums.Totals.Spans != 1000 {
		t.Errorf("%d spans of 1000", d.Rows.Sums.Totals.Spans)
	}
}
