package timeline

// insideACall is the share of a hit that lies inside of the call whose edge it is at. The program at
// an entry reads the clock when it is done, that at an exit first of all, so that the trap alone is
// inside: its way out, its way in. With this share all kinds of segments of short calls are as
// long for each hit (a loop that fetches 400 values a step, PyTorch 2.15: 860 to 930 ns for what
// lies between, inside of and in one another; with half 620 to 1,270).
const insideACall = 0.4

// seen says whether the ends of the call were seen by probes: not those of what is seen
// without one (long reads and writes), nor of work on devices.
func (s Span) seen() bool {
	switch s.Layer {
	case "op", "autograd", "scope", "runtime", "collective":
		return true
	}
	return false
}

// beginHits are how many hits lie before the begin of a call and behind it. The outermost call
// of a layer also walks the thread's Python stack, or finds that it is the one before, which
// costs about as much again (docs/overhead-appendix.md: a memoised stack beside an empty probe), before
// the clock is read.
func (b *builder) beginHits(span int) (before, behind float64) {
	s := b.Spans[span]
	if !s.seen() {
		return 0, 0
	}
	before, behind = 1-insideACall, insideACall
	if s.Stack != 0 && s.Layer != "autograd" && b.Outermost(span) {
		before++
	}
	return before, behind
}

// endHits are those before and behind its end.
func (s Span) endHits() (before, behind float64) {
	if !s.seen() {
		return 0, 0
	}
	return insideACall, 1 - insideACall
}
