package export

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIdsAreFoundWhereverOneLooks: also far from where the last one was.
func TestIdsAreFoundWhereverOneLooks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var all []int64
	for v := int64(1); len(all) < 500; v += 1 + r.Int64N(4) {
		all = append(all, v)
	}
	for _, sorted := range [][]int64{nil, all[:1], all} {
		x := ids{n: len(sorted), of: func(i int) int64 { return sorted[i] }}
		for k := range int64(20_000) {
			id := r.Int64N(1400)
			if k%3 > 0 { // mostly in order
				id = k / 10 % 1400
			}
			at, want := slices.BinarySearch(sorted, id)
			if i, is := x.find(id); is != want || i != at {
				t.Fatalf("%d of %d: found %v at %d, want %v at %d", id, len(sorted), is, i, want, at)
			}
		}
	}
}
