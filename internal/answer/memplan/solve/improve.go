package solve

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// What the search is tried on: above it a node costs too much for a search to
// get anywhere, and the pairs take too much memory.
const (
	searchBlocks = 20_000
	searchPairs  = 4_000_000
	allPairs     = 100_000_000 // in all orders together: each keeps its own
)

// A round gives each search so many nodes, the next one twice as many. Beside them
// fresh orders are tried: as many nodes in all for each power of two, so that most are
// tried shortly and a few long (Luby's sequence, for all rounds together).
const (
	firstBudget = 4_000
	moreBudget  = 2
	mostBudget  = 16_000_000
	freshOrders = 2    // of the round's budget, at each power of two
	pairsANode  = 10   // pairs of blocks in whose time an order is made: a node takes that, too
	fineness    = 2000 // of the targets: a round ends within a 2000th of the best peak
	// The targets between the least one and the best plan's peak get that part of the
	// budget each: they are worth little where a capacity is asked for.
	otherTargets       = 4
	otherTargetsBeside = 16
	// It is the other way round while the best plan is more than a 50th above the least
	// target: first a plan that is near, for which few nodes do, then one that is there.
	far        = 50
	leastShare = 4
	coarseness = 100 // a round ends within a 100th then
)

// search lowers the highest part, whichever that is after each round, until it
// reaches the goal, or ctx ends.
func (s *solver) search(ctx context.Context) {
	begun, lowered := time.Now(), map[*part]*lowering{}
	a := Attempt{Solver: "search", Outcome: finished}
	for ctx.Err() == nil && s.peak() > s.goal() {
		var highest *part
		for _, p := range s.parts {
			if highest == nil || p.peak > highest.peak {
				highest = p
			}
		}
		l := lowered[highest]
		if l == nil {
			pairs, reason := tooLarge(highest.blocks)
			if reason != "" {
				a.Outcome = "not run: " + reason
				break
			}
			l = &lowering{restarts: s.newRestarts(highest, pairs), excluded: s.goal()}
			lowered[highest] = l
		}
		if l.done {
			break
		}
		s.lower(ctx, l)
	}
	if len(lowered) == 0 && a.Outcome == finished {
		return // the bound was reached before
	}
	if ctx.Err() != nil {
		a.Outcome = "interrupted"
	}
	a.Peak, a.Took = s.peak(), time.Since(begun)
	s.tell(a)
}

// tooLarge counts the pairs of blocks that live at the same time.
func tooLarge(blocks []Block) (pairs int, reason string) {
	if len(blocks) > searchBlocks {
		return 0, "more than 20,000 blocks that hang together"
	}
	living := newLifeTree(blocks)
	for i, b := range blocks {
		living.during(b, func(int32) { pairs++ })
		if pairs > searchPairs {
			return pairs, "more than 4 million pairs of blocks that live at the same time"
		}
		living.insert(int32(i))
	}
	return pairs, ""
}

// lowering is how far the search for better plans of a part has come.
type lowering struct {
	*restarts
	round    int
	excluded int64 // the least target that makes sense
	done     bool  // there is no better plan
}

// lower is a round of the search for better plans of a part. Every round tries
// capacities from the least one that is not excluded up towards the best plan's peak,
// with all orders, and gives each search so many nodes; the next round gives it more.
// So what is found does not depend on the clock, but for where it ends.
func (s *solver) lower(ctx context.Context, l *lowering) {
	p, target := l.part, l.excluded
	atLeast, other, within := int64(1), int64(otherTargets), int64(fineness)
	switch {
	case p.peak-l.excluded > l.excluded/far:
		atLeast, other, within = leastShare, 1, coarseness
	case s.Capacity > 0:
		other = otherTargetsBeside
	}
	for p.peak > l.excluded {
		if ctx.Err() != nil {
			return
		}
		share := atLeast
		if target > l.excluded {
			share = other
		}
		searches := l.of(l.round, share)
		switch s.tryAll(ctx, p, searches, target) {
		case found:
			if target == l.excluded { // whatever is below it was tried in this round
				l.done = true
				return
			}
		case exhausted:
			l.excluded = target + 1
			if s.Capacity == 0 || target >= s.Capacity {
				s.proved = max(s.proved, l.excluded)
			}
			target = l.excluded
			continue
		}
		if p.peak-target <= p.peak/within {
			break
		}
		target += (p.peak - target + 1) / 2
	}
	l.round++
	l.done = p.peak <= l.excluded
}

// restarts are the searches of a part.
type restarts struct {
	part   *part
	mixer  mixer
	shared *problem   // of searches by niches, whatever they prefer; nil where they cannot
	kept   []searcher // those that every round runs
	least  int64      // nodes for which an order is worth making
}

func (s *solver) newRestarts(p *part, pairs int) *restarts {
	contention := contentions(p.blocks)
	all := &restarts{part: p, mixer: newMixer(p.blocks, contention), least: max(firstBudget, int64(pairs/pairsANode))}
	most := max(1, allPairs/(pairs+1))
	for _, priority := range priorities[:min(len(priorities), most)] {
		all.kept = append(all.kept, newSearch(newProblem(p.blocks, p.fixed, priority.sorted(p.blocks, contention))))
	}
	if len(p.fixed) > 0 {
		return all
	}
	all.shared = newProblem(p.blocks, nil, priorities[0].sorted(p.blocks, contention))
	for _, rules := range nichePreferences {
		all.kept = append(all.kept, newNiches(all.shared, rules))
	}
	return all
}

// attempt is a search with the nodes that it has.
type attempt struct {
	searcher
	budget int64
}

// of are the searches of a round, each with a part of its budget.
func (r *restarts) of(round int, share int64) []attempt {
	budget := int64(firstBudget)
	for range round {
		budget = min(budget*moreBudget, mostBudget)
	}
	budget = max(budget/share, firstBudget)
	var all []attempt
	for _, s := range r.kept {
		all = append(all, attempt{s, budget})
	}
	seed := uint64(round)<<32 | uint64(share)<<24
	for nodes, orders := budget, freshOrders; nodes >= r.least && round > 0; nodes, orders = nodes/2, orders*2 {
		for range orders {
			seed++
			if seed%2 == 0 && r.shared != nil {
				all = append(all, attempt{&freshNiches{r, seed, nil}, nodes})
				continue
			}
			all = append(all, attempt{&fresh{r, seed, nil}, nodes})
		}
	}
	return all
}

// fresh is a search by an order of its own, which is made when it is run.
type fresh struct {
	*restarts
	seed uint64
	*search
}

func (f *fresh) run(ctx context.Context, capacity, budget int64) outcome {
	f.search = newSearch(newProblem(f.part.blocks, f.part.fixed, f.mixer.order(f.seed)))
	o := f.search.run(ctx, capacity, budget)
	if o != found {
		f.search = nil // it takes memory
	}
	return o
}

// freshNiches is a search by niches with preferences of its own.
type freshNiches struct {
	*restarts
	seed uint64
	*niches
}

func (f *freshNiches) run(ctx context.Context, capacity, budget int64) outcome {
	f.niches = newNiches(f.shared, mixedPreferences(f.seed))
	o := f.niches.run(ctx, capacity, budget)
	if o != found {
		f.niches = nil // it takes memory
	}
	return o
}

// searcher looks for a plan within a capacity.
type searcher interface {
	run(ctx context.Context, capacity, budget int64) outcome
	plan() (index []int32, offsets []int64)
}

// tryAll runs the searches within one capacity, on all CPUs. The first in their
// order that finds a plan counts, so that the result is the same each time.
func (s *solver) tryAll(ctx context.Context, p *part, searches []attempt, capacity int64) outcome {
	var (
		mutex    sync.Mutex
		wg       sync.WaitGroup
		next     int
		winner   = len(searches)
		outcomes = make([]outcome, len(searches))
		cancels  = make([]context.CancelFunc, len(searches))
		proof    bool
	)
	// take hands out the next search that can still win.
	take := func() (int, context.Context) {
		mutex.Lock()
		defer mutex.Unlock()
		if next >= winner || proof {
			return -1, nil
		}
		i := next
		next++
		sub, cancel := context.WithCancel(ctx)
		cancels[i] = cancel
		return i, sub
	}
	done := func(i int, o outcome) {
		mutex.Lock()
		defer mutex.Unlock()
		outcomes[i] = o
		switch o {
		case found:
			winner = min(winner, i)
			for later := winner + 1; later < len(searches); later++ {
				if cancels[later] != nil {
					cancels[later]()
				}
			}
		case exhausted:
			proof = true // for all of them
			for _, cancel := range cancels {
				if cancel != nil {
					cancel()
				}
			}
		}
	}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i, sub := take(); i >= 0; i, sub = take() {
				done(i, searches[i].run(sub, capacity, searches[i].budget))
				cancels[i]()
			}
		})
	}
	wg.Wait()
	switch {
	case winner < len(searches):
		index, at := searches[winner].plan()
		offsets := make([]int64, len(p.blocks))
		for i, b := range index {
			offsets[b] = at[i]
		}
		if p.improve(offsets, "search") && s.Progress != nil {
			s.Progress(Attempt{Solver: "search", Peak: s.peak()})
		}
		return found
	case proof:
		return exhausted
	}
	return gaveUp
}
