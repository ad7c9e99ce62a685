package rules

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
)

// gil: the training thread waits for Python's global lock, which another thread
// of the process holds.
func gil(r *evidence.Recording) []evidence.Candidate {
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
	if share := r.InSteps(unknown); held && share >= r.Thresholds.GILPercent {
		r.Untold = append(r.Untold, fmt.Sprintf("for %.0f %% of the steps' time the training thread waited in futex, and nothing tells whether for Python's lock, "+
			"which other threads held now and then: these waits have no native frames (the rows of kind unwind and incomplete in table warning say why)", share))
	}
	if r.InSteps(waits) < r.Thresholds.GILPercent {
		return nil
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
	return []evidence.Candidate{{
		Rule: "gil_contention", Name: name, Place: at, Replace: r.IntervalsGone(waits),
		Evidence: r.SamplesSQL(fmt.Sprintf("s.tid <> %d AND s.holds_gil", r.Thread.TID)),
		Advice: "Another thread of the process holds Python's global lock while the step waits for it. Move its work to another " +
			"process, or into code that lets go of the lock.",
	}}
}
