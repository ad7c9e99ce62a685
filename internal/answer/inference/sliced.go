package inference

import (
	"context"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// Under a budget the steps of such a loop are seen in slices alone, where probes make them longer than they are. How many
// there were between slices is known where the recorder counted an operator all the time: the rate is theirs, by the clock.
// Where it did not, the steps in slices give a lower bound.

// stretch is the part of a recording in which steps are counted between slices, too.
type stretch struct {
	slices []timeline.Slice
	ns     int64
}

// countedSlices are the slices of the loop that stand for counted calls, and the time that these stand for.
func countedSlices(ctx context.Context, db *dataset.DB, pid int, loop []timeline.Step) (c stretch, err error) {
	all, err := timeline.SlicesOf(ctx, db, pid)
	if err != nil {
		return c, err
	}
	for _, s := range all {
		from, to := max(s.From, loop[0].Begin), s.To
		if s.Counted() && to > from {
			c.slices, c.ns = append(c.slices, s), c.ns+to-from
		}
	}
	return c, nil
}

// weights are for how many steps each stands; 0 of those in slices that stand for time.
func (c stretch) weights(loop []timeline.Step) []float64 {
	all, at := make([]float64, len(loop)), 0
	for i, s := range loop {
		for at < len(c.slices) && c.slices[at].End < s.Begin {
			at++
		}
		if at < len(c.slices) && s.Begin >= c.slices[at].Begin {
			all[i] = max(1, s.Weight)
		}
	}
	return all
}

// weights are for how many steps each of the loop's stands, and tells how the rate is known.
func (r *Rate) weights(ctx context.Context, db *dataset.DB, loop []timeline.Step) ([]float64, error) {
	if r.Sliced {
		c, err := countedSlices(ctx, db, r.PID, loop)
		if err != nil {
			return nil, err
		}
		found := c.weights(loop)
		if r.Counted = slices.ContainsFunc(found, func(w float64) bool { return w > 0 }); r.Counted {
			r.Seconds = float64(c.ns) / 1e9
			return found, nil
		}
		r.AtLeast = true
	}
	return slices.Repeat([]float64{1}, len(loop)), nil
}

// standFor is for how many steps these stand, and how many the other threads of a pool made in proportion.
func (r *Rate) standFor(weights []float64, l *steps.Loop) (n float64) {
	for _, w := range weights {
		n += w
	}
	switch {
	case l == nil || l.Beside == 0 || r.AtLeast:
	case r.Counted:
		n *= 1 + float64(l.Beside)/float64(len(l.Steps))
	default:
		n += float64(l.Beside)
	}
	return n
}

// shorten takes off the times of steps what probes make of them in slices: there a step is longer than it is on average.
func (r *Rate) shorten(loop []timeline.Step, weights []float64) {
	var inside []float64
	for i, s := range loop {
		if weights[i] > 0 && s.Period >= 0 {
			inside = append(inside, float64(s.Period)/1e6)
		}
	}
	if !r.Counted || len(inside) == 0 || steps.Mean(inside) <= r.StepMS {
		return
	}
	r.InSlicesMS = steps.Mean(inside)
	for _, ms := range []*float64{r.FirstTokenMS, r.TokenMS} {
		if ms != nil {
			*ms *= r.StepMS / r.InSlicesMS
		}
	}
}

// note says what the rate of a recording in slices is worth.
func (r *Rate) note() string {
	switch {
	case r.Counted:
		text := fmt.Sprintf("from %d steps in slices and a count of calls between them: %.2f ms a step", r.Steps, r.StepMS)
		if r.InSlicesMS > 0 {
			text += fmt.Sprintf(" (%.2f in slices, where probes make it longer)", r.InSlicesMS)
		}
		return text
	case r.AtLeast:
		return "a lower bound: steps were recorded in slices alone, where probes make them longer; record longer, so that an " +
			"operator is counted between slices, or with --budget off"
	}
	return ""
}
