package timeline

// hits are how many passes of probes one end of the call took: none of what is seen without
// a probe (long reads and writes) and of the ends of work on devices.
func (s Span) hits(n float64) float64 {
	switch s.Layer {
	case "op", "autograd", "scope", "runtime", "collective":
		return n
	}
	return 0
}

// beginHits weighs the begin of a call in hits. The outermost call of a layer also walks the
// thread's Python stack, or finds that it is the one before, which costs about as much again
// (docs/overhead.md: a memoised stack beside an empty probe).
func (b *builder) beginHits(span int) float64 {
	if s := b.Spans[span]; s.Stack != 0 && s.Layer != "autograd" && b.Outermost(span) {
		return 2
	}
	return 1
}
