package budget

import (
	"math"
	"slices"
	"time"
)

// history are looks at the job, since some time before the oldest slice that waits.
type history []sliceMark

// add notes a look; those before the oldest that is needed may be let go.
func (h *history) add(m sliceMark, oldest time.Time) {
	if n := len(*h); n > 1024 && (*h)[n/2].at.Before(oldest) {
		*h = slices.Delete(*h, 0, n/2)
	}
	*h = append(*h, m)
}

// markAt is a moment between two looks, on the line between them.
func (h history) markAt(ns int64) sliceMark {
	at := time.Unix(0, ns)
	i, found := slices.BinarySearchFunc(h, at, func(m sliceMark, at time.Time) int { return m.at.Compare(at) })
	switch {
	case len(h) == 0:
		return sliceMark{at: at}
	case found || i == 0:
		m := h[i]
		m.at = at
		return m
	case i == len(h):
		m := h[i-1]
		m.at = at
		return m
	}
	a, b := h[i-1], h[i]
	part := float64(ns-a.at.UnixNano()) / float64(max(1, b.at.UnixNano()-a.at.UnixNano()))
	between := func(from, to uint64) uint64 {
		return from + uint64(math.Round(part*float64(max(to, from)-from)))
	}
	return sliceMark{at, between(a.steps, b.steps), between(a.nodes, b.nodes), a.counted && b.counted}
}

// trained reports whether the job has made nodes at some time.
func (h history) trained() bool {
	return len(h) > 0 && h[len(h)-1].nodes >= weightNodes
}

// still is the time around an interval in which the job made no nodes, as far as it is
// known: from began on, up to end, if that is not 0.
func (h history) still(i *interval, began, end int64) (from, to int64) {
	from, to = i.on.at.UnixNano(), i.off.at.UnixNano()
	first, last := false, false
	for n := len(h) - 1; n >= 0; n-- {
		m := &h[n]
		switch {
		case m.at.After(i.off.at):
			if m.counted && m.nodes < i.off.nodes+weightNodes {
				last = last || n == len(h)-1
				to = max(to, m.at.UnixNano())
			}
		case m.at.Before(i.on.at):
			if !m.counted || m.nodes+weightNodes <= i.on.nodes {
				return from, stillTo(to, end, last)
			}
			from, first = m.at.UnixNano(), n == 0
		}
	}
	if first {
		from = min(from, began)
	}
	return max(from, began), stillTo(to, end, last)
}

// stillTo is the end of a still time that lasts until the last look, or does not.
func stillTo(to, end int64, last bool) int64 {
	if last && end != 0 {
		return end
	}
	return to
}
