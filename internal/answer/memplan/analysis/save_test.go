package analysis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// TestASavedPlanIsTwoTables of the dataset: every block with its life, every
// planned request with its offset; saving again replaces them.
func TestASavedPlanIsTwoTables(t *testing.T) {
	r := planted(t)
	for range 2 {
		m, err := Load(context.Background(), r.dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := m.MakePlan(context.Background(), m.Arenas[0], PlanOptions{Time: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(plan.Save(m), m.Close()); err != nil {
			t.Fatal(err)
		}
		db, err := dataset.Open(r.dir)
		if err != nil {
			t.Fatal(err)
		}
		if w := db.Warnings(); len(w) > 0 {
			t.Errorf("%q", w)
		}
		var rows, allocations, sum, live, placed, peak int64
		err = errors.Join(
			db.Row(t.Context(), `SELECT count(*), sum(bytes)::BIGINT FROM memory_block WHERE session_id = 's' AND analysis_version = '1.0.0'`,
				nil, &rows, &sum),
			db.Row(t.Context(), `SELECT count(*), sum(bytes)::BIGINT FROM memory WHERE action = 'alloc'`, nil, &allocations, &live),
			db.Row(t.Context(), `SELECT count(*), max(offset_bytes + bytes)::BIGINT FROM memory_plan WHERE session_id = 's'`, nil,
				&placed, &peak),
			db.Close())
		if err != nil {
			t.Fatal(err)
		}
		if rows != allocations || rows == 0 || sum != live {
			t.Errorf("%d blocks of %d bytes; %d allocations of %d", rows, sum, allocations, live)
		}
		if placed != int64(len(plan.Requests)) || placed == 0 || peak > plan.Peak {
			t.Errorf("%d requests up to %d in the table; planned %d up to %d", placed, peak, len(plan.Requests), plan.Peak)
		}
	}
}
