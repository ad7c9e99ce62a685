package solve

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// priority is the order in which the search, and LowestFirst, prefer blocks:
// keys that are compared one after the other, larger first.
type priority string

// The keys of a priority: T the contention of a block (the largest number of
// bytes alive at once during its life), W its lifetime, A its area, S its size.
const (
	keyContention = 'T'
	keyLifetime   = 'W'
	keyArea       = 'A'
	keySize       = 'S'
)

// priorities are tried in this order. The first three are MiniMalloc's.
var priorities = []priority{"TWA", "TAW", "WAT", "AWT", "TSW", "SWT", "WTA", "ATW"}

// sorted orders all blocks by priority; ties go to the position.
func (p priority) sorted(blocks []Block, contention []int64) []int32 {
	order := make([]int32, len(blocks))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &blocks[a], &blocks[b]
		for _, key := range p {
			var c int
			switch key {
			case keyContention:
				c = cmp.Compare(contention[b], contention[a])
			case keyLifetime:
				c = cmp.Compare(y.Lifetime(), x.Lifetime())
			case keyArea:
				c = compareAreas(*y, *x)
			case keySize:
				c = cmp.Compare(y.Size, x.Size)
			}
			if c != 0 {
				return c
			}
		}
		return cmp.Compare(a, b)
	})
	return order
}

// shuffled is a sorted order in which neighbours have changed places: for each
// seed another one, always the same.
func shuffled(order []int32, seed uint64) []int32 {
	mixed := slices.Clone(order)
	reach := uint64(2 + len(order)/8)
	keys := make(map[int32]uint64, len(order))
	for at, i := range mixed {
		seed = seed*6364136223846793005 + 1442695040888963407
		keys[i] = uint64(at) + (seed>>33)%reach
	}
	slices.SortStableFunc(mixed, func(a, b int32) int { return cmp.Compare(keys[a], keys[b]) })
	return mixed
}

// learnt is an order that prefers the blocks in whose sections a search failed
// most: by powers of two, so that its own order still counts among the rest.
func learnt(s *search) []int32 {
	weight := make([]int, len(s.index))
	for i := range weight {
		var most int64
		for k := s.from[i]; k < s.to[i]; k++ {
			most = max(most, s.fails[k])
		}
		weight[i] = bits.Len64(uint64(most))
	}
	places := make([]int32, len(s.index))
	for i := range places {
		places[i] = int32(i)
	}
	slices.SortStableFunc(places, func(a, b int32) int { return cmp.Compare(weight[b], weight[a]) })
	order := make([]int32, len(places))
	for at, i := range places {
		order[at] = s.index[i]
	}
	return order
}

// contentions are, for each block, the largest number of bytes alive at once
// during its life.
func contentions(blocks []Block) []int64 {
	all := edges(blocks)
	// live[k] is what lives after the first k edges; a block spans edges (begin, end].
	begin, end := make([]int32, len(blocks)), make([]int32, len(blocks))
	levels := [][]int64{make([]int64, len(all)+1)}
	for k, e := range all {
		levels[0][k+1] = levels[0][k] + e.change
		if begin[e.block] == 0 {
			begin[e.block] = int32(k + 1)
		} else {
			end[e.block] = int32(k + 1)
		}
	}
	for width := 1; 2*width <= len(all)+1; width *= 2 {
		below := levels[len(levels)-1]
		next := make([]int64, len(below)-width)
		for k := range next {
			next[k] = max(below[k], below[k+width])
		}
		levels = append(levels, next)
	}
	most := make([]int64, len(blocks))
	for i := range blocks {
		if begin[i] == 0 {
			continue
		}
		level := bits.Len32(uint32(end[i]-begin[i])) - 1
		most[i] = max(levels[level][begin[i]], levels[level][end[i]-1<<level])
	}
	return most
}

// words names a priority in the names of solvers.
func (p priority) words() string {
	names := map[rune]string{keyContention: "contention", keyLifetime: "lifetime", keyArea: "area", keySize: "size"}
	var words []string
	for _, key := range p[:2] {
		words = append(words, names[key])
	}
	return strings.Join(words, "_")
}
