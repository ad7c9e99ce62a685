package budget

import "time"

// A slice in which a training job made no autograd node, though they are counted, saw an
// import, an evaluation or the end of the job, and tells nothing of its training. It
// stands for the time around it in which the job made none; those that saw nodes share
// out all the nodes, as if it were not there.

// idlePhase is the stratum of that time, where no steps are known.
const idlePhase = "idle"

// madeNone reports whether it is known that the job made no nodes in an interval.
func (i *interval) madeNone() bool {
	return i.over && i.on.counted && i.off.counted && i.off.nodes < i.on.nodes+weightNodes
}

// trained reports whether the job has made nodes at some time.
func (l *ledger) trained() bool {
	return len(l.history) > 0 && l.history[len(l.history)-1].nodes >= weightNodes
}

// idles reports whether an interval stands for the time without nodes around it alone.
func (g *Governor) idles(i *interval) bool {
	return i.madeNone() && g.ledger.trained() && g.basis(i) == unitTime
}

// still is the time around an interval in which the job made no nodes, as far as it is
// known: up to end, if that is not 0.
func (l *ledger) still(i *interval, end int64) (from, to int64) {
	from, to = i.on.at.UnixNano(), i.off.at.UnixNano()
	first, last := false, false
	for n := len(l.history) - 1; n >= 0; n-- {
		m := &l.history[n]
		switch {
		case m.at.After(i.off.at):
			if m.counted && m.nodes < i.off.nodes+weightNodes {
				last = last || n == len(l.history)-1
				to = max(to, m.at.UnixNano())
			}
		case m.at.Before(i.on.at):
			if !m.counted || m.nodes+weightNodes <= i.on.nodes {
				return from, l.stillTo(to, end, last)
			}
			from, first = m.at.UnixNano(), n == 0
		}
	}
	if first {
		from = min(from, l.began)
	}
	return max(from, l.began), l.stillTo(to, end, last)
}

// stillTo is the end of a still time that lasts until the last look, or does not.
func (l *ledger) stillTo(to, end int64, last bool) int64 {
	if last && end != 0 {
		return end
	}
	return to
}

// idleStretch is what an interval without nodes stands for: the time without nodes
// around it, up to the middle between it and the next such interval in that time.
func (g *Governor) idleStretch(j *interval, pid int32, end int64) (from, to int64) {
	l := g.ledger
	from, to = l.still(j, end)
	from = max(from, l.upTo[stratum{pid, idlePhase}])
	for _, next := range l.pending[1:] {
		on := next.on.at.UnixNano()
		if on >= to {
			break
		}
		if !next.over || g.idles(next) {
			off := j.off.at
			to = off.Add(time.Duration(on-off.UnixNano()) / 2).UnixNano()
			break
		}
	}
	return min(from, j.on.at.UnixNano()), to
}
