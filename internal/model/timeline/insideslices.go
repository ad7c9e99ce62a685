package timeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// EnoughBetween is how many steps between slices say how long a step is without the
// probes of detail.
const EnoughBetween = 5

// insideSlices marks the steps that a slice touches: probes of detail made them longer. In
// recordings without slices there are none.
func insideSlices(ctx context.Context, db *dataset.DB, threads []Thread) error {
	for i := range threads {
		touched, err := slicesOf(ctx, db, threads[i].PID)
		if err != nil {
			return err
		}
		threads[i].InSlices = len(touched) > 0
		for k := range threads[i].Steps {
			s := &threads[i].Steps[k]
			s.Sliced = overlap(touched, s.Begin, s.Until())
		}
	}
	return nil
}

// slicesOf are the stretches in which a process was recorded in detail, in order and
// without overlaps.
func slicesOf(ctx context.Context, db *dataset.DB, pid int) (merged []Stretch, err error) {
	rows, err := db.Query(ctx, "SELECT DISTINCT begin_ns, end_ns FROM slice WHERE pid = ? AND recorded > 0 ORDER BY 1, 2", pid)
	if err != nil {
		return nil, fmt.Errorf("reading slices: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var s Stretch
		if err := rows.Scan(&s.Begin, &s.Until); err != nil {
			return nil, fmt.Errorf("reading slices: %w", err)
		}
		if n := len(merged); n > 0 && s.Begin <= merged[n-1].Until {
			merged[n-1].Until = max(merged[n-1].Until, s.Until)
		} else {
			merged = append(merged, s)
		}
	}
	return merged, rows.Err()
}

// Slice is an interval in which a process was recorded in detail, and the stretch that it stands for.
type Slice struct {
	Begin, End, From, To  int64
	Unit                  string  // what Recorded and Represented are counted in
	Recorded, Represented float64 // how much the slice saw, and how much lies in its stretch
}

// Counted reports whether what lies in the stretch was counted, and not told by the time that passed.
func (s Slice) Counted() bool { return s.Unit != event.UnitTime }

// SlicesOf are those of the operators of a process, else of the group of probes with the most; in order of time.
func SlicesOf(ctx context.Context, db *dataset.DB, pid int) (all []Slice, err error) {
	rows, err := db.Query(ctx, `SELECT begin_ns, end_ns, min(from_ns), max(to_ns), max(unit), sum(recorded), sum(represented) FROM slice
		WHERE pid = ? AND recorded > 0 AND probe_group = (SELECT probe_group FROM slice WHERE pid = ? AND recorded > 0 GROUP BY 1
			ORDER BY probe_group = 'op' DESC, count(*) DESC, probe_group LIMIT 1)
		GROUP BY begin_ns, end_ns HAVING count(DISTINCT unit) = 1 ORDER BY 1`, pid, pid)
	if err != nil {
		return nil, fmt.Errorf("reading what slices stand for: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var s Slice
		if err := rows.Scan(&s.Begin, &s.End, &s.From, &s.To, &s.Unit, &s.Recorded, &s.Represented); err != nil {
			return nil, fmt.Errorf("reading what slices stand for: %w", err)
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// overlap says whether one of the stretches, which are in order, has a part of the time.
func overlap(stretches []Stretch, begin, until int64) bool {
	i := sort.Search(len(stretches), func(i int) bool { return stretches[i].Until > begin })
	return i < len(stretches) && stretches[i].Begin < until
}

// Stretched is what the probes of detail make of a loop's settled steps: the shares of a
// step in a slice hold, its milliseconds do not.
type Stretched struct {
	InsideMS  float64 // mean period of the steps in slices that have all their rows
	BetweenMS float64 // and of those that no slice touches
	LowMS     float64 // 95 % interval of BetweenMS, by windows of the steps where there are enough
	HighMS    float64
	Inside    int // how many steps these are of
	Between   int
}

// StretchedOf is not ok where the recording has no steps in slices, or too few between them.
func StretchedOf(loop []Step) (s Stretched, ok bool) {
	var inside, between []float64
	for _, step := range loop {
		switch {
		case step.Period < 0 || step.Kind == steps.Warmup || step.Profiled:
		case !step.Sliced:
			between = append(between, float64(step.Period)/1e6)
		case step.Whole:
			inside = append(inside, float64(step.Period)/1e6)
		}
	}
	s = Stretched{InsideMS: steps.Mean(inside), BetweenMS: steps.Mean(between), Inside: len(inside), Between: len(between)}
	if len(inside) == 0 || len(between) < EnoughBetween {
		return s, false
	}
	s.LowMS, s.HighMS = steps.Interval(between)
	if noise, known := steps.Noise(between); known {
		s.LowMS, s.HighMS = s.BetweenMS-noise, s.BetweenMS+noise
	}
	return s, s.InsideMS > 0
}

// longerBy is from when on it is worth a sentence that probes make steps longer.
const longerBy = 1.05

// Note says how much longer the probes of detail made the steps of the process with the
// most of them; "" where that is little, or nothing tells it.
func Note(threads []Thread) string {
	if len(threads) == 0 {
		return ""
	}
	most := slices.MaxFunc(threads, func(a, b Thread) int { return cmp.Compare(len(a.Steps), len(b.Steps)) })
	s, ok := StretchedOf(most.Of(steps.Train, steps.Evaluate))
	if !ok || s.InsideMS < longerBy*s.BetweenMS {
		return ""
	}
	return fmt.Sprintf("steps in slices take %s, the %d between slices %s: probes make longer what they measure; shares hold better than "+
		"milliseconds",
		milliseconds(s.InsideMS), s.Between, milliseconds(s.BetweenMS))
}
