package dense

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/memplan/solve"
)

// TestProblemsHaveAPlanOfTheirCapacity: the one that they are cut from.
func TestProblemsHaveAPlanOfTheirCapacity(t *testing.T) {
	for _, n := range []int{20, 300, 3000} {
		for _, s := range Shapes(n) {
			blocks, offsets := s.Make(1)
			again, _ := s.Make(1)
			other, _ := s.Make(2)
			if !slices.Equal(blocks, again) || slices.Equal(blocks, other) {
				t.Errorf("%s, %d: the seed does not decide", s.Name, n)
			}
			if err := solve.Check(blocks, nil, offsets); err != nil || solve.Peak(blocks, offsets) > Capacity {
				t.Errorf("%s, %d: %v, peak %d", s.Name, n, err, solve.Peak(blocks, offsets))
			}
			if s.Gaps == 0 && solve.LowerBound(blocks) != Capacity || len(blocks) != n && s.Even {
				t.Errorf("%s, %d: %d blocks, bound %d", s.Name, n, len(blocks), solve.LowerBound(blocks))
			}
		}
	}
}

// TestTable prints the table of docs/memory.md: DENSE_TIME=60s go test -run Table -v.
func TestTable(t *testing.T) {
	limit, err := time.ParseDuration(os.Getenv("DENSE_TIME"))
	if err != nil {
		t.Skip("set DENSE_TIME to the time that each problem has")
	}
	for _, n := range []int{50, 100, 150, 300, 1000, 3000} {
		for _, s := range Shapes(n) {
			blocks, _ := s.Make(1)
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			begun := time.Now()
			plan, err := solve.Solve(ctx, solve.Problem{Blocks: blocks, Capacity: Capacity})
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			best, published := 0.0, 0.0
			for _, a := range plan.Attempts {
				if a.Solver == "search" || a.Peak == 0 {
					continue
				}
				ratio := float64(a.Peak) / Capacity
				if best == 0 || ratio < best {
					best = ratio
				}
				if a.Solver == "best_fit" {
					published = ratio
				}
			}
			t.Logf("| %s | %d | %.3f | %.3f | %.3f | %.1f s |", s.Name, len(blocks), published, best, float64(plan.Peak)/Capacity,
				time.Since(begun).Seconds())
		}
	}
}
