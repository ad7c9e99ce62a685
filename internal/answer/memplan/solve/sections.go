package solve

import (
	"cmp"
	"slices"
)

// problem is one component for the search: time cut into sections, blocks
// numbered in the order in which the search prefers them.
//
// A section is an instant at which the set of live blocks is contained in no
// neighbour's: between a beginning and the next end. What fits in all sections
// fits always.
type problem struct {
	index    []int32 // of the search's blocks in the caller's slice
	size     []int64
	from, to []int32   // sections [from, to) of a block
	over     [][]int32 // blocks that live at the same time, by number
	live     []int64   // bytes by section
	fixed    []span    // by block: where it must be; at < 0 if free
	blocked  [][]span  // by block: addresses that fixed blocks take during its life, by address
	byStart  []int32   // free blocks by from
	cover    [][]int32 // by section: the free blocks that live in it
}

// span is a range of addresses.
type span struct{ at, end int64 }

// newProblem takes the blocks of a component in the order in which the search
// shall prefer them.
func newProblem(blocks []Block, fixed Fixed, preferred []int32) *problem {
	n := len(preferred)
	p := &problem{index: preferred, size: make([]int64, n), from: make([]int32, n), to: make([]int32, n),
		over: make([][]int32, n), fixed: make([]span, n), blocked: make([][]span, n)}
	local := make([]Block, n)
	for i, b := range preferred {
		local[i], p.size[i] = blocks[b], blocks[b].Size
		p.fixed[i] = span{-1, -1}
		if at, is := fixed[int(b)]; is {
			p.fixed[i] = span{at, at + blocks[b].Size}
		}
	}
	p.cut(local)
	p.relate()
	return p
}

// cut finds the sections and which of them a block spans.
func (p *problem) cut(local []Block) {
	var live int64
	section, open := int32(0), false
	for _, e := range edges(local) {
		begins := local[e.block].Lower == e.at && e.change > 0
		switch {
		case begins:
			live += e.change
			p.from[e.block], open = section, true
		default:
			if open {
				p.live = append(p.live, live)
				section, open = section+1, false
			}
			live += e.change
			p.to[e.block] = section
		}
	}
}

// relate finds the pairs of blocks that live at the same time.
func (p *problem) relate() {
	byFrom := make([]int32, len(p.size))
	for i := range byFrom {
		byFrom[i] = int32(i)
	}
	slices.SortFunc(byFrom, func(a, b int32) int { return cmp.Or(cmp.Compare(p.from[a], p.from[b]), cmp.Compare(a, b)) })
	for at, i := range byFrom {
		for _, j := range byFrom[at+1:] {
			if p.from[j] >= p.to[i] {
				break
			}
			switch {
			case p.fixed[i].at < 0 && p.fixed[j].at < 0:
				p.over[i], p.over[j] = append(p.over[i], j), append(p.over[j], i)
			case p.fixed[i].at < 0:
				p.blocked[i] = append(p.blocked[i], p.fixed[j])
			case p.fixed[j].at < 0:
				p.blocked[j] = append(p.blocked[j], p.fixed[i])
			}
		}
		if p.fixed[i].at < 0 {
			p.byStart = append(p.byStart, i)
		}
	}
	for i := range p.blocked {
		slices.SortFunc(p.blocked[i], func(a, b span) int { return cmp.Compare(a.at, b.at) })
	}
	p.cover = make([][]int32, len(p.live))
	for _, i := range p.byStart {
		for k := p.from[i]; k < p.to[i]; k++ {
			p.cover[k] = append(p.cover[k], i)
		}
	}
	// Fixed blocks are not the search's: their bytes are not waiting for a place.
	for i, f := range p.fixed {
		if f.at >= 0 {
			for s := p.from[i]; s < p.to[i]; s++ {
				p.live[s] -= p.size[i]
			}
		}
	}
}

// above is the lowest offset from at on that fixed blocks leave free for block i.
func (p *problem) above(i int32, at int64) int64 {
	for _, b := range p.blocked[i] {
		if at+p.size[i] > b.at && at < b.end {
			at = b.end
		}
	}
	return at
}
