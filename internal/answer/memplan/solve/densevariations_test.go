package solve_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/instance"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
)

// variation is a problem of which a plan within Capacity is there.
type variation struct {
	name    string
	blocks  []solve.Block
	offsets []int64
}

// TestTableOfVariations prints how the solver does on variations of MiniMalloc's instances, and on
// rectangles cut at few instants, with so much time of all CPUs together for each, which a busy machine
// does not change: DENSE_CPU=40s go test ./internal/answer/memplan/solve -run Variations -v -timeout 0
// DENSE_ONLY=split,cut-300 takes those that begin with one of these.
func TestTableOfVariations(t *testing.T) {
	limit, err := time.ParseDuration(os.Getenv("DENSE_CPU"))
	if err != nil {
		t.Skip("a table for people: DENSE_CPU=40s prints it")
	}
	within, all := 0, variations(t)
	if only := os.Getenv("DENSE_ONLY"); only != "" {
		all = slices.DeleteFunc(all, func(v variation) bool {
			return !slices.ContainsFunc(strings.Split(only, ","), func(name string) bool { return strings.HasPrefix(v.name, name) })
		})
	}
	for _, v := range all {
		ctx, cancel := withCPU(t.Context(), limit)
		before := cpu()
		plan, err := solve.Solve(ctx, solve.Problem{Blocks: v.blocks, Capacity: Capacity})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if plan.Peak <= Capacity {
			within++
		}
		t.Logf("%-10s %3d blocks, bound %.4f, peak %.4f of the capacity in %5.2f s of CPU, %s", v.name, len(v.blocks),
			float64(plan.LowerBound)/Capacity, float64(plan.Peak)/Capacity, (cpu() - before).Seconds(), plan.Solver)
	}
	t.Logf("%d of %d within the capacity", within, len(all))
}

// withCPU ends once this process has used so much more time of the CPUs.
func withCPU(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	until := cpu() + limit
	go func() {
		for ctx.Err() == nil && cpu() < until {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	return ctx, cancel
}

// cpu is what all threads of this process have used.
func cpu() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestVariationsHaveAPlanOfTheirCapacity: the one that they were made with.
func TestVariationsHaveAPlanOfTheirCapacity(t *testing.T) {
	for _, v := range variations(t) {
		if err := solve.Check(v.blocks, nil, v.offsets); err != nil || solve.Peak(v.blocks, v.offsets) > Capacity {
			t.Errorf("%s: %v, peak %d", v.name, err, solve.Peak(v.blocks, v.offsets))
		}
	}
}

// TestStretchedInstancesAreSolved: what has the shape of MiniMalloc's A, C and G with other sizes. The
// search ends with a plan, not with a time; those that take it seconds are left to the table.
func TestStretchedInstancesAreSolved(t *testing.T) {
	for _, v := range variations(t) {
		if v.name[:4] != "warp" || v.name[len(v.name)-1] == '2' {
			continue
		}
		plan, err := solve.Solve(t.Context(), solve.Problem{Blocks: v.blocks, Capacity: Capacity})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Peak > Capacity {
			t.Errorf("%s: peak %.4f of the capacity", v.name, float64(plan.Peak)/Capacity)
		}
	}
}

// variations of MiniMalloc's A, C and G: stretched, so that all sizes are others while the plan keeps its
// form; a tenth to a third of the blocks replaced by ones that fill what they leave; a share of the blocks
// cut in two. And rectangles that are cut.
func variations(t *testing.T) (all []variation) {
	t.Helper()
	for _, name := range []string{"A", "C", "G"} {
		file, err := os.Open("../../../../../shared/data/plans/" + name + ".1048576.csv")
		if err != nil {
			t.Skipf("the public instances are not there: %v", err)
		}
		defer file.Close()
		in, err := instance.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := solve.Solve(t.Context(), solve.Problem{Blocks: in.Blocks, Capacity: Capacity})
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(3) {
			r := rand.New(rand.NewPCG(seed, 5))
			for _, made := range []struct {
				name string
				make func() ([]solve.Block, []int64)
			}{
				{"warp", func() ([]solve.Block, []int64) { return warp(in.Blocks, plan.Offsets, r) }},
				{"refill", func() ([]solve.Block, []int64) {
					return refill(in.Blocks, plan.Offsets, 0.1+0.1*float64(seed), r)
				}},
				{"split", func() ([]solve.Block, []int64) { return split(in.Blocks, plan.Offsets, 0.1+0.15*float64(seed), r) }},
			} {
				blocks, offsets := mixed(made.make())(r)
				all = append(all, variation{fmt.Sprintf("%s-%s-%d", made.name, name, seed), blocks, offsets})
			}
		}
	}
	for i, n := range []int{150, 200, 300, 400} {
		for _, even := range []bool{true, false} {
			s := Shape{Blocks: n, Grain: 1024, Instants: []int64{64, 128, 128, 256}[i], Even: even, Gaps: 0.08}
			blocks, offsets := s.Make(uint64(i))
			all = append(all, variation{fmt.Sprintf("%s-%d", map[bool]string{true: "cut", false: "any"}[even], n), blocks, offsets})
		}
	}
	return all
}

// mixed puts blocks into another order.
func mixed(blocks []solve.Block, offsets []int64) func(*rand.Rand) ([]solve.Block, []int64) {
	return func(r *rand.Rand) (bs []solve.Block, at []int64) {
		for _, i := range r.Perm(len(blocks)) {
			bs, at = append(bs, blocks[i]), append(at, offsets[i])
		}
		return bs, at
	}
}

// split cuts a share of the blocks in two, in time or in size.
func split(blocks []solve.Block, offsets []int64, share float64, r *rand.Rand) (bs []solve.Block, at []int64) {
	for i, b := range blocks {
		o := offsets[i]
		if r.Float64() < share {
			rest := b
			switch {
			case r.IntN(2) == 0 && b.Size > 1024:
				b.Size = 1024 * (1 + r.Int64N(b.Size/1024-1))
				rest.Size -= b.Size
				bs, at = append(bs, rest), append(at, o+b.Size)
			case b.Lifetime() > 1024:
				b.Upper = b.Lower + 1024*(1+r.Int64N(b.Lifetime()/1024-1))
				rest.Lower = b.Upper
				bs, at = append(bs, rest), append(at, o)
			}
		}
		bs, at = append(bs, b), append(at, o)
	}
	return bs, at
}

// warp stretches and shrinks what lies between two heights at which a block begins or ends.
func warp(blocks []solve.Block, offsets []int64, r *rand.Rand) ([]solve.Block, []int64) {
	set := map[int64]bool{0: true, Capacity: true}
	for i, b := range blocks {
		set[offsets[i]] = true
		set[offsets[i]+b.Size] = true
	}
	var ls []int64
	for l := range set {
		ls = append(ls, l)
	}
	slices.Sort(ls)
	w := make([]float64, len(ls))
	var total float64
	for i := 1; i < len(ls); i++ {
		w[i] = float64(ls[i]-ls[i-1]) * (0.5 + r.Float64())
		total += w[i]
	}
	free := Capacity/1024 - int64(len(ls)-1)
	to := map[int64]int64{0: 0}
	sum, at := 0.0, int64(0)
	for i := 1; i < len(ls); i++ {
		sum += w[i]
		at = int64(i)*1024 + int64(sum/total*float64(free))*1024
		to[ls[i]] = at
	}
	to[Capacity] = Capacity
	nb, no := make([]solve.Block, len(blocks)), make([]int64, len(blocks))
	for i, b := range blocks {
		nb[i], no[i] = b, to[offsets[i]]
		nb[i].Size = to[offsets[i]+b.Size] - to[offsets[i]]
	}
	return nb, no
}

// refill takes a share of the blocks out and fills what they leave with as many others.
func refill(blocks []solve.Block, offsets []int64, share float64, r *rand.Rand) ([]solve.Block, []int64) {
	var bs []solve.Block
	var at []int64
	var end int64
	removed := 0
	for i, b := range blocks {
		end = max(end, b.Upper)
		if r.Float64() < share {
			removed++
			continue
		}
		bs, at = append(bs, b), append(at, offsets[i])
	}
	set := map[int64]bool{}
	for _, b := range blocks {
		set[b.Lower] = true
		set[b.Upper] = true
	}
	var ts []int64
	for t := range set {
		ts = append(ts, t)
	}
	slices.Sort(ts)
	for tries := 0; tries < 20000 && removed > 0; tries++ {
		k := r.IntN(len(ts) - 1)
		o := 1024 * r.Int64N(Capacity/1024)
		hit := func(lo, hi, o, s int64) bool {
			if o < 0 || o+s > Capacity {
				return true
			}
			for j, x := range bs {
				if x.Lower < hi && lo < x.Upper && o < at[j]+x.Size && at[j] < o+s {
					return true
				}
			}
			return false
		}
		a, z, s := k, k+1, int64(1024)
		if hit(ts[a], ts[z], o, s) {
			continue
		}
		most := 1 + r.IntN(len(ts)) // its lifetime in instants, at most
		for most > 1 && z < len(ts)-1 && !hit(ts[a], ts[z+1], o, s) && z-a < most {
			z++
		}
		for a > 0 && !hit(ts[a-1], ts[z], o, s) && z-a < most {
			a--
		}
		for step := int64(1 << 19); step >= 1024; step /= 2 {
			for !hit(ts[a], ts[z], o, s+step) {
				s += step
			}
			for !hit(ts[a], ts[z], o-step, s+step) {
				s += step
				o -= step
			}
		}
		removed--
		bs, at = append(bs, solve.Block{Lower: ts[a], Upper: ts[z], Size: s}), append(at, o)
	}
	return bs, at
}
