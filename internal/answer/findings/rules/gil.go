package rules

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
)

// GIL: the training thread waits for Python's global lock, which another thread
// of the process holds.
var GIL = evidence.Rule{
	Name: "gil_contention", Title: "another thread holds Python's lock", Placed: true, Look: lookGIL,
	Thresholds: []thresholds.Threshold{gilPercent},
}

var gilPercent = thresholds.Threshold{Name: "gil_percent", Default: 5, Why: "The training thread waits for Python's global lock."}

func lookGIL(r *evidence.Recording) (found []evidence.Candidate, err error) {
	var waits, unknown []evidence.Interval
	held := false
	for _, s := range r.Samples {
		switch {
		case s.TID != r.Thread.TID:
			held = held || s.GIL && r.At(s.From) != nil
		case !s.OnCPU && s.Stack.WaitsGIL:
			waits = append(waits, evidence.Interval{From: s.From, To: s.To})
		case !s.OnCPU && s.Syscall == "futex" && !s.Stack.Native:
			unknown = append(unknown, evidence.Interval{From: s.From, To: s.To})
		}
	}
	if share := r.InSteps(unknown); held && share >= r.Thresholds.Of(gilPercent) {
		found = append(found, evidence.Candidate{Unknown: fmt.Sprintf("for %.0f %% of the steps' time the loop's thread waited in futex, "+
			"maybe for Python's lock, which other threads held at times: these waits have no native frames "+
			"(table warning has the reason in its rows of kind unwind and incomplete)", share)})
	}
	if r.InSteps(waits) < r.Thresholds.Of(gilPercent) {
		return found, nil
	}
	// Who holds it: other threads that run with it.
	holders, names := map[evidence.Place]int64{}, map[string]int64{}
	for _, s := range r.Samples {
		if s.TID != r.Thread.TID && s.GIL && r.At(s.From) != nil {
			if s.Stack.Place.File != "" {
				holders[s.Stack.Place] += s.Weight()
			}
			names[s.Stack.Function] += s.Weight()
		}
	}
	at := evidence.Heaviest(holders)
	name := at.Function
	for n, w := range names {
		if name == "" || at.Function == "" && w > names[name] {
			name = n
		}
	}
	return append(found, evidence.Candidate{
		Name: name, Place: at, Replace: r.IntervalsGone(waits),
		Evidence: r.SamplesThat(fmt.Sprintf("s.tid <> %d AND s.holds_gil", r.Thread.TID)),
		Advice: "Another thread of the process holds Python's global lock while the step waits for it. Move its work to another " +
			"process, or into code that lets go of the lock.",
	}), nil
}
