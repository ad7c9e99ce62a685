package solve

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Problem is what Solve is asked.
type Problem struct {
	Blocks []Block
	Fixed  Fixed // offsets that a plan must keep
	// Capacity ends the search as soon as a plan fits into it. 0 is none: the
	// search goes on to the lower bound, or to the deadline.
	Capacity int64
	// Progress, if set, is called with each better plan. Calls do not overlap.
	Progress func(Attempt)
}

// Attempt is what one solver reached.
type Attempt struct {
	Solver  string        // first_fit_birth, best_fit, first_fit_…, lowest_first_…, search
	Peak    int64         // bytes; 0 where Outcome is not finished
	Took    time.Duration // of this solver alone
	Outcome string        // finished, interrupted or "not run: why"
}

// Outcome of an attempt that went to its end.
const finished = "finished"

// Plan is what Solve found.
type Plan struct {
	Offsets    []int64 // by block
	Peak       int64
	LowerBound int64
	// Solver is who made it: the name of an attempt, or "combined" where blocks
	// that never live together were planned best by different ones.
	Solver   string
	Attempts []Attempt
	// Optimal: the peak is the lower bound, or the search has shown that there is
	// no lower one.
	Optimal bool
	// Interrupted: ctx ended before the solvers did.
	Interrupted bool
}

// Gap is the peak over the lower bound, minus 1.
func (p *Plan) Gap() float64 {
	if p.LowerBound == 0 {
		return 0
	}
	return float64(p.Peak)/float64(p.LowerBound) - 1
}

// Solve runs all solvers until ctx ends, or nothing can be won any more, and
// returns the best plan, which it has checked. The same problem has the same plan
// each time, unless the time ran out. However early ctx ends, the plan is as good
// as first fit's in the order of births.
func Solve(ctx context.Context, problem Problem) (*Plan, error) {
	if err := validate(problem.Blocks, problem.Fixed); err != nil {
		return nil, fmt.Errorf("planning: %w", err)
	}
	if err := Check(fixedOnly(problem)); err != nil {
		return nil, fmt.Errorf("planning: %w: %w", ErrFixedOverlap, err)
	}
	s := newSolver(problem)
	s.firstPlan()
	s.heuristics(ctx)
	s.search(ctx)
	plan := s.plan()
	plan.Interrupted = ctx.Err() != nil && !plan.Optimal
	if err := Check(problem.Blocks, problem.Fixed, plan.Offsets); err != nil {
		return nil, fmt.Errorf("planning with %s: %w", plan.Solver, err)
	}
	return plan, nil
}

// fixedOnly are the fixed blocks as a plan of their own, for Check.
func fixedOnly(problem Problem) (blocks []Block, fixed Fixed, offsets []int64) {
	for i, at := range problem.Fixed {
		blocks, offsets = append(blocks, problem.Blocks[i]), append(offsets, at)
	}
	return blocks, nil, offsets
}

// solver is the state of one Solve.
type solver struct {
	Problem
	parts    []*part
	bound    int64 // no plan's peak is lower
	proved   int64 // likewise, with what the search has shown
	attempts []Attempt
}

// part is a component, or several of the same shape: a repeated step has its
// plan made once.
type part struct {
	copies [][]int32 // positions of its blocks, for each of them
	blocks []Block   // of the first
	fixed  Fixed
	peak   int64
	best   []int64
	solver string
}

func newSolver(problem Problem) *solver {
	s := &solver{Problem: problem, bound: LowerBound(problem.Blocks)}
	for i, at := range problem.Fixed {
		if b := problem.Blocks[i]; b.Lower < b.Upper {
			s.bound = max(s.bound, at+b.Size)
		}
	}
	s.proved = s.bound
	shapes := map[string]*part{}
	for _, group := range components(problem.Blocks) {
		if len(problem.Fixed) == 0 {
			key := shape(problem.Blocks, group)
			if same := shapes[key]; same != nil {
				same.copies = append(same.copies, group)
				continue
			}
			p := newPart(problem, group)
			shapes[key] = p
			s.parts = append(s.parts, p)
			continue
		}
		s.parts = append(s.parts, newPart(problem, group))
	}
	return s
}

// shape is equal for groups that are the same but for the time at which they are.
func shape(blocks []Block, group []int32) string {
	key := make([]byte, 0, 12*len(group))
	origin := blocks[group[0]].Lower
	for _, i := range group {
		b := blocks[i]
		key = binary.AppendVarint(key, b.Lower-origin)
		key = binary.AppendVarint(key, b.Lifetime())
		key = binary.AppendVarint(key, b.Size)
	}
	return string(key)
}

func newPart(problem Problem, group []int32) *part {
	p := &part{copies: [][]int32{group}, blocks: make([]Block, len(group)), fixed: Fixed{}, solver: "no_reuse"}
	for at, i := range group {
		p.blocks[at] = problem.Blocks[i]
		if offset, is := problem.Fixed[int(i)]; is {
			p.fixed[at] = offset
		}
	}
	p.best = withoutReuse(p.blocks, p.fixed)
	p.peak = Peak(p.blocks, p.best)
	return p
}

// withoutReuse puts each block above all others: a plan that is always there.
func withoutReuse(blocks []Block, fixed Fixed) []int64 {
	offsets := make([]int64, len(blocks))
	var top int64
	for i, at := range fixed {
		offsets[i] = at
		top = max(top, at+blocks[i].Size)
	}
	for i, b := range blocks {
		if _, is := fixed[i]; !is {
			offsets[i] = top
			top += b.Size
		}
	}
	return offsets
}

// improve keeps the better of two plans of a part.
func (p *part) improve(offsets []int64, solver string) bool {
	peak := Peak(p.blocks, offsets)
	if peak >= p.peak {
		return false
	}
	p.best, p.peak, p.solver = offsets, peak, solver
	return true
}

// goal is the peak below which nothing is won.
func (s *solver) goal() int64 { return max(s.bound, s.Capacity) }

func (s *solver) peak() int64 {
	var peak int64
	for _, p := range s.parts {
		peak = max(peak, p.peak)
	}
	return peak
}

// firstPlan makes the plan that is there whatever the time limit is: in a time that
// hardly exceeds that of reading the blocks, also where others take minutes.
func (s *solver) firstPlan() {
	begun, plans := time.Now(), make([][]int64, len(s.parts))
	inParallel(len(s.parts), func(i int) { plans[i] = firstFitByBirth(s.parts[i].blocks, s.parts[i].fixed) })
	s.judge(context.Background(), "first_fit_birth", plans, time.Since(begun), false)
}

// heuristic is a solver of one pass.
type heuristic struct {
	name string
	run  func(ctx context.Context, p *part, contention []int64) []int64
}

// heuristics are all solvers of one pass, in the order in which they are tried:
// the published one, then those that do best on real traces.
func heuristics() []heuristic {
	all := []heuristic{{"best_fit", func(ctx context.Context, p *part, _ []int64) []int64 {
		if len(p.fixed) > 0 {
			return nil
		}
		return BestFit(ctx, p.blocks)
	}}}
	for _, priority := range priorities {
		all = append(all, heuristic{"lowest_first_" + priority.words(),
			func(ctx context.Context, p *part, contention []int64) []int64 {
				if len(p.fixed) > 0 {
					return nil
				}
				return lowestFirst(ctx, p.blocks, priority.sorted(p.blocks, contention))
			}})
	}
	for _, order := range []Order{BySize, ByArea, ByLifetime} {
		all = append(all, heuristic{order.String(), func(ctx context.Context, p *part, _ []int64) []int64 {
			return FirstFit(ctx, p.blocks, p.fixed, order)
		}})
	}
	return all
}

// manyBlocks is the size from which on no more heuristics are run once one has
// reached the lower bound; below it they cost nothing, and are a comparison.
const manyBlocks = 20_000

// heuristics runs every solver of one pass on every part, two or more at a time.
func (s *solver) heuristics(ctx context.Context) {
	contention := make([][]int64, len(s.parts))
	if ctx.Err() == nil {
		inParallel(len(s.parts), func(i int) { contention[i] = contentions(s.parts[i].blocks) })
	}
	all := heuristics()
	together := runtime.GOMAXPROCS(0)
	for begin := 0; begin < len(all); begin += together {
		batch := all[begin:min(begin+together, len(all))]
		plans, took := make([][][]int64, len(batch)), make([]atomic.Int64, len(batch))
		for h := range batch {
			plans[h] = make([][]int64, len(s.parts))
		}
		enough := len(s.Blocks) > manyBlocks && s.peak() <= s.goal()
		if ctx.Err() == nil && !enough {
			inParallel(len(batch)*len(s.parts), func(job int) {
				h, i := job%len(batch), job/len(batch)
				begun := time.Now()
				plans[h][i] = batch[h].run(ctx, s.parts[i], contention[i])
				took[h].Add(int64(time.Since(begun)))
			})
		}
		for h, heuristic := range batch {
			s.judge(ctx, heuristic.name, plans[h], time.Duration(took[h].Load()), enough)
		}
	}
}

// judge keeps what is better of a heuristic's plans, and tells of them.
func (s *solver) judge(ctx context.Context, name string, plans [][]int64, took time.Duration, enough bool) {
	a := Attempt{Solver: name, Outcome: finished, Took: took}
	for i, p := range s.parts {
		if plans[i] != nil {
			a.Peak = max(a.Peak, Peak(p.blocks, plans[i]))
			p.improve(plans[i], name)
			continue
		}
		switch {
		case enough:
			a.Outcome = "not run: the best plan is there"
		case ctx.Err() != nil && took == 0:
			a.Outcome = "not run: out of time"
		case ctx.Err() != nil:
			a.Outcome = "interrupted"
		default:
			a.Outcome = "not run: it keeps no fixed offsets"
		}
	}
	if a.Outcome != finished {
		a.Peak = 0
	}
	s.tell(a)
}

func (s *solver) tell(a Attempt) {
	s.attempts = append(s.attempts, a)
	if s.Progress != nil {
		s.Progress(a)
	}
}

// inParallel calls do with 0 to n-1, on all CPUs.
func inParallel(n int, do func(i int)) {
	var (
		wg   sync.WaitGroup
		next atomic.Int64
	)
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}

// plan puts the parts' plans together.
func (s *solver) plan() *Plan {
	plan := &Plan{Offsets: make([]int64, len(s.Blocks)), Peak: s.peak(), LowerBound: s.bound, Attempts: s.attempts}
	for i, at := range s.Fixed {
		plan.Offsets[i] = at
	}
	for _, p := range s.parts {
		for _, blocks := range p.copies {
			for at, i := range blocks {
				plan.Offsets[i] = p.best[at]
			}
		}
	}
	plan.Optimal = plan.Peak <= s.proved
	plan.Solver = s.author(plan.Peak)
	return plan
}

// author names the plan: the first solver that reached its peak alone.
func (s *solver) author(peak int64) string {
	for _, a := range s.attempts {
		if a.Outcome == finished && a.Peak == peak {
			return a.Solver
		}
	}
	var solvers []string
	for _, p := range s.parts {
		if !slices.Contains(solvers, p.solver) {
			solvers = append(solvers, p.solver)
		}
	}
	switch {
	case len(solvers) == 0:
		return "best_fit"
	case len(solvers) == 1:
		return solvers[0]
	}
	return "combined"
}
