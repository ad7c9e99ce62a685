package analysis

import (
	"context"
	"errors"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
)

// planOf has two activations that grow with the batch, a gradient that does not,
// and a rest.
func planOf(batch int64) *Plan {
	p := &Plan{Scope: "step", Alignment: 64, Rest: 1 << 20}
	add := func(lower, upper, size int64, whole bool) {
		p.blocks = append(p.blocks, solve.Block{Lower: lower, Upper: upper, Size: size})
		p.Requests = append(p.Requests, Placed{StackID: int64(len(p.blocks)), Lower: lower, Upper: upper, Bytes: size, WholeStep: whole})
	}
	add(0, 3, 64*1000*batch, false)
	add(1, 2, 64*500*batch, false)
	add(0, 9, 64*4000, true)
	p.Peak = solve.LowerBound(p.blocks)
	return p
}

// TestLargestBatch is the one that the sizes were made from: by regression from two
// recordings, and from one with linear activations.
func TestLargestBatch(t *testing.T) {
	ctx := context.Background()
	capacity := int64(1<<20 + 64*4000 + 64*1500*37 + 64*1499) // 37 fit, 38 do not
	for _, c := range []struct {
		plans   []*Plan
		batches []float64
	}{{[]*Plan{planOf(8), planOf(16)}, []float64{8, 16}}, {[]*Plan{planOf(8)}, []float64{8}},
		{[]*Plan{planOf(4), planOf(8), planOf(32)}, []float64{4, 8, 32}}} {
		s, err := Compare(ctx, c.plans, c.batches, capacity)
		if err != nil {
			t.Fatal(err)
		}
		if s.WhatIf.LargestBatch != 37 || s.WhatIf.Bytes > capacity || s.Method != "merged" {
			t.Errorf("batches %v: %+v, %s", c.batches, s.WhatIf, s.Method)
		}
	}
	s, err := Compare(ctx, []*Plan{planOf(8), planOf(16)}, nil, 0)
	if err != nil || s.Region != planOf(16).Peak {
		t.Errorf("one plan for both: %+v, %v", s, err)
	}
	other := planOf(16)
	other.Requests[0].Upper++
	if s, err := Compare(ctx, []*Plan{planOf(8), other}, nil, 0); err != nil || s.Method != "each its own" || s.Region != other.Peak {
		t.Errorf("recordings that differ: %+v, %v", s, err)
	}
	for _, c := range []struct {
		plans   []*Plan
		batches []float64
		want    error
	}{{[]*Plan{planOf(8), other}, []float64{8, 16}, ErrNotAlike}, {[]*Plan{planOf(8), planOf(8)}, []float64{8, 8}, ErrSameBatch},
		{[]*Plan{planOf(8)}, []float64{8, 16}, ErrBatches}, {[]*Plan{{Scope: "recording"}}, []float64{8}, ErrNotPlanned}} {
		if _, err := Compare(ctx, c.plans, c.batches, capacity); !errors.Is(err, c.want) {
			t.Errorf("batches %v: %v, want %v", c.batches, err, c.want)
		}
	}
	if s, err := Compare(ctx, []*Plan{planOf(8)}, []float64{8}, 10); err != nil || s.WhatIf.LargestBatch != 0 {
		t.Errorf("nothing fits: %+v, %v", s, err)
	}
}
