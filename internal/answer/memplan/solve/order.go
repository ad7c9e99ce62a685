package solve

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
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
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(p.compare(blocks, contention, a, b), cmp.Compare(a, b)) })
	return order
}

// compare says which of two blocks comes first; 0 if the priority does not tell.
func (p priority) compare(blocks []Block, contention []int64, a, b int32) (c int) {
	x, y := &blocks[a], &blocks[b]
	for _, key := range p {
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
	return 0
}

// mixer makes orders that prefer blocks by the sum of their ranks by each key, with
// other weights each time, and some noise: one order finds within some thousand nodes
// what another does not find within millions.
type mixer struct {
	ranks [][]float64 // by key: of the blocks, from 0, the largest, on
}

// How much the keys of a mixed order weigh on average, and how far a block is moved
// at most, as a share of all.
var mixedWeights = map[rune]float64{keyContention: 2, keyLifetime: 1, keyArea: 1, keySize: 0.5}

const mixedNoise = 0.1

func newMixer(blocks []Block, contention []int64) mixer {
	var m mixer
	for _, key := range []priority{"T", "W", "A", "S"} {
		order, ranks := key.sorted(blocks, contention), make([]float64, len(blocks))
		for at, i := range order {
			ranks[i] = float64(at) / float64(len(blocks))
			if at > 0 && key.compare(blocks, contention, order[at-1], i) == 0 {
				ranks[i] = ranks[order[at-1]]
			}
		}
		m.ranks = append(m.ranks, ranks)
	}
	return m
}

// order is another one for each seed, always the same.
func (m mixer) order(seed uint64) []int32 {
	r := rand.New(rand.NewPCG(seed, 1))
	weights, total := make([]float64, len(m.ranks)), 0.0
	for k, key := range []rune{keyContention, keyLifetime, keyArea, keySize} {
		weights[k] = r.ExpFloat64() * mixedWeights[key]
		total += weights[k]
	}
	noise := mixedNoise * r.Float64() * r.Float64()
	order, ranks := make([]int32, len(m.ranks[0])), make([]float64, len(m.ranks[0]))
	for i := range order {
		order[i], ranks[i] = int32(i), noise*r.Float64()
		for k := range weights {
			ranks[i] += weights[k] / total * m.ranks[k][i]
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(ranks[a], ranks[b]), cmp.Compare(a, b)) })
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
