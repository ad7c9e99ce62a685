package weights

import (
	"math"
	"slices"
	"time"
)

// history are looks at the job, since some time before the oldest slice that waits.
type history []Mark

// add notes a look; those before the oldest that is needed may be let go.
func (h *history) add(m Mark, oldest time.Time) {
	if n := len(*h); n > 1024 && (*h)[n/2].At.Before(oldest) {
		*h = slices.Delete(*h, 0, n/2)
	}
	*h = append(*h, m)
}

// markAt is a moment between two looks, on the line between them.
func (h history) markAt(ns int64) Mark {
	at := time.Unix(0, ns)
	i, found := slices.BinarySearchFunc(h, at, func(m Mark, at time.Time) int { return m.At.Compare(at) })
	switch {
	case len(h) == 0:
		return Mark{At: at}
	case found || i == 0:
		m := h[i]
		m.At = at
		return m
	case i == len(h):
		m := h[i-1]
		m.At = at
		return m
	}
	a, b := h[i-1], h[i]
	part := float64(ns-a.At.UnixNano()) / float64(max(1, b.At.UnixNano()-a.At.UnixNano()))
	between := func(from, to uint64) uint64 {
		return from + uint64(math.Round(part*float64(max(to, from)-from)))
	}
	return Mark{at, between(a.Steps, b.Steps), between(a.Nodes, b.Nodes), a.Counted && b.Counted}
}

// trained reports whether the job has made nodes at some time.
func (h history) trained() bool {
	return len(h) > 0 && h[len(h)-1].Nodes >= MinNodes
}

// still is the time around an interval in which the job made no nodes, as far as it is
// known: from began on, up to end, if that is not 0.
func (h history) still(i *interval, began, end int64) (from, to int64) {
	from, to = i.on.At.UnixNano(), i.off.At.UnixNano()
	first, last := false, false
	for n := len(h) - 1; n >= 0; n-- {
		m := &h[n]
		switch {
		case m.At.After(i.off.At):
			if m.Counted && m.Nodes < i.off.Nodes+MinNodes {
				last = last || n == len(h)-1
				to = max(to, m.At.UnixNano())
			}
		case m.At.Before(i.on.At):
			if !m.Counted || m.Nodes+MinNodes <= i.on.Nodes {
				return from, stillTo(to, end, last)
			}
			from, first = m.At.UnixNano(), n == 0
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
