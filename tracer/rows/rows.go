// Package rows has what was decoded and is not written yet: the batch that the sink takes
// next, the rows of slices that wait until their weight is known, and the sums of all of
// them. Package decode puts rows in; what comes out is event's, with the ids of stacks in
// place of the kernel's names for them. It belongs to the decoder's goroutine, but for
// Slices.Hold.
//
// The package is no part of the public API: it may change with any version.
package rows

import (
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// Rows are the rows of one recording between decoder and sink.
type Rows struct {
	Out    Out
	Batch  Batch
	Slices Slices
	Sums   Sums
	Names  CallNames
	Stacks *stacks.Table
}

// New makes room for the rows of one recording.
func New(sink event.Sink) *Rows {
	r := &Rows{Out: Out{Sink: sink}, Names: newCallNames()}
	r.Sums.Totals.Operators = map[string]*OperatorTotal{}
	r.Stacks = stacks.NewTable(stacks.NewSpaces(), &r.Sums.Totals.Stacks)
	r.Batch.out, r.Batch.stacks, r.Batch.totals = &r.Out, r.Stacks, &r.Sums.Totals
	r.Slices.batch, r.Slices.sums = &r.Batch, &r.Sums
	r.Slices.held, r.Slices.known, r.Slices.most = map[uint32]*slice{}, map[uint32]weights.Weigher{}, mostHeld
	return r
}

// Out is the sink. Who gives it a row outside of a batch has nobody to return an error
// to: Keep takes it, and the recording ends with it.
type Out struct {
	event.Sink
	failed error
}

// Add gives the sink rows, and keeps its error.
func (o *Out) Add(b *event.Batch) { o.Keep(o.Write(b)) }

// Keep remembers an error, if it is the first.
func (o *Out) Keep(err error) {
	if o.failed == nil {
		o.failed = err
	}
}

// Failed is the first error of what was given to the sink outside of a batch.
func (o *Out) Failed() error { return o.failed }
