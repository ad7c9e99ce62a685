package timeline

import (
	"context"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestAllocationsAreHitsWhereTheyWere: in the innermost call of their thread, in steps alone, and
// those of the runtime not, which are calls.
func TestAllocationsAreHitsWhereTheyWere(t *testing.T) {
	j := scripted.New()
	for range 12 {
		j.Load(100)
		j.Op("aten::linear", 10, func() {
			j.Op("aten::empty", 10, func() { j.Allocate("allocator", 64) })
			j.Allocate("allocator", 64)
			j.Allocate("driver", 64)
			j.Wait(10)
		})
		j.Backward(100)
		j.Optimize(50)
	}
	db := open(t, scripted.Write(t, j))
	thread := find(t, db)[0]
	training := thread.Training()
	spans, err := SpansOf(context.Background(), db, thread, training)
	if err != nil {
		t.Fatal(err)
	}
	allocations, err := AllocationsOf(context.Background(), db, thread, training)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range training {
		g, err := NewStepGraph(thread, s, spans[i])
		if err != nil {
			t.Fatal(err)
		}
		before := append([]float64(nil), g.Hits...)
		g.Allocated(append(allocations[i], Allocation{TID: 77, At: s.Begin, Hits: 1}, Allocation{TID: thread.TID, At: s.Until() + 1, Hits: 1}))
		added := map[string]float64{}
		for n, segment := range g.Segments {
			name := ""
			if segment.Span >= 0 {
				name = g.Spans[segment.Span].Name
			}
			added[name] += g.Hits[n] - before[n]
		}
		if added["aten::empty"] != 1 || added["aten::linear"] != 1 || len(allocations[i]) != 2 {
			t.Fatalf("step %d: %v of %d allocations", s.Number, added, len(allocations[i]))
		}
	}
}
