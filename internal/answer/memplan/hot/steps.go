// Package hot finds the part of a job's memory that repeats from step to step,
// which can be planned, and follows what a plan would do with the rest. It owns
// how steps are cut where memory is lowest, which blocks are hot, and when a plan
// has to be made again.
package hot

import (
	"cmp"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
)

// Steps are where the steps of an arena begin, as ticks: step k has the ticks
// (Cuts[k], Cuts[k+1]]. What is before the first cut, and after the last, belongs
// to no whole step.
type Steps struct {
	Cuts   []int64
	CutsNS []int64
	Method string // what told them
}

// Whole is how many whole steps there are.
func (s Steps) Whole() int { return max(0, len(s.Cuts)-1) }

// FewestSteps is how many steps are needed to tell what recurs.
const FewestSteps = 3

// Cut puts cuts between anchors, each where the fewest bytes are live between an
// anchor and the next one (the first such tick on ties): there the fewest blocks
// belong to two steps. Without three anchors the steps come from the allocations
// themselves.
func Cut(l *blocks.Lives, anchors []int64, method string) Steps {
	var inside []int64
	for _, a := range anchors {
		if a >= l.BeginNS && a <= l.EndNS {
			inside = append(inside, a)
		}
	}
	if len(inside) <= FewestSteps {
		inside, method = recurring(l), "recurring allocations"
	}
	if len(inside) <= FewestSteps {
		return Steps{}
	}
	return lowest(l, inside, method)
}

// lowest finds the tick with the fewest live bytes in each stretch between anchors.
func lowest(l *blocks.Lives, anchors []int64, method string) Steps {
	s := Steps{Method: method}
	at, best := 0, int64(-1)
	var tick, when int64
	l.Walk(func(t, ns, live int64) {
		for at < len(anchors) && ns >= anchors[at] {
			if best >= 0 {
				s.Cuts, s.CutsNS = append(s.Cuts, tick), append(s.CutsNS, when)
			}
			at, best = at+1, -1
		}
		if at > 0 && at < len(anchors) && (best < 0 || live < best) {
			best, tick, when = live, t, ns
		}
	})
	return s
}

// key is what makes two requests the same, but for when they come.
type key struct{ path, bytes int64 }

// What recurring looks at to choose: requests, the last ones, and candidates.
const (
	lookedAt   = 200_000
	candidates = 64
)

// recurring takes the request that cuts the sequence of requests into stretches
// of which the most equal the one before, and returns when it came.
func recurring(l *blocks.Lives) []int64 {
	born := bornInOrder(l)
	numbers := map[key]int32{}
	sequence := make([]int32, 0, min(len(born), lookedAt))
	for _, i := range born[max(0, len(born)-lookedAt):] {
		k := keyOf(&l.Blocks[i])
		n, is := numbers[k]
		if !is {
			n = int32(len(numbers))
			numbers[k] = n
		}
		sequence = append(sequence, n)
	}
	counts, keys := make([]int, len(numbers)), make([]key, len(numbers))
	for _, n := range sequence {
		counts[n]++
	}
	var often []int32
	for k, n := range numbers {
		if keys[n] = k; counts[n] > FewestSteps {
			often = append(often, n)
		}
	}
	// Rare and large requests are more likely once a step.
	slices.SortFunc(often, func(a, b int32) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(keys[b].bytes, keys[a].bytes), cmp.Compare(a, b))
	})
	best, most := int32(-1), 0
	for _, n := range often[:min(len(often), candidates)] {
		if covered := coverage(sequence, n); covered > most {
			most, best = covered, n
		}
	}
	if 2*most < len(sequence) || best < 0 {
		return nil // less than half repeats: these are no steps
	}
	var at []int64
	for _, i := range born {
		if b := &l.Blocks[i]; keyOf(b) == keys[best] {
			at = append(at, b.BornNS)
		}
	}
	return at
}

func keyOf(b *blocks.Block) key { return key{b.Path, b.Bytes} }

// bornInOrder are the blocks born in the recording.
func bornInOrder(l *blocks.Lives) []int {
	born := make([]int, 0, len(l.Blocks))
	for i := range l.Blocks { // which are in the order of their births
		if l.Blocks[i].Born > 0 {
			born = append(born, i)
		}
	}
	return born
}

// coverage is how many requests are in stretches between two of a number that equal
// the stretch before: in length and in a hash.
func coverage(sequence []int32, number int32) (covered int) {
	const prime = 0x9e3779b97f4a7c15
	var before, hash uint64
	length, lengthBefore, first := 0, -1, true
	for _, n := range sequence {
		if n == number {
			if !first && hash == before && length == lengthBefore {
				covered += length
			}
			before, lengthBefore = hash, length
			if first {
				lengthBefore = -1 // what is before the first is no stretch
			}
			first, length, hash = false, 0, 0
		}
		hash = (hash ^ uint64(n)) * prime
		hash ^= hash >> 29
		length++
	}
	return covered
}
