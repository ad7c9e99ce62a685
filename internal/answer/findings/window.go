package findings

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/rules"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// mostInWindow bounds the graph of a recording without steps: of a longer one the middle is examined.
const mostInWindow = 200_000

// RunWindow asks the rules about a recording without steps, of a rank if that is not nil: all of it counts as one step.
func RunWindow(ctx context.Context, db *dataset.DB, rank *int, limits thresholds.Set) (*Result, error) {
	return askWindow(ctx, db, rank, limits, rules.All)
}

func askWindow(ctx context.Context, db *dataset.DB, rank *int, limits thresholds.Set, asked []evidence.Rule) (*Result, error) {
	thread, whole, why, err := windowOf(ctx, db, rank)
	if err != nil {
		return nil, fmt.Errorf("looking for findings: %w", err)
	}
	result := &Result{}
	if why == "" {
		asked = slices.DeleteFunc(slices.Clone(asked), func(r evidence.Rule) bool { return r.OfSteps })
		if result, err = askThread(ctx, db, []timeline.Thread{thread}, thread, limits, asked); err != nil {
			return nil, fmt.Errorf("looking for findings: %w", err)
		}
		if !whole {
			result.Untold = append(result.Untold, fmt.Sprintf("the recording is long: its middle %s were examined", evidence.Time(result.MeanNS)))
		}
	} else {
		result.Untold = append(result.Untold, why)
	}
	result.Window, result.few = true, true
	for i := range result.Findings {
		none := 0
		result.Findings[i].FromSteps = &none
	}
	if err := result.addWindowFacts(ctx, db, rank); err != nil {
		return nil, err
	}
	result.sort()
	return result, result.worth(ctx, db)
}

// windowOf is the thread that does the most, with all of the recording as its only step. why says what stands against that.
func windowOf(ctx context.Context, db *dataset.DB, rank *int) (t timeline.Thread, whole bool, why string, err error) {
	var calls, weighted int64
	if err := db.Row(ctx, "SELECT count(*) FILTER (layer <> 'device'), count(*) FILTER (weight > 1) FROM span", nil, &calls,
		&weighted); err != nil {
		return t, false, "", err
	}
	switch {
	case calls == 0:
		return t, false, "no step was found, and no call of any thread was recorded", nil
	case weighted > 0:
		return t, false, "no step was found, and calls were recorded in slices of time: ebpfprof report explains the time by samples", nil
	}
	t, s, err := timeline.Recording(ctx, db, rank)
	if err != nil {
		return t, false, "no step was found, and " + err.Error(), nil
	}
	if whole = calls <= mostInWindow; !whole {
		var from, until sql.NullInt64
		middle := float64(mostInWindow) / float64(calls) / 2
		err := db.Row(ctx, fmt.Sprintf(`SELECT quantile_disc(ts_ns, %f), quantile_disc(ts_ns, %f) FROM span WHERE pid = %d AND layer <> 'device'`,
			0.5-middle, 0.5+middle, t.PID), nil, &from, &until)
		if err != nil {
			return t, false, "", err
		}
		s.Begin, s.End, s.Period = from.Int64, until.Int64, until.Int64-from.Int64
	}
	s.Kind = steps.Train
	t.Steps = []timeline.Step{s}
	return t, whole, "", nil
}
