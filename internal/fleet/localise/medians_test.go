package localise

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// The median of all workers but one, found in the sorted values of all, is that of the
// others by themselves; with equal values, and workers without the function, too.
func TestTheMedianOfTheOthersIsFoundInThatOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 12; n++ {
		for range 200 {
			var row []*pattern.Pattern
			for range n {
				if r.IntN(5) == 0 {
					row = append(row, nil)
					continue
				}
				row = append(row, &pattern.Pattern{Beta: float64(r.IntN(4)), Mu: float64(r.IntN(4)), Sigma: r.Float64()})
			}
			all := mediansOf(row)
			for w, p := range row {
				others := mediansOf(slices.Concat(row[:w], row[w+1:])).all()
				if got := all.without(p); got != others {
					t.Fatalf("worker %d of %+v: %+v, the others by themselves have %+v", w, row, got, others)
				}
			}
		}
	}
}
