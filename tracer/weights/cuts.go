package weights

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// A slice that saw too little of a phase lies in the stretch of another, and its rows
// stand for themselves: the other's stand for the rest.

// cut is such a slice. A probe that was not in it has no rows there.
type cut struct {
	on, off int64
	probes  map[uint32]bool
}

func (i *interval) cut() cut {
	c := cut{i.on.At.UnixNano(), i.off.At.UnixNano(), make(map[uint32]bool, len(i.attached))}
	for _, index := range i.attached {
		c.probes[index] = true
	}
	return c
}

// aloneIn is one of a stratum whose rows were let go.
type aloneIn struct {
	stratum
	cut
}

// keptAlone bounds those that are kept: where steps are very long, no slice sees a whole one.
const keptAlone = 256

// letGo notes one.
func (x *stretches) letGo(a aloneIn) {
	if len(x.alone) >= keptAlone {
		x.alone = slices.Delete(x.alone, 0, keptAlone/4)
	}
	x.alone = append(x.alone, a)
}

// cuts are the slices in a stretch whose rows stand for themselves alone: those that were
// let go, and those that will be.
func (x *sharing) cuts(s stratum, t *progress.Timeline, from, to int64) (cuts []cut) {
	x.alone = slices.DeleteFunc(x.alone, func(a aloneIn) bool { return a.stratum == s && a.off <= from })
	for _, a := range x.alone {
		if a.stratum == s && a.on < to {
			cuts = append(cuts, a.cut)
		}
	}
	for _, i := range x.pending {
		if i == x.j || !i.over || i.off.At.UnixNano() <= from || i.on.At.UnixNano() >= to {
			continue
		}
		if n, enough := i.saw(t, s.phase); n > 0 && !enough {
			cuts = append(cuts, i.cut())
		}
	}
	return cuts
}
