package timeline

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// stepOperators is what the operators on a step's thread say of it.
type stepOperators struct {
	inPeriod int // that began in its period
	// Of those between its end and the next step's begin: what a batch calls, and
	// whether an iterator of a loader was made, which draws a seed for its workers
	// (_BaseDataLoaderIter.__init__ in torch/utils/data/dataloader.py).
	followed, iterators int
}

// stepLane is a thread whose steps are gone through in order of time.
type stepLane struct {
	steps []Step
	at    int // the last that has begun; -1 before the first
}

// iteratorNames are what making an iterator calls.
var iteratorNames = []string{"aten::empty", "aten::random_", "aten::item", "aten::_local_scalar_dense"}

// countOperators looks at all operators once; by the steps' numbers.
func countOperators(ctx context.Context, db *dataset.DB, threads []Thread) ([]stepOperators, error) {
	type thread struct{ pid, tid int64 }
	lanes := map[thread]*stepLane{}
	first, last, n := int64(math.MaxInt64), int64(0), 0
	for _, t := range threads {
		l := &stepLane{slices.Clone(t.Steps), -1}
		slices.SortStableFunc(l.steps, func(a, b Step) int { return cmp.Compare(a.Begin, b.Begin) })
		lanes[thread{int64(t.PID), int64(t.TID)}] = l
		n += len(t.Steps)
		for _, s := range t.Steps {
			first, last = min(first, s.Begin), max(last, s.Until(), s.End)
		}
	}
	all := make([]stepOperators, n)
	if n == 0 {
		return all, nil
	}
	const time, pid, tid, layer, name = 0, 1, 2, 3, 4
	// Loads are followed to the end of the recording.
	scan := dataset.Scan{Table: "span", Columns: []string{"ts_ns", "pid", "tid", "layer", "name"}, From: first}
	var who thread
	var here *stepLane
	return all, db.Scan(ctx, scan, func(b *dataset.Batch) error {
		c := b.Columns
		for i := range b.Rows {
			if b.Text(c[layer][i]) != "op" {
				continue
			}
			if now := (thread{c[pid][i], c[tid][i]}); now != who || here == nil {
				who, here = now, lanes[now]
			}
			if here == nil {
				continue
			}
			t := c[time][i]
			for here.at+1 < len(here.steps) && here.steps[here.at+1].Begin <= t {
				here.at++
			}
			if here.at < 0 {
				continue
			}
			s := &here.steps[here.at]
			if t < s.Until() {
				all[s.ID].inPeriod++
			}
			if s.Anchors == "L" && t >= s.End {
				switch called := b.Text(c[name][i]); {
				case called == "aten::random_":
					all[s.ID].iterators++
				case !slices.Contains(iteratorNames, called):
					all[s.ID].followed++
				}
			}
		}
		return nil
	})
}
