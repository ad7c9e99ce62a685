package hot

import (
	"cmp"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
)

// Request is a hot block as a plan knows it.
type Request struct {
	Path       int64
	Bytes      int64
	Occurrence int // which request of this path and size in the step, from 0
	// Lifetime in ticks of hot requests alone: allocations and frees of the step.
	Lower, Upper int64
	// Whole: it lives past the end of the step, until before its own next birth
	// (a gradient), and so is planned for the whole of it.
	Whole   bool
	Example int // position of one such block
}

// Template is the hot part of a step.
type Template struct {
	Requests []Request // in order of birth
	Ticks    int64
	FirstOf3 int // the first of the three steps it was found in
	// What recurs, over all whole steps: requests, and their bytes.
	Requested, Recurring           int64
	RequestedBytes, RecurringBytes int64
	Steps                          int    // in which all of the template recurs
	First                          int    // the first of these
	Hot                            []bool // by block: it was one of the template's
}

// Share of the bytes requested in whole steps that recur.
func (t *Template) Share() float64 {
	return float64(t.RecurringBytes) / float64(max(t.RequestedBytes, 1))
}

// Warmup is how many steps at the beginning no plan could have served: those before
// the first in which all of the template recurs, and that one, which it would be
// learned from. It is 0 where the first step is like the others, or where too few
// are left.
func (t *Template) Warmup(steps int) int {
	if t.First == 0 || steps-(t.First+1) < FewestSteps {
		return 0
	}
	return t.First + 1
}

// Blocks are the template's for a solver.
func (t *Template) Blocks() []solve.Block {
	all := make([]solve.Block, len(t.Requests))
	for i, r := range t.Requests {
		all[i] = solve.Block{Lower: r.Lower, Upper: r.Upper, Size: r.Bytes}
	}
	return all
}

// identity is a request within a step.
type identity struct {
	key
	occurrence int
}

// step is the blocks that were born in one.
type step struct {
	begin, end int64
	born       []int
	index      map[identity]int // position of the block
}

// triples is how many places are looked at for three steps that are alike.
const triples = 40

// NewTemplate finds the requests that recur with the same path, size, relative
// birth and relative death in three consecutive steps. It returns nil without
// them.
func NewTemplate(l *blocks.Lives, s Steps) *Template {
	if s.Whole() < FewestSteps {
		return nil
	}
	steps := split(l, s)
	var best *Template
	for n, stride := 0, max(1, (len(steps)-2)/triples); n+2 < len(steps); n += stride {
		// From the end: the beginning is warm-up.
		first := len(steps) - 3 - n
		if t := fromThree(l, steps[first:first+3]); len(t.Requests) > 0 && (best == nil || len(t.Requests) > len(best.Requests)) {
			t.FirstOf3 = first
			best = t
		}
	}
	if best != nil {
		best.follow(l, steps)
	}
	return best
}

func split(l *blocks.Lives, s Steps) []step {
	steps := make([]step, s.Whole())
	for k := range steps {
		steps[k] = step{begin: s.Cuts[k], end: s.Cuts[k+1], index: map[identity]int{}}
	}
	k := 0
	for _, i := range bornInOrder(l) {
		b := &l.Blocks[i]
		for k < len(steps) && b.Born > steps[k].end {
			k++
		}
		if k == len(steps) {
			break
		}
		if b.Born <= steps[k].begin {
			continue
		}
		id := identity{key: keyOf(b)}
		for _, is := steps[k].index[id]; is; _, is = steps[k].index[id] {
			id.occurrence++
		}
		steps[k].index[id] = i
		steps[k].born = append(steps[k].born, i)
	}
	return steps
}

// place is a request's life relative to the step, in ticks of hot requests.
type place struct {
	birth, death int64
	whole        bool
}

// fromThree keeps what is in all three steps at the same relative ticks. Ticks
// count hot requests only, so taking one out moves the others: it repeats until
// nothing is taken out.
func fromThree(l *blocks.Lives, three []step) *Template {
	hot := map[identity]bool{}
	for id := range three[0].index {
		_, second := three[1].index[id]
		_, third := three[2].index[id]
		if second && third && recurs(l, three, id) {
			hot[id] = true
		}
	}
	var places [3]map[identity]place
	for {
		for k := range three {
			places[k], _ = ticks(l, &three[k], hot)
		}
		before := len(hot)
		for id := range hot {
			if places[0][id] != places[1][id] || places[1][id] != places[2][id] {
				delete(hot, id)
			}
		}
		if len(hot) == before {
			break
		}
	}
	t := &Template{}
	_, t.Ticks = ticks(l, &three[2], hot)
	for id := range hot {
		p := places[2][id]
		r := Request{Path: id.path, Bytes: id.bytes, Occurrence: id.occurrence, Lower: p.birth, Upper: p.death, Whole: p.whole,
			Example: three[2].index[id]}
		if p.whole {
			r.Lower, r.Upper = 0, t.Ticks+1
		}
		t.Requests = append(t.Requests, r)
	}
	slices.SortFunc(t.Requests, func(a, b Request) int {
		return cmp.Compare(l.Blocks[a.Example].Born, l.Blocks[b.Example].Born)
	})
	return t
}

// recurs: a block that outlives its step dies before its own next birth; else it
// is no part of what repeats.
func recurs(l *blocks.Lives, three []step, id identity) bool {
	for k := range three {
		b := &l.Blocks[three[k].index[id]]
		if b.Died <= three[k].end {
			continue
		}
		if b.Died == blocks.Alive || k < 2 && b.Died > l.Blocks[three[k+1].index[id]].Born {
			return false
		}
		// Of the third step's the next birth is not known: the first two tell.
	}
	return true
}

// ticks numbers the births and deaths of hot blocks within a step.
func ticks(l *blocks.Lives, s *step, hot map[identity]bool) (places map[identity]place, count int64) {
	type happening struct {
		at    int64
		id    identity
		death bool
	}
	var all []happening
	places = make(map[identity]place, len(hot))
	for id := range hot {
		b := &l.Blocks[s.index[id]]
		all = append(all, happening{b.Born, id, false})
		if b.Died <= s.end {
			all = append(all, happening{b.Died, id, true})
		} else {
			places[id] = place{whole: true}
		}
	}
	slices.SortFunc(all, func(a, b happening) int { return cmp.Compare(a.at, b.at) })
	for at, h := range all {
		p := places[h.id]
		if h.death {
			p.death = int64(at)
		} else {
			p.birth = int64(at)
		}
		places[h.id] = p
	}
	return places, int64(len(all))
}

// follow finds the template's requests in every whole step.
func (t *Template) follow(l *blocks.Lives, steps []step) {
	t.Hot = make([]bool, len(l.Blocks))
	hot := map[identity]*Request{}
	for i := range t.Requests {
		r := &t.Requests[i]
		hot[identity{key{r.Path, r.Bytes}, r.Occurrence}] = r
	}
	for k := range steps {
		s := &steps[k]
		found := 0
		for id, i := range s.index {
			b := &l.Blocks[i]
			t.Requested++
			t.RequestedBytes += b.Bytes
			r, is := hot[id]
			if !is || r.Whole != (b.Died > s.end) {
				continue
			}
			if next := k + 1; r.Whole && next < len(steps) {
				if again, is := steps[next].index[id]; is && b.Died > l.Blocks[again].Born {
					continue
				}
			}
			found++
			t.Hot[i] = true
			t.Recurring++
			t.RecurringBytes += b.Bytes
		}
		if found == len(t.Requests) {
			if t.Steps == 0 {
				t.First = k
			}
			t.Steps++
		}
	}
	t.followInto(l, steps[0].begin, hot)
}

// followInto finds what the step before the first whole one left to it: what the
// template plans for a whole step, born before the first cut.
func (t *Template) followInto(l *blocks.Lives, cut int64, hot map[identity]*Request) {
	seen := map[key]int{}
	for i := range l.Blocks {
		b := &l.Blocks[i]
		if b.Born > cut || b.Died <= cut || b.Died == blocks.Alive {
			continue
		}
		id := identity{keyOf(b), seen[keyOf(b)]}
		seen[keyOf(b)]++
		if r, is := hot[id]; is && r.Whole && b.Died-cut <= t.Ticks+int64(len(t.Requests)) {
			t.Hot[i] = true
		}
	}
}
