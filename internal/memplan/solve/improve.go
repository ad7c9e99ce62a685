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

const (
	firstBudget = 4_000 // nodes of one search in the first round
	moreBudget  = 4     // times as many in each round after
	mostBudget  = 4_000_000
	mixedOrders = 4    // more orders in each round after the first
	fineness    = 2000 // of the targets: a round ends within a 2000th of the best peak
)

// search lowers the highest part until it reaches the goal, or ctx ends.
func (s *solver) search(ctx context.Context) {
	begun, tried := time.Now(), map[*part]bool{}
	a := Attempt{Solver: "search", Outcome: finished}
	for ctx.Err() == nil && s.peak() > s.goal() {
		var highest *part
		for _, p := range s.parts {
			if highest == nil || p.peak > highest.peak {
				highest = p
			}
		}
		if tried[highest] {
			break
		}
		tried[highest] = true
		pairs, reason := tooLarge(highest.blocks)
		if reason != "" {
			a.Outcome = "not run: " + reason
			break
		}
		s.lower(ctx, highest, allPairs/(pairs+1))
	}
	if len(tried) == 0 {
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

// lower searches for better plans of a part. Every round tries capacities from
// the least one that is not excluded up towards the best plan's peak, with all
// orders, and gives each search so many nodes; the next round gives it more. So
// what is found does not depend on the clock, but for where it ends.
func (s *solver) lower(ctx context.Context, p *part, mostOrders int) {
	excluded := s.goal() // the least target that makes sense
	orders := s.orders(p)
	for round, budget := 0, int64(firstBudget); ; round++ {
		target := excluded
		for p.peak > excluded {
			if ctx.Err() != nil {
				return
			}
			switch s.tryAll(ctx, p, orders, target, budget) {
			case found:
				// Whatever is below it was tried in this round.
				if target == excluded {
					return
				}
			case exhausted:
				excluded = target + 1
				if s.Capacity == 0 || target >= s.Capacity {
					s.proved = max(s.proved, excluded)
				}
				target = excluded
				continue
			}
			if p.peak-target <= p.peak/fineness {
				break
			}
			target += (p.peak - target + 1) / 2
		}
		if p.peak <= excluded {
			return
		}
		budget = min(budget*moreBudget, mostBudget)
		for n := range mixedOrders {
			if len(orders) >= mostOrders {
				break
			}
			seed := uint64(len(orders))
			base := orders[int(seed)%len(priorities)]
			order := learnt(base)
			if n%2 == 1 {
				order = shuffled(base.index, seed)
			}
			orders = append(orders, newSearch(newProblem(p.blocks, p.fixed, order)))
		}
	}
}

// orders are the searches of a part by each priority, those that are equal once.
func (s *solver) orders(p *part) []*search {
	contention := contentions(p.blocks)
	var searches []*search
	for _, priority := range priorities {
		searches = append(searches, newSearch(newProblem(p.blocks, p.fixed, priority.sorted(p.blocks, contention))))
	}
	return searches
}

// tryAll runs the searches within one capacity, on all CPUs. The first in their
// order that finds a plan counts, so that the result is the same each time.
func (s *solver) tryAll(ctx context.Context, p *part, searches []*search, capacity, budget int64) outcome {
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
				done(i, searches[i].run(sub, capacity, budget))
				cancels[i]()
			}
		})
	}
	wg.Wait()
	switch {
	case winner < len(searches):
		won := searches[winner]
		offsets := make([]int64, len(p.blocks))
		for i, b := range won.index {
			offsets[b] = won.offset[i]
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
