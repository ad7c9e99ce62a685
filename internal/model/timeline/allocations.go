package timeline

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sort"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// Allocation is an allocation or free of a framework's allocator that the tracer's own probes
// saw on a thread.
type Allocation struct {
	TID  int
	At   int64   // ns since the Unix epoch
	Hits float64 // passes of probes: one where its end alone was seen, else two
}

// Those of the runtimes are calls of layer runtime, whose hits are counted as theirs.
const allocationsSQL = `SELECT tid::BIGINT, ts_ns, if(duration_ns IS NULL, 1, 2)::BIGINT FROM memory
WHERE pid = %d AND level = 'allocator' AND action IN ('alloc', 'free') AND ts_ns >= %d AND ts_ns < %d ORDER BY ts_ns`

// AllocationsOf are those in steps that do not overlap and are in order of time, a list for each step.
func AllocationsOf(ctx context.Context, db *dataset.DB, t Thread, steps []Step) ([][]Allocation, error) {
	all := make([][]Allocation, len(steps))
	if len(steps) == 0 {
		return all, nil
	}
	along := walk{steps: steps}
	err := db.Each(ctx, fmt.Sprintf(allocationsSQL, t.PID, steps[0].Begin, steps[len(steps)-1].Until()), func(v []driver.Value) error {
		a := Allocation{TID: int(v[0].(int64)), At: v[1].(int64), Hits: float64(v[2].(int64))}
		if step := along.at(a.At); step >= 0 {
			all[step] = append(all[step], a)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the allocations of steps %d to %d: %w", steps[0].Number, steps[len(steps)-1].Number, err)
	}
	return all, nil
}

// Allocated adds the hits of allocations to the segments in which they were. They are no calls of
// the graph, and all of their hits lie in one segment.
func (g *StepGraph) Allocated(allocations []Allocation) {
	lanes := map[int][]int{}
	for n, s := range g.Segments {
		if !s.Device {
			lanes[s.TID] = append(lanes[s.TID], n)
		}
	}
	for _, lane := range lanes {
		sort.Slice(lane, func(i, k int) bool { return g.Segments[lane[i]].From < g.Segments[lane[k]].From })
	}
	for _, a := range allocations {
		lane, at := lanes[a.TID], a.At-g.Step.Begin
		i := sort.Search(len(lane), func(i int) bool { return g.Segments[lane[i]].To > at })
		if i < len(lane) && g.Segments[lane[i]].From <= at {
			g.Hits[lane[i]] += a.Hits
		}
	}
}
