// Package hot finds the part of a job's memory that repeats from step to step,
// which can be planned, and follows what a plan would do with the rest. It owns
// how steps are cut where memory is lowest, which blocks are hot, and when a plan
// has to be made again.
package hot

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sort"

	"github.com/ebpfprof/ebpfprof/internal/memplan/blocks"
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

// recurring takes the request that cuts the sequence of requests into stretches
// of which the most equal the one before, and returns when it came.
func recurring(l *blocks.Lives) []int64 {
	const candidates = 64
	counts := map[key]int{}
	born := bornInOrder(l)
	for _, i := range born {
		counts[keyOf(&l.Blocks[i])]++
	}
	var keys []key
	for k, n := range counts {
		if n > FewestSteps {
			keys = append(keys, k)
		}
	}
	// Rare and large requests are more likely once a step.
	sort.Slice(keys, func(a, b int) bool {
		x, y := keys[a], keys[b]
		return cmp.Or(cmp.Compare(counts[x], counts[y]), cmp.Compare(y.bytes, x.bytes), cmp.Compare(x.path, y.path)) < 0
	})
	var best []int64
	most := 0
	for _, k := range keys[:min(len(keys), candidates)] {
		if covered, at := coverage(l, born, k); covered > most {
			most, best = covered, at
		}
	}
	if 2*most < len(born) {
		return nil // less than half repeats: these are no steps
	}
	return best
}

func keyOf(b *blocks.Block) key { return key{b.Path, b.Bytes} }

// bornInOrder are the blocks born in the recording.
func bornInOrder(l *blocks.Lives) []int {
	var born []int
	for i := range l.Blocks {
		if l.Blocks[i].Born > 0 {
			born = append(born, i)
		}
	}
	slices.SortFunc(born, func(a, b int) int { return cmp.Compare(l.Blocks[a].Born, l.Blocks[b].Born) })
	return born
}

var seed = maphash.MakeSeed()

// coverage is how many requests are in stretches between two of k that equal the
// stretch before.
func coverage(l *blocks.Lives, born []int, k key) (covered int, at []int64) {
	var hash maphash.Hash
	hash.SetSeed(seed)
	var before uint64
	length, first := 0, true
	for _, i := range born {
		b := &l.Blocks[i]
		if keyOf(b) == k {
			if !first {
				sum := hash.Sum64()
				if sum == before {
					covered += length
				}
				before = sum
			}
			first, length = false, 0
			hash.Reset()
			at = append(at, b.BornNS)
		}
		maphash.WriteComparable(&hash, keyOf(b))
		length++
	}
	return covered, at
}
