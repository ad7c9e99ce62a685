package decode

import (
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// A Replay decodes records that the caller made as the kernel makes them, one
// probe for each of the calls: for measuring what that costs.
type Replay struct{ decoder *Decoder }

// NewReplay makes one; probe n is calls[n], an operator without arguments.
func NewReplay(sink event.Sink, calls []*event.Call) *Replay {
	var planned []plan.Probe
	group := &spec.Group{Name: "op", Tier: spec.Detail}
	for _, call := range calls {
		planned = append(planned, plan.Probe{Group: group, Function: &spec.Function{Layer: call.Layer, Action: spec.Span}, Call: call})
	}
	probes := &probetable.Table{}
	probes.Put(0, planned, &tensor.Trust{})
	return &Replay{New(Config{Sink: sink, Probes: probes})}
}

// Record decodes one record, 8-byte aligned, and now and then hands a batch to
// the sink, as the reader of the ring does.
func (r *Replay) Record(raw []byte) error {
	d := r.decoder
	d.calls.record(raw)
	if d.Rows.Batch.Full() {
		return d.Flush()
	}
	return d.Rows.Out.Failed()
}

// Flush hands the rest to the sink and reports how many spans there were, and
// how many records did not decode.
func (r *Replay) Flush() (spans, damaged uint64, err error) {
	err = r.decoder.Flush()
	return r.decoder.Rows.Sums.Totals.Spans, r.decoder.damaged(), err
}
