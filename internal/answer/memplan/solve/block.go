// Package solve places memory blocks with lifetimes at offsets, so that no two
// that live at the same time overlap and the highest end, the peak, is low:
// offline dynamic storage allocation, which is NP-hard.
//
// It owns the algorithms over plain values: the best fit of Sekiyama et al.
// (arXiv 1804.10001) exactly as published, first fits, a search with a
// deadline, the lower bound, and a checker that shares nothing with them.
// Where blocks come from, and what is done with a plan, is not its business.
package solve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Block is one request for memory. It lives in [Lower, Upper): ticks, or any
// other clock. A block's identity is its position in the slice.
type Block struct {
	Lower, Upper int64
	Size         int64 // bytes
}

// Lifetime is how long the block lives, in ticks.
func (b Block) Lifetime() int64 { return b.Upper - b.Lower }

// Fixed is an offset that a plan must keep, by the block's position.
type Fixed map[int]int64

// MaxTotal is the largest sum of sizes that is accepted: offsets, and twice an
// offset, stay far within an int64.
const MaxTotal = math.MaxInt64 / 4

var (
	// ErrInverted is returned for a block that ends before it begins.
	ErrInverted = errors.New("a lifetime ends before it begins")
	// ErrNegative is returned for a negative size or offset.
	ErrNegative = errors.New("a size or an offset is negative")
	// ErrTooLarge is returned when sizes add up to more than MaxTotal.
	ErrTooLarge = errors.New("the sizes add up to more than 2 EiB")
	// ErrFixedOverlap is returned when two fixed blocks are in each other's way.
	ErrFixedOverlap = errors.New("two fixed blocks overlap")
)

// validate rejects what no solver could place.
func validate(blocks []Block, fixed Fixed) error {
	var total int64
	for i, b := range blocks {
		switch {
		case b.Upper < b.Lower:
			return fmt.Errorf("block %d [%d, %d): %w", i, b.Lower, b.Upper, ErrInverted)
		case b.Size < 0:
			return fmt.Errorf("block %d, size %d: %w", i, b.Size, ErrNegative)
		case b.Size > MaxTotal-total:
			return fmt.Errorf("block %d, size %d: %w", i, b.Size, ErrTooLarge)
		}
		total += b.Size
	}
	for i, offset := range fixed {
		switch {
		case i < 0 || i >= len(blocks):
			return fmt.Errorf("fixed block %d: there are %d blocks", i, len(blocks))
		case offset < 0:
			return fmt.Errorf("fixed block %d, offset %d: %w", i, offset, ErrNegative)
		case offset > MaxTotal-blocks[i].Size:
			return fmt.Errorf("fixed block %d, offset %d: %w", i, offset, ErrTooLarge)
		}
	}
	return nil
}

// LowerBound is the largest sum of sizes alive at one instant: no plan's peak
// is lower.
func LowerBound(blocks []Block) int64 {
	var live, most int64
	for _, e := range edges(blocks) {
		live += e.change
		most = max(most, live)
	}
	return most
}

// Total is what the blocks take without any reuse.
func Total(blocks []Block) int64 {
	var total int64
	for _, b := range blocks {
		total += b.Size
	}
	return total
}

// Peak is the highest end of a block in a plan.
func Peak(blocks []Block, offsets []int64) int64 {
	var peak int64
	for i, b := range blocks {
		if b.Lower < b.Upper {
			peak = max(peak, offsets[i]+b.Size)
		}
	}
	return peak
}

// edge is an instant at which a block begins or ends.
type edge struct {
	at, change int64
	block      int32
}

// edges are all beginnings and ends in time; at one instant ends come first.
func edges(blocks []Block) []edge {
	begins, ends := byBirth(blocks), byDeath(blocks)
	all := make([]edge, 0, len(begins)+len(ends))
	for len(ends) > 0 {
		if i := ends[0]; len(begins) == 0 || blocks[i].Upper <= blocks[begins[0]].Lower {
			all, ends = append(all, edge{blocks[i].Upper, -blocks[i].Size, i}), ends[1:]
			continue
		}
		i := begins[0]
		all, begins = append(all, edge{blocks[i].Lower, blocks[i].Size, i}), begins[1:]
	}
	return all
}

// byBirth are the blocks that live, in the order of their births. Most traces have
// them in it already, which makes that a matter of one pass.
func byBirth(blocks []Block) []int32 {
	order := living(blocks)
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(blocks[a].Lower, blocks[b].Lower), cmp.Compare(a, b))
	})
	return order
}

func byDeath(blocks []Block) []int32 {
	order := living(blocks)
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(blocks[a].Upper, blocks[b].Upper), cmp.Compare(a, b))
	})
	return order
}

func living(blocks []Block) []int32 {
	order := make([]int32, 0, len(blocks))
	for i, b := range blocks {
		if b.Lower < b.Upper {
			order = append(order, int32(i))
		}
	}
	return order
}

// components are groups of blocks that share no instant with another group:
// each can be planned alone. Blocks that never live, or have no size, are in
// none.
func components(blocks []Block) [][]int32 {
	order := slices.DeleteFunc(byBirth(blocks), func(i int32) bool { return blocks[i].Size == 0 })
	var groups [][]int32
	for begin := 0; begin < len(order); {
		end, upper := begin+1, blocks[order[begin]].Upper
		for end < len(order) && blocks[order[end]].Lower < upper {
			upper = max(upper, blocks[order[end]].Upper)
			end++
		}
		groups = append(groups, order[begin:end:end])
		begin = end
	}
	return groups
}
