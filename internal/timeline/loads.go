package timeline

import (
	"context"
	"fmt"
	"math"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/steps"
)

// loadSQL counts what followed each load that is alone: the operators of its
// batch, and whether a loader's iterator was made, which draws a seed for its
// workers (_BaseDataLoaderIter.__init__ in torch/utils/data/dataloader.py).
const loadSQL = `
WITH loads AS (
  SELECT step_id, pid, tid, end_ns, begin_ns,
    coalesce(lead(begin_ns) OVER (PARTITION BY pid, tid ORDER BY begin_ns), 9223372036854775807) AS until_ns
  FROM timeline_step)
SELECT l.step_id,
  count(s.name) FILTER (s.name NOT IN ('aten::empty', 'aten::random_', 'aten::item', 'aten::_local_scalar_dense')),
  count(s.name) FILTER (s.name = 'aten::random_')
FROM loads l JOIN timeline_step t USING (step_id)
LEFT JOIN (
  SELECT o.name, o.ts_ns, l.step_id, l.until_ns, l.end_ns
  FROM (SELECT pid, tid, ts_ns, name FROM span WHERE layer = 'op') o
  ASOF JOIN loads l ON o.pid = l.pid AND o.tid = l.tid AND o.ts_ns >= l.begin_ns
) s ON s.step_id = l.step_id AND s.ts_ns >= s.end_ns AND s.ts_ns < s.until_ns
WHERE t.anchors = 'L'
GROUP BY l.step_id`

// batches settles which loads brought a batch: the one with which a loader ends
// does not. The seed of the next iterator tells; where its operator was not
// recorded (called for the first time, or between slices), the loads around it and
// the time that it took do. Without recorded operators there it stays as the order of anchors
// has it.
func batches(ctx context.Context, db *dataset.DB, threads []Thread) error {
	rows, err := db.Query(ctx, loadSQL)
	if err != nil {
		return fmt.Errorf("looking for batches: %w", err)
	}
	defer rows.Close()
	type followed struct{ operators, iterators int64 }
	loads := map[int64]followed{}
	for rows.Next() {
		var id int64
		var f followed
		if err := rows.Scan(&id, &f.operators, &f.iterators); err != nil {
			return err
		}
		loads[id] = f
	}
	for i := range threads {
		var counts []int64
		for _, s := range threads[i].Steps {
			if n := loads[s.ID].operators; n > 0 {
				counts = append(counts, n)
			}
		}
		usual := steps.Median(counts)
		if usual == 0 {
			continue
		}
		all := threads[i].Steps
		// recorded reports whether a load's batch has its operators: those around a
		// load without any were recorded, so it had none to record.
		recorded := func(k int) bool {
			return k >= 0 && k < len(all) && float64(loads[all[k].ID].operators) >= usual/2
		}
		// quickest is the shortest load that certainly brought a batch. Where loads take
		// alike long, one that took not half as long brought none.
		quickest := int64(math.MaxInt64)
		for k := range all {
			if recorded(k) {
				quickest = min(quickest, all[k].End-all[k].Begin)
			}
		}
		for k := range all {
			s := &all[k]
			f, alone := loads[s.ID]
			last := k == len(all)-1
			switch n := float64(f.operators); {
			case !alone:
			case n < usual/4 && (f.iterators > 0 || last || recorded(k-1) && recorded(k+1) || s.End-s.Begin < quickest/2):
				s.Kind, s.Method = steps.Other, steps.Unmatched
			case n >= usual/2:
				s.Kind = steps.Evaluate
				if s.Method == steps.Unmatched {
					s.Method = steps.Learnt
				}
			}
		}
		renumber(threads[i].Steps)
	}
	return rows.Err()
}

// renumber counts the steps of each kind again; warm-up counts as training.
func renumber(all []Step) {
	numbers := map[steps.Kind]int{}
	for i := range all {
		kind := all[i].Kind
		if kind == steps.Warmup {
			kind = steps.Train
		}
		all[i].Number = numbers[kind]
		numbers[kind]++
	}
}
