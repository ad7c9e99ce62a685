package solve

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// randomBlocks are n blocks on a short clock, so that many share instants.
func randomBlocks(r *rand.Rand, n int) []Block {
	blocks := make([]Block, n)
	for i := range blocks {
		lower := r.Int64N(8)
		blocks[i] = Block{lower, lower + 1 + r.Int64N(6), 1 + r.Int64N(9)}
	}
	return blocks
}

// optimum is the least peak, by trying every order in which blocks can be put
// down at the lowest place: one of them makes a best plan.
func optimum(blocks []Block) int64 {
	best, bound := Total(blocks), LowerBound(blocks)
	offsets, placed := make([]int64, len(blocks)), make([]bool, len(blocks))
	var try func(left int, peak int64)
	try = func(left int, peak int64) {
		if peak >= best || best == bound {
			return
		}
		if left == 0 {
			best = peak
			return
		}
		for i, b := range blocks {
			if placed[i] {
				continue
			}
			var busy []interval
			for j, other := range blocks {
				if placed[j] && other.Lower < b.Upper && b.Lower < other.Upper {
					busy = append(busy, interval{offsets[j], offsets[j] + other.Size})
				}
			}
			slices.SortFunc(busy, func(a, b interval) int { return int(a.from - b.from) })
			placed[i], offsets[i] = true, lowestGap(busy, b.Size)
			try(left-1, max(peak, offsets[i]+b.Size))
			placed[i] = false
		}
	}
	try(len(blocks), 0)
	return best
}

// TestSearchFindsTheOptimum: on every small case Solve's peak is the one of an
// exhaustive search, and it says so.
func TestSearchFindsTheOptimum(t *testing.T) {
	cases := 4000
	if testing.Short() {
		cases = 1000
	}
	r := rand.New(rand.NewPCG(1, 2))
	ratios := map[string][]float64{}
	for range cases {
		blocks := randomBlocks(r, 2+r.IntN(7))
		best := optimum(blocks)
		plan, err := Solve(context.Background(), Problem{Blocks: blocks})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Peak != best || !plan.Optimal {
			t.Fatalf("peak %d, optimal %v; exhaustively %d, of %v", plan.Peak, plan.Optimal, best, blocks)
		}
		for _, a := range plan.Attempts {
			if a.Outcome == finished {
				ratios[a.Solver] = append(ratios[a.Solver], float64(a.Peak)/float64(best))
			}
		}
	}
	for _, h := range append([]heuristic{{name: "first_fit_birth"}}, heuristics()...) {
		all := ratios[h.name]
		slices.Sort(all)
		exact, _ := slices.BinarySearch(all, math.Nextafter(1, 2))
		t.Logf("%-32s optimal in %4.1f %%, p90 %.3f, p99 %.3f, worst %.3f of the optimum", h.name,
			100*float64(exact)/float64(len(all)), all[len(all)*9/10], all[len(all)*99/100], all[len(all)-1])
		if all[len(all)-1] > 3 {
			t.Errorf("%s reached %.2f times the optimum", h.name, all[len(all)-1])
		}
	}
}

// publishedBestFit is the algorithm as the paper tells it, step by step and
// quadratic.
func publishedBestFit(blocks []Block) []int64 {
	type stretch struct{ begin, end, offset int64 }
	first, final := blocks[0].Lower, blocks[0].Upper
	for _, b := range blocks {
		first, final = min(first, b.Lower), max(final, b.Upper)
	}
	lines := []stretch{{first, final, 0}}
	offsets, placed, left := make([]int64, len(blocks)), make([]bool, len(blocks)), len(blocks)
	join := func() {
		var joined []stretch
		for _, l := range lines {
			if n := len(joined); n > 0 && joined[n-1].offset == l.offset {
				joined[n-1].end = l.end
				continue
			}
			joined = append(joined, l)
		}
		lines = joined
	}
	for left > 0 {
		at := 0
		for i, l := range lines {
			if l.offset < lines[at].offset {
				at = i
			}
		}
		l, chosen := lines[at], -1
		for i, b := range blocks {
			if placed[i] || b.Lower < l.begin || b.Upper > l.end {
				continue
			}
			if chosen < 0 || preference(blocks)(int32(i), int32(chosen)) < 0 {
				chosen = i
			}
		}
		if chosen < 0 {
			lift := int64(math.MaxInt64)
			if at > 0 {
				lift = lines[at-1].offset
			}
			if at+1 < len(lines) {
				lift = min(lift, lines[at+1].offset)
			}
			lines[at].offset = lift
			join()
			continue
		}
		b := blocks[chosen]
		placed[chosen], offsets[chosen], left = true, l.offset, left-1
		var parts []stretch
		for _, p := range []stretch{{l.begin, b.Lower, l.offset}, {b.Lower, b.Upper, l.offset + b.Size}, {b.Upper, l.end, l.offset}} {
			if p.begin < p.end {
				parts = append(parts, p)
			}
		}
		lines = slices.Replace(lines, at, at+1, parts...)
		join()
	}
	return offsets
}

// TestBestFitIsThePublishedOne: the fast one places every block where the
// quadratic one does.
func TestBestFitIsThePublishedOne(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		blocks := randomBlocks(r, 1+r.IntN(60))
		want, got := publishedBestFit(blocks), BestFit(context.Background(), blocks)
		if !slices.Equal(want, got) {
			t.Fatalf("offsets %v, published %v, of %v", got, want, blocks)
		}
	}
}

// TestEveryPlanIsSound: no solver's plan has overlaps, or is below the bound.
func TestEveryPlanIsSound(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		blocks := randomBlocks(r, 1+r.IntN(80))
		for i := range blocks {
			blocks[i].Lower, blocks[i].Upper = blocks[i].Lower*int64(1+i%9), blocks[i].Upper*int64(1+i%9)
		}
		p := newPart(Problem{Blocks: blocks}, positions(blocks))
		for _, h := range heuristics() {
			offsets := h.run(context.Background(), p, contentions(p.blocks))
			if err := Check(p.blocks, nil, offsets); err != nil {
				t.Fatalf("%s: %v", h.name, err)
			}
			if Peak(p.blocks, offsets) < LowerBound(blocks) {
				t.Fatalf("%s is below the lower bound", h.name)
			}
		}
	}
}

func positions(blocks []Block) []int32 {
	all := make([]int32, len(blocks))
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// TestCheckFindsEveryOverlap: what a comparison of all pairs finds, the sweep
// finds too, and nothing else.
func TestCheckFindsEveryOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	bad := 0
	for range 5000 {
		blocks := randomBlocks(r, 2+r.IntN(6))
		offsets := make([]int64, len(blocks))
		for i := range offsets {
			offsets[i] = r.Int64N(40)
		}
		overlaps := false
		for i, a := range blocks {
			for j, b := range blocks[:i] {
				overlaps = overlaps || a.Lower < b.Upper && b.Lower < a.Upper &&
					offsets[i] < offsets[j]+b.Size && offsets[j] < offsets[i]+a.Size
			}
		}
		if err := Check(blocks, nil, offsets); errors.Is(err, ErrOverlap) != overlaps {
			t.Fatalf("overlaps: %v, but %v, of %v at %v", overlaps, err, blocks, offsets)
		}
		if overlaps {
			bad++
		}
	}
	if bad < 500 || bad > 4500 {
		t.Fatalf("%d of 5000 plans were bad: the test tells nothing", bad)
	}
}

// cutRectangle cuts capacity × time into blocks that fill it without a gap, so a
// plan at exactly that capacity exists.
func cutRectangle(r *rand.Rand, n int, capacity, ticks int64) (blocks []Block, offsets []int64) {
	type piece struct {
		Block
		at int64
	}
	pieces := []piece{{Block{0, ticks, capacity}, 0}}
	for len(pieces) < n {
		i := r.IntN(len(pieces))
		p := pieces[i]
		if r.IntN(2) == 0 && p.Lifetime() >= 2 {
			middle := p.Lower + 1 + r.Int64N(p.Lifetime()-1)
			pieces[i].Upper = middle
			pieces = append(pieces, piece{Block{middle, p.Upper, p.Size}, p.at})
		} else if p.Size >= 2 {
			size := 1 + r.Int64N(p.Size-1)
			pieces[i].Size = size
			pieces = append(pieces, piece{Block{p.Lower, p.Upper, p.Size - size}, p.at + size})
		}
	}
	r.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	for _, p := range pieces {
		blocks, offsets = append(blocks, p.Block), append(offsets, p.at)
	}
	return blocks, offsets
}

// TestCutRectanglesArePlanned: instances without slack, which plain heuristics
// miss by a third.
func TestCutRectanglesArePlanned(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, n := range []int{20, 40, 60} {
		blocks, offsets := cutRectangle(r, n, 1<<20, 1<<16)
		if err := Check(blocks, nil, offsets); err != nil || Peak(blocks, offsets) != 1<<20 {
			t.Fatalf("the generator's own plan: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		plan, err := Solve(ctx, Problem{Blocks: blocks, Capacity: 1 << 20})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if plan.Peak > 1<<20 {
			t.Errorf("%d pieces: peak %.3f of what is possible", n, float64(plan.Peak)/(1<<20))
		}
	}
}

// TestFixedOffsetsAreKept: fixed blocks taken from a known plan leave room for a
// plan within the same capacity, which is found, and they do not move.
func TestFixedOffsetsAreKept(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 200 {
		blocks, offsets := cutRectangle(r, 12, 1000, 100)
		fixed := Fixed{}
		for range 4 {
			i := r.IntN(len(blocks))
			fixed[i] = offsets[i]
		}
		plan, err := Solve(context.Background(), Problem{Blocks: blocks, Fixed: fixed, Capacity: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range fixed {
			if plan.Offsets[i] != at {
				t.Fatalf("block %d moved from %d to %d", i, at, plan.Offsets[i])
			}
		}
		if plan.Peak > 1000 {
			t.Errorf("peak %d of 1000 with %d blocks fixed", plan.Peak, len(fixed))
		}
	}
	overlapping := Problem{Blocks: []Block{{0, 2, 8}, {1, 3, 8}}, Fixed: Fixed{0: 0, 1: 4}}
	if _, err := Solve(context.Background(), overlapping); !errors.Is(err, ErrFixedOverlap) {
		t.Errorf("overlapping fixed blocks: %v", err)
	}
}

// TestSolveIsDeterministic: the same problem has the same plan, block by block,
// whatever the CPUs do.
func TestSolveIsDeterministic(t *testing.T) {
	blocks, _ := cutRectangle(rand.New(rand.NewPCG(13, 14)), 40, 1<<20, 1<<16)
	var first []int64
	for range 5 {
		plan, err := Solve(context.Background(), Problem{Blocks: blocks})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = plan.Offsets
		}
		if !slices.Equal(first, plan.Offsets) {
			t.Fatal("two runs have two plans")
		}
	}
}

// TestFirstFitByBirthIsFirstFit: the one that knows gaps places every block where
// the one does that looks at all neighbours; and fixed blocks stay below.
func TestFirstFitByBirthIsFirstFit(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	for round := range 500 {
		blocks := randomBlocks(r, 1+r.IntN(80))
		if round%2 == 0 {
			blocks, _ = cutRectangle(r, 80, 1<<20, 1<<16)
		}
		births := positions(blocks)
		slices.SortStableFunc(births, func(a, b int32) int { return int(blocks[a].Lower - blocks[b].Lower) })
		want, got := fitInOrder(context.Background(), blocks, nil, births), firstFitByBirth(blocks, nil)
		if !slices.Equal(want, got) {
			t.Fatalf("offsets %v, want %v, of %v", got, want, blocks)
		}
		fixed := Fixed{0: 30}
		if err := Check(blocks, fixed, firstFitByBirth(blocks, fixed)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAPlanIsThereBeforeAnyTimeIs: of 300,000 blocks that hang together, most of
// which live alone, a limit that is over at once leaves a plan near the bound, not
// the one without reuse, a thousand times as high.
func TestAPlanIsThereBeforeAnyTimeIs(t *testing.T) {
	blocks := []Block{{0, 1_000_000, 1000}}
	for i := range int64(300_000) {
		blocks = append(blocks, Block{3 * i, 3*i + 2 + i%9, 64 * (1 + i*7919%97)})
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	plan, err := Solve(stopped, Problem{Blocks: blocks})
	if err != nil || !plan.Interrupted || plan.Gap() > 1 {
		t.Errorf("%v, interrupted %v, gap %.1f by %s", err, plan.Interrupted, plan.Gap(), plan.Solver)
	}
}

// TestSolveGivesItsBestWhenStopped: before it begun, and while it searches.
func TestSolveGivesItsBestWhenStopped(t *testing.T) {
	blocks, _ := cutRectangle(rand.New(rand.NewPCG(15, 16)), 400, 1<<20, 1<<16)
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	plan, err := Solve(stopped, Problem{Blocks: blocks})
	if err != nil || !plan.Interrupted || plan.Solver != "first_fit_birth" || plan.Peak > 2<<20 {
		t.Errorf("stopped at once: %v, %+v", err, plan)
	}
	searching, cancel := context.WithCancel(context.Background())
	defer cancel()
	plan, err = Solve(searching, Problem{Blocks: blocks, Progress: func(a Attempt) {
		if a.Solver == "search" || a.Solver == "first_fit_lifetime" {
			cancel()
		}
	}})
	if err != nil || !plan.Interrupted || plan.Peak >= 2<<20 {
		t.Errorf("stopped while it searched: %v, peak %d", err, plan.Peak)
	}
}

// TestSolveRefusesWhatCannotBePlanned names the reason.
func TestSolveRefusesWhatCannotBePlanned(t *testing.T) {
	for _, c := range []struct {
		blocks []Block
		want   error
	}{
		{[]Block{{5, 3, 1}}, ErrInverted},
		{[]Block{{0, 1, -1}}, ErrNegative},
		{[]Block{{0, 1, math.MaxInt64}}, ErrTooLarge},
		{[]Block{{0, 1, MaxTotal}, {0, 1, 1}}, ErrTooLarge},
	} {
		if _, err := Solve(context.Background(), Problem{Blocks: c.blocks}); !errors.Is(err, c.want) {
			t.Errorf("%v: %v, want %v", c.blocks, err, c.want)
		}
	}
	plan, err := Solve(context.Background(), Problem{Blocks: []Block{{3, 3, 7}}})
	if err != nil || plan.Peak != 0 || plan.LowerBound != 0 {
		t.Errorf("a block that never lives: %v, %+v", err, plan)
	}
	if _, err := Solve(context.Background(), Problem{}); err != nil {
		t.Errorf("no blocks: %v", err)
	}
}
