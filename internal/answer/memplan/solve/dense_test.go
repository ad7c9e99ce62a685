package solve_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
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

// TestTheSearchTurnsToWhatIsHighest: a part that cannot be brought to the capacity in
// any time a test has does not keep another, which has become the highest, waiting.
func TestTheSearchTurnsToWhatIsHighest(t *testing.T) {
	atOnce := func(blocks []solve.Block) int64 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		plan, err := solve.Solve(ctx, solve.Problem{Blocks: blocks, Capacity: Capacity, Progress: func(a solve.Attempt) {
			if a.Solver == "first_fit_lifetime" { // the last one before the search
				cancel()
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return plan.Peak
	}
	hard, _ := Shape{Blocks: 400, Grain: 1024, Instants: 256, Even: true}.Make(1)
	easy, _ := Shape{Blocks: 50, Grain: 1024, Instants: 256, Even: true}.Make(1)
	first := atOnce(easy)
	if first <= Capacity || atOnce(hard) <= first {
		t.Fatalf("the hard one reaches %d at once, the easy one %d: the test tells nothing", atOnce(hard), first)
	}
	blocks := slices.Clone(hard)
	for _, b := range easy {
		blocks = append(blocks, solve.Block{Lower: b.Lower + 2*Ticks, Upper: b.Upper + 2*Ticks, Size: b.Size})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	plan, err := solve.Solve(ctx, solve.Problem{Blocks: blocks, Capacity: Capacity, Progress: func(a solve.Attempt) {
		if a.Solver == "search" && a.Peak < first {
			cancel()
		}
	}})
	if err != nil || plan.Peak >= first {
		t.Errorf("peak %d; the easy part has %d at once: %v", plan.Peak, first, err)
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
