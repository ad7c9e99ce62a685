package tracer

import (
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// decodedRows is what package accel makes, in the decoder's batch.
type decodedRows struct{ d *decoder }

var _ accel.Rows = decodedRows{}

func (r decodedRows) Span(s event.Span) { r.d.spans = append(r.d.spans, s) }

func (r decodedRows) Memory(m event.Memory, stack uint64) {
	r.d.totals.Memory++
	r.d.memory = append(r.d.memory, memoryRow{m, stack})
}

func (r decodedRows) Flow(f event.Flow) {
	r.d.totals.Flows++
	r.d.flows = append(r.d.flows, f)
}

func (r decodedRows) Name(spec uint32, base *event.Call, name string) *event.Call {
	return r.d.name(spec, base, name)
}

func (r decodedRows) Recategorize(spec uint32, base *event.Call, category string) *event.Call {
	return r.d.recategorize(spec, base, category)
}

// name returns a call like base with another name, the same one each time.
func (d *decoder) name(spec uint32, base *Call, name string) *Call {
	key := callName{spec, base.Category, name}
	call, ok := d.named.Get(key)
	if !ok {
		copied := *base
		copied.Name = name
		call = &copied
		d.named.Put(key, call)
	}
	return call
}

// recategorize returns a call like base of another category, the same one each time.
func (d *decoder) recategorize(spec uint32, base *Call, category string) *Call {
	key := callName{spec, category, base.Name}
	call, ok := d.named.Get(key)
	if !ok {
		copied := *base
		copied.Category = category
		call = &copied
		d.named.Put(key, call)
	}
	return call
}
