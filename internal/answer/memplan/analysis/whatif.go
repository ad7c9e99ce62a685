package analysis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
)

// Several is one plan for several recordings, and what another batch would need.
type Several struct {
	Plans []*Plan `json:"plans"`
	// Region serves each of the recordings: its requests are the same in all of
	// them with the largest sizes (Method "merged"), or they differ, each has its
	// own plan and the region is the largest ("each its own").
	Region  int64     `json:"region_bytes"`
	Method  string    `json:"method"`
	Batches []float64 `json:"batches"`
	WhatIf  *WhatIf   `json:"what_if"`
}

// WhatIf is an estimate of the largest batch that fits.
type WhatIf struct {
	Capacity     int64  `json:"capacity_bytes"`
	LargestBatch int64  `json:"largest_batch"` // 0: not even one fits
	Bytes        int64  `json:"bytes"`         // needed for it
	Method       string `json:"method"`        // "regression per hot block" or "linear activations (estimate from one recording)"
}

// Errors of Compare.
var (
	ErrBatches    = errors.New("give one batch size for each recording")
	ErrSameBatch  = errors.New("the recordings have the same batch size: a regression needs two")
	ErrNotAlike   = errors.New("the recordings' steps do not make the same requests: what another batch needs cannot be told")
	ErrNotPlanned = errors.New("no three consecutive steps are alike: what another batch needs cannot be told")
)

// Compare makes one plan of several, and with batch sizes and a capacity the
// estimate.
func Compare(ctx context.Context, plans []*Plan, batches []float64, capacity int64) (*Several, error) {
	s := &Several{Plans: plans, Method: "each its own", Batches: batches}
	for _, p := range plans {
		s.Region = max(s.Region, p.Peak)
	}
	if alike(plans) {
		merged := slices.Clone(plans[0].blocks)
		for _, p := range plans[1:] {
			for i, b := range p.blocks {
				merged[i].Size = max(merged[i].Size, b.Size)
			}
		}
		plan, err := solve.Solve(ctx, solve.Problem{Blocks: merged})
		if err != nil {
			return nil, err
		}
		s.Region, s.Method = plan.Peak, "merged"
	}
	if capacity == 0 || len(batches) == 0 {
		return s, nil
	}
	if len(batches) != len(plans) {
		return nil, fmt.Errorf("%d recordings, %d batch sizes: %w", len(plans), len(batches), ErrBatches)
	}
	predict, method, err := predictor(ctx, plans, batches)
	if err != nil {
		return nil, err
	}
	s.WhatIf = &WhatIf{Capacity: capacity, Method: method}
	return s, s.WhatIf.search(predict)
}

// alike: the recordings' hot requests are the same, in the same order, with the
// same lifetimes; only sizes may differ.
func alike(plans []*Plan) bool {
	for _, p := range plans[1:] {
		if p.Scope != "step" || len(p.blocks) != len(plans[0].blocks) {
			return false
		}
		for i := range p.blocks {
			a, b := plans[0].Requests[i], p.Requests[i]
			if a.StackID != b.StackID || a.Lower != b.Lower || a.Upper != b.Upper {
				return false
			}
		}
	}
	return plans[0].Scope == "step"
}

// predictor tells the bytes that a batch needs.
func predictor(ctx context.Context, plans []*Plan, batches []float64) (func(float64) (int64, error), string, error) {
	first := plans[0]
	if first.Scope != "step" {
		return nil, "", ErrNotPlanned
	}
	var sizes []func(float64) float64
	var rest func(float64) float64
	method := "regression per hot block"
	if len(plans) == 1 {
		method = "linear activations (estimate from one recording)"
		for i, r := range first.Requests {
			size := float64(first.blocks[i].Size)
			if r.WholeStep { // a gradient is as large as its weight
				sizes = append(sizes, func(float64) float64 { return size })
			} else {
				sizes = append(sizes, func(b float64) float64 { return size * b / batches[0] })
			}
		}
		rest = func(float64) float64 { return float64(first.Rest) }
	} else {
		if !alike(plans) {
			return nil, "", ErrNotAlike
		}
		if slices.Min(batches) == slices.Max(batches) {
			return nil, "", ErrSameBatch
		}
		values := make([]float64, len(plans))
		for i := range first.blocks {
			for k, p := range plans {
				values[k] = float64(p.blocks[i].Size)
			}
			sizes = append(sizes, fit(batches, values))
		}
		for k, p := range plans {
			values[k] = float64(p.Rest)
		}
		rest = fit(batches, values)
	}
	return func(batch float64) (int64, error) {
		scaled := slices.Clone(first.blocks)
		for i := range scaled {
			scaled[i].Size = max(0, int64(sizes[i](batch)))
		}
		aligned, err := solve.Align(scaled, first.Alignment)
		if err != nil {
			return 0, err
		}
		offsets := solve.BestFit(ctx, aligned)
		if offsets == nil {
			return 0, ctx.Err()
		}
		return solve.Peak(aligned, offsets) + max(0, int64(rest(batch))), nil
	}, method, nil
}

// fit is the least-squares line through points.
func fit(x, y []float64) func(float64) float64 {
	n := float64(len(x))
	var mx, my float64
	for k := range x {
		mx, my = mx+x[k]/n, my+y[k]/n
	}
	var xx, xy float64
	for k := range x {
		xx, xy = xx+(x[k]-mx)*(x[k]-mx), xy+(x[k]-mx)*(y[k]-my)
	}
	slope := xy / xx
	return func(at float64) float64 { return my + slope*(at-mx) }
}

// search finds the largest batch by doubling and halving.
func (w *WhatIf) search(predict func(float64) (int64, error)) error {
	const most = 1 << 30
	fits := func(batch int64) (bool, error) {
		bytes, err := predict(float64(batch))
		if err != nil || bytes > w.Capacity {
			return false, err
		}
		if batch > w.LargestBatch {
			w.LargestBatch, w.Bytes = batch, bytes
		}
		return true, nil
	}
	high := int64(1)
	for ; high <= most; high *= 2 {
		if ok, err := fits(high); err != nil {
			return err
		} else if !ok {
			break
		}
	}
	for low := high / 2; high-low > 1; {
		middle := (low + high) / 2
		ok, err := fits(middle)
		if err != nil {
			return err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return nil
}
