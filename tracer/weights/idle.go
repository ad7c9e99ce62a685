package weights

import "time"

// A slice in which a training job made no autograd node, though they are counted, saw an
// import, an evaluation or the end of the job, and says nothing about its training. It
// stands for the time around it in which the job made none; those that saw nodes share
// out all the nodes, as if it were not there.

// idlePhase is the stratum of that time, where no steps are known.
const idlePhase = "idle"

// madeNone reports whether it is known that the job made no nodes in an interval.
func (i *interval) madeNone() bool {
	return i.over && i.on.Counted && i.off.Counted && i.off.Nodes < i.on.Nodes+MinNodes
}

// idles reports whether an interval stands for the time without nodes around it alone.
func (x *sharing) idles(i *interval) bool {
	return i.madeNone() && x.history.trained() && x.gauge.basis(i) == unitTime
}

// idleStretch is what the interval without nodes stands for: the time without nodes
// around it, up to the middle between it and the next such interval in that time.
func (x *sharing) idleStretch(pid int32) (from, to int64) {
	l, j := x.Ledger, x.j
	from, to = l.history.still(j, l.began, x.end)
	from = max(from, l.upTo[stratum{pid, idlePhase}])
	for _, next := range l.pending[1:] {
		on := next.on.At.UnixNano()
		if on >= to {
			break
		}
		if !next.over || x.idles(next) {
			off := j.off.At
			to = off.Add(time.Duration(on-off.UnixNano()) / 2).UnixNano()
			break
		}
	}
	return min(from, j.on.At.UnixNano()), to
}
