package rows

import (
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// fullBatch is how many rows are handed to the sink at once.
const fullBatch = 4096

// Batch are the rows that the sink takes next. The stack of a row has only the name that
// the kernel gave it, until its frames have come through the ring of samples.
type Batch struct {
	out     *Out
	stacks  *stacks.Table
	totals  *Totals
	spans   []event.Span
	memory  []memoryRow
	written []event.Memory // of memory, as the sink takes it
	next    event.Batch    // all of it, for the sink
	flows   []event.Flow
	samples []event.Sample
	io      []event.IO
	// stacked are the spans whose stack still has the kernel's name only, whether they are
	// in the batch or in a slice that waits for its weight.
	stacked []spanStack
	// RanOut is called when there is a row of an allocation that found no room.
	RanOut func()
}

// spanStack is a span's detail and the kernel's name of its stack.
type spanStack struct {
	detail *event.Detail
	raw    uint64
}

// memoryRow is a row of memory and the kernel's name of its stack, 0: none.
type memoryRow struct {
	event.Memory
	rawStack uint64
}

// Span adds a span.
func (b *Batch) Span(s event.Span) { b.AddSpan(&s) }

// AddSpan adds a copy of a span.
func (b *Batch) AddSpan(s *event.Span) { b.spans = append(b.spans, *s) }

// SetStack gives a span the stack that the kernel has a name for. The span may be copied
// from here on, its detail is the same.
func (b *Batch) SetStack(s *event.Span, raw uint64) {
	b.stacked = append(b.stacked, spanStack{s.MakeDetail(), raw})
}

// Memory adds an allocation or a free; stack is the kernel's name of its stack, 0: none.
func (b *Batch) Memory(m event.Memory, stack uint64) {
	b.noteMemory(&m)
	b.memory = append(b.memory, memoryRow{m, stack})
}

// noteMemory counts a row of memory, wherever it waits.
func (b *Batch) noteMemory(m *event.Memory) {
	b.totals.Memory++
	if m.Action == event.ActionOutOfMemory && b.RanOut != nil {
		b.RanOut()
	}
}

// Flow adds an edge.
func (b *Batch) Flow(f event.Flow) {
	b.totals.Flows++
	b.flows = append(b.flows, f)
}

// Sample adds a sample.
func (b *Batch) Sample(s event.Sample) {
	b.totals.Samples++
	b.samples = append(b.samples, s)
}

// IO adds what was read or written.
func (b *Batch) IO(row event.IO) {
	b.totals.IO++
	b.io = append(b.io, row)
}

// Full reports whether it is time to flush.
func (b *Batch) Full() bool { return len(b.spans)+len(b.memory) >= fullBatch }

// Flush hands all rows to the sink, stacks with what refers to them. The ring of
// samples has been read before: a stack whose frames have not come by now was lost.
func (b *Batch) Flush() error {
	b.resolveStacks()
	b.resolveLines()
	b.next.Stacks, b.next.Samples, b.next.IO = b.stacks.TakeRows(), b.samples, b.io
	b.next.Spans, b.next.Memory, b.next.Flows = b.spans, b.takeMemory(), b.flows
	if len(b.next.Stacks)+len(b.samples)+len(b.io)+len(b.spans)+len(b.next.Memory)+len(b.flows) == 0 {
		return nil
	}
	if err := b.out.Write(&b.next); err != nil {
		return err
	}
	b.samples, b.io, b.spans, b.flows = b.samples[:0], b.io[:0], b.spans[:0], b.flows[:0]
	return nil
}

// resolveStacks gives the rows the ids of their stacks.
func (b *Batch) resolveStacks() {
	for _, s := range b.stacked {
		s.detail.StackID = b.stacks.Resolve(s.raw)
	}
	b.stacked = b.stacked[:0]
	for i := range b.memory {
		if raw := b.memory[i].rawStack; raw != 0 {
			b.memory[i].StackID = b.stacks.IDOf(raw)
		}
	}
}

// takeMemory is the rows of memory as the sink takes them.
func (b *Batch) takeMemory() []event.Memory {
	b.written = b.written[:0]
	for i := range b.memory {
		b.written = append(b.written, b.memory[i].Memory)
	}
	b.memory = b.memory[:0]
	return b.written
}
