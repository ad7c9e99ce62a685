package tracer

// A row's stack has only the name that the kernel gave it, until its frames have
// come through the ring of samples.

// spanStack is a span's detail and the kernel's name of its stack. The detail is
// where the span is, in the batch or in a slice that waits for its weight.
type spanStack struct {
	detail *Detail
	raw    uint64
}

// memoryRow is a row of memory and the kernel's name of its stack, 0: none.
type memoryRow struct {
	Memory
	rawStack uint64
}

// resolveStacks gives the rows of the batch the ids of their stacks. The ring of
// samples has been read: what is not there now was lost.
func (d *decoder) resolveStacks() {
	for _, s := range d.unresolved {
		s.detail.StackID = d.stacks.Resolve(s.raw)
	}
	d.unresolved = d.unresolved[:0]
	for i := range d.memory {
		d.memory[i].StackID = d.stacks.IDOf(d.memory[i].rawStack)
	}
}

// flushMemory hands the rows of memory to the sink.
func (d *decoder) flushMemory() error {
	d.memoryBatch = d.memoryBatch[:0]
	for i := range d.memory {
		d.memoryBatch = append(d.memoryBatch, d.memory[i].Memory)
	}
	d.memory = d.memory[:0]
	return d.sink.Memory(d.memoryBatch)
}
