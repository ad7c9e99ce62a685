package solve_test

// Planning problems whose best peak is known, because they are cut from a rectangle of
// time × capacity: what the solvers are held against. The public instances that they
// resemble are MiniMalloc's.

import (
	"math/rand/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
)

// Capacity of every problem, in bytes, and how long its clock runs: those of
// MiniMalloc's instances.
const (
	Capacity = 1 << 20
	Ticks    = 1 << 20
)

// Shape says how a rectangle is cut.
type Shape struct {
	Blocks int
	// Grain is what sizes are multiples of.
	Grain int64
	// Instants is how many different times there are at most: few of them make
	// blocks begin and end together, as they do where operators follow one another.
	Instants int64
	// Gaps is the share of blocks that are left out after cutting.
	Gaps float64
	// Even cuts what is largest, so that blocks are about equally large; else any
	// piece is cut, which makes many sizes.
	Even bool
}

// Shapes by name, with so many blocks each.
func Shapes(n int) []Named {
	return []Named{
		{"even", Shape{Blocks: n, Grain: 1024, Instants: 1 << 10, Even: true}},
		{"even, few instants", Shape{Blocks: n, Grain: 1024, Instants: 64, Even: true}},
		{"even, 4 % left out", Shape{Blocks: n, Grain: 1024, Instants: 1 << 10, Even: true, Gaps: 0.04}},
		{"any", Shape{Blocks: n, Grain: 1024, Instants: 1 << 10}},
		{"any, 4 % left out", Shape{Blocks: n, Grain: 1024, Instants: 128, Gaps: 0.04}},
	}
}

// Named is a shape with what it is called.
type Named struct {
	Name string
	Shape
}

// Make cuts a rectangle; the same seed has the same blocks. The offsets are those
// of a plan with a peak of at most Capacity.
func (s Shape) Make(seed uint64) (blocks []solve.Block, offsets []int64) {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	type piece struct {
		lower, upper, at, size int64 // in instants and grains
	}
	pieces := []piece{{0, s.Instants, 0, Capacity / s.Grain}}
	wanted := int(float64(s.Blocks) / (1 - s.Gaps))
	for tries := 0; len(pieces) < wanted && tries < 1000*wanted; tries++ {
		i := r.IntN(len(pieces))
		if s.Even {
			for range 3 {
				j := r.IntN(len(pieces))
				area := func(p piece) int64 { return (p.upper - p.lower) * p.size }
				if area(pieces[j]) > area(pieces[i]) {
					i = j
				}
			}
		}
		p := pieces[i]
		if r.IntN(2) == 0 && p.upper-p.lower >= 2 {
			middle := p.lower + 1 + r.Int64N(p.upper-p.lower-1)
			pieces[i].upper = middle
			pieces = append(pieces, piece{middle, p.upper, p.at, p.size})
		} else if p.size >= 2 {
			size := 1 + r.Int64N(p.size-1)
			pieces[i].size = size
			pieces = append(pieces, piece{p.lower, p.upper, p.at + size, p.size - size})
		}
	}
	r.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	for _, p := range pieces[:min(len(pieces), s.Blocks)] {
		tick := Ticks / s.Instants
		blocks = append(blocks, solve.Block{Lower: p.lower * tick, Upper: p.upper * tick, Size: p.size * s.Grain})
		offsets = append(offsets, p.at*s.Grain)
	}
	return blocks, offsets
}
