package hot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/pool"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
)

// Replanned is what became of a plan over the steps of a recording, as the paper
// lets it run: the first step is the profile; request k of a step gets base + x_k;
// a request that the plan does not have, that is larger, or whose place is still
// in use, is served by the pool; the profile keeps the maximum, and the plan is
// made again before the next step.
type Replanned struct {
	Steps           int           `json:"steps"`
	Replans         int           `json:"replans"`
	ReplansLate     int           `json:"replans_last_half"` // in the second half of the steps
	Deviations      int64         `json:"deviations"`        // requests served elsewhere
	DeviatingBytes  int64         `json:"deviating_bytes"`
	Served          int64         `json:"served"` // from the plan
	SolveTime       time.Duration `json:"solve_ns"`
	Region          int64         `json:"region_bytes"` // of the last plan
	ElsewherePeak   int64         `json:"elsewhere_peak_bytes"`
	WorstSolve      time.Duration `json:"worst_solve_ns"`
	RequestsPerStep int           `json:"requests_per_step"` // most in the profile
}

// profile is what is known of request k: the largest size, and the latest death
// as the number of requests made by then.
type profile struct {
	bytes, death int64
}

// Replan follows a plan over the steps. Blocks that outlive their step, as weights
// and gradients do, go to the pool here: the paper's plan is for what propagation
// allocates and frees.
func Replan(ctx context.Context, l *blocks.Lives, s Steps, alignment int64) (Replanned, error) {
	var (
		result  Replanned
		known   []profile
		offsets []int64
	)
	steps := split(l, s)
	for k := range steps {
		if err := ctx.Err(); err != nil {
			return result, err
		}
		result.Steps++
		births, deaths := requestsOf(l, &steps[k])
		changed := false
		inUse := map[int]int64{} // request served from the plan: its end
		elsewhere, elsewhereBytes := map[int]int64{}, int64(0)
		for n, b := range births {
			for r, death := range inUse {
				if death <= int64(n) {
					delete(inUse, r)
				}
			}
			for r, death := range elsewhere {
				if death <= int64(n) {
					elsewhereBytes -= births[r].Bytes
					delete(elsewhere, r)
				}
			}
			fits := n < len(offsets) && b.Bytes <= known[n].bytes
			for r := range inUse {
				fits = fits && (offsets[r]+known[r].bytes <= offsets[n] || offsets[n]+known[n].bytes <= offsets[r])
			}
			if fits {
				inUse[n] = deaths[n]
				result.Served++
			} else if k > 0 { // the first step is the profile, not a deviation
				result.Deviations++
				result.DeviatingBytes += b.Bytes
			}
			if !fits && k > 0 {
				elsewhere[n] = deaths[n]
				elsewhereBytes += b.Bytes
				result.ElsewherePeak = max(result.ElsewherePeak, elsewhereBytes)
			}
			if n == len(known) {
				known, changed = append(known, profile{}), true
			}
			if b.Bytes > known[n].bytes || deaths[n] > known[n].death {
				known[n] = profile{max(known[n].bytes, b.Bytes), max(known[n].death, deaths[n])}
				changed = true
			}
		}
		if !changed {
			continue
		}
		begun := time.Now()
		plan, err := quickPlan(ctx, known, alignment)
		if err != nil {
			return result, fmt.Errorf("planning after step %d: %w", k, err)
		}
		took := time.Since(begun)
		result.SolveTime += took
		result.WorstSolve = max(result.WorstSolve, took)
		offsets, result.Region = plan, 0
		for n, p := range known {
			result.Region = max(result.Region, offsets[n]+align(p.bytes, alignment))
		}
		if k > 0 {
			result.Replans++
			if k >= len(steps)/2 {
				result.ReplansLate++
			}
		}
	}
	result.RequestsPerStep = len(known)
	return result, nil
}

// requestsOf are a step's requests that it frees again, in order, and how many of
// them had been made when each was freed.
func requestsOf(l *blocks.Lives, s *step) (births []*blocks.Block, deaths []int64) {
	for _, i := range s.born {
		if b := &l.Blocks[i]; b.Died <= s.end {
			births = append(births, b)
		}
	}
	for n, b := range births {
		made, _ := slices.BinarySearchFunc(births, b.Died, func(o *blocks.Block, t int64) int { return cmp.Compare(o.Born, t) })
		deaths = append(deaths, int64(max(made, n+1)))
	}
	return births, deaths
}

// quickPlan is best fit, as published: a plan between two steps must be quick.
func quickPlan(ctx context.Context, known []profile, alignment int64) ([]int64, error) {
	all := make([]solve.Block, len(known))
	for n, p := range known {
		all[n] = solve.Block{Lower: int64(n), Upper: p.death, Size: p.bytes}
	}
	all, err := solve.Align(all, alignment)
	if err != nil {
		return nil, err
	}
	offsets := solve.BestFit(ctx, all)
	if offsets == nil {
		return nil, ctx.Err()
	}
	return offsets, solve.Check(all, nil, offsets)
}

func align(bytes, alignment int64) int64 {
	return (bytes + alignment - 1) / alignment * alignment
}

// PoolRequests are the requests of some blocks in the order of their ticks, for
// the pool's model.
func PoolRequests(l *blocks.Lives, include func(block int) bool) []pool.Request {
	// Ticks are distinct but for 0, when all blocks from before are born; where
	// the free of an address was lost, one block dies as the next one is born.
	born, died := make([]int32, l.Ticks+1), make([]int32, l.Ticks+1) // position + 1
	var requests []pool.Request
	for i := range l.Blocks {
		if !include(i) {
			continue
		}
		if requests == nil { // an allocation and a free of each, at most
			requests = make([]pool.Request, 0, 2*(len(l.Blocks)-i))
		}
		b := &l.Blocks[i]
		if b.Born == 0 {
			requests = append(requests, pool.Request{Block: i, Bytes: b.Bytes})
		} else {
			born[b.Born] = int32(i + 1)
		}
		if b.Died != blocks.Alive {
			died[b.Died] = int32(i + 1)
		}
	}
	for tick := range born {
		if i := int(died[tick]) - 1; i >= 0 {
			requests = append(requests, pool.Request{Block: i, Free: true})
		}
		if i := int(born[tick]) - 1; i >= 0 {
			requests = append(requests, pool.Request{Block: i, Bytes: l.Blocks[i].Bytes})
		}
	}
	return requests
}
