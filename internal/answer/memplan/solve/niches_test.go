package solve

import (
	"context"
	"math/rand/v2"
	"testing"
)

// TestNichesFindTheOptimum, and show that there is nothing below it.
func TestNichesFindTheOptimum(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	cases := 0
	for n := range 4000 {
		blocks := randomBlocks(r, 2+r.IntN(6))
		if len(components(blocks)) != 1 {
			continue
		}
		best, rules := optimum(blocks), nichePreferences[n%len(nichePreferences)]
		s := newNiches(newProblem(blocks, nil, positions(blocks)), rules)
		if o := s.run(context.Background(), best, 1e6); o != found {
			t.Fatalf("optimum %d: %v of %v", best, o, blocks)
		}
		_, offsets := s.plan()
		if err := Check(blocks, nil, offsets); err != nil || Peak(blocks, offsets) > best {
			t.Fatalf("%v, peak %d of %d, %v", err, Peak(blocks, offsets), best, blocks)
		}
		cases++
	}
	if cases < 1000 {
		t.Fatalf("%d cases: the test tells nothing", cases)
	}
}

// fullBlocks fill a capacity at each of some ticks, whether they can be laid out so
// or not.
func fullBlocks(r *rand.Rand, capacity, ticks int64) (blocks []Block) {
	for tick := range ticks {
		var live int64
		for _, b := range blocks {
			if b.Upper > tick {
				live += b.Size
			}
		}
		for live < capacity {
			size := 1 + r.Int64N(min(capacity-live, 5))
			blocks = append(blocks, Block{tick, min(ticks, tick+1+r.Int64N(5)), size})
			live += size
		}
	}
	return blocks
}

// TestNichesProveAsTheOtherSearchDoes: of problems with little room both searches
// say the same, that there is a plan or that there is none.
func TestNichesProveAsTheOtherSearchDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 20))
	plans, proofs := 0, 0
	for n := range 8000 {
		const capacity = 10
		blocks := fullBlocks(r, capacity, 8)
		order := positions(blocks)
		if len(components(blocks)) != 1 {
			continue
		}
		other := newSearch(newProblem(blocks, nil, order)).run(context.Background(), capacity, 1e6)
		s := newNiches(newProblem(blocks, nil, order), nichePreferences[n%len(nichePreferences)])
		o := s.run(context.Background(), capacity, 1e6)
		if o != other {
			t.Fatalf("%v, the other search %v, of %v within %d", o, other, blocks, capacity)
		}
		if o == exhausted {
			proofs++
			continue
		}
		plans++
		if err := Check(blocks, nil, s.offset); err != nil || Peak(blocks, s.offset) > capacity {
			t.Fatalf("%v, %v", err, blocks)
		}
	}
	if plans < 100 || proofs < 20 {
		t.Fatalf("%d plans, %d proofs: the test tells nothing", plans, proofs)
	}
}
