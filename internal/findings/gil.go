package findings

import "fmt"

// gil: the training thread waits for Python's global lock, which another thread
// of the process holds.
func gil(r *recording) []candidate {
	var waits, unknown []interval
	held := false
	for _, s := range r.samples {
		switch {
		case s.TID != r.thread.TID:
			held = held || s.GIL && r.at(s.From) != nil
		case !s.OnCPU && s.Stack.waitsGIL:
			waits = append(waits, interval{s.From, s.To})
		case !s.OnCPU && s.Syscall == "futex" && !s.Stack.native:
			unknown = append(unknown, interval{s.From, s.To})
		}
	}
	if share := r.inSteps(unknown); held && share >= r.thresholds.GILPercent {
		r.untold = append(r.untold, fmt.Sprintf("for %.0f %% of the steps' time the training thread waited in futex, and nothing tells whether for Python's lock, "+
			"which other threads held now and then: these waits have no native frames (the rows of kind unwind and incomplete in table warning say why)", share))
	}
	if r.inSteps(waits) < r.thresholds.GILPercent {
		return nil
	}
	// Who holds it: other threads that run with it.
	holders, names := map[place]int64{}, map[string]int64{}
	for _, s := range r.samples {
		if s.TID != r.thread.TID && s.GIL && r.at(s.From) != nil {
			if s.Stack.place.file != "" {
				holders[s.Stack.place] += s.weight()
			}
			names[s.Stack.function] += s.weight()
		}
	}
	at := heaviest(holders)
	name := at.function
	for n, w := range names {
		if name == "" || at.function == "" && w > names[name] {
			name = n
		}
	}
	return []candidate{{
		rule: "gil_contention", name: name, place: at, replace: r.intervalsGone(waits),
		evidence: r.samplesSQL(fmt.Sprintf("s.tid <> %d AND s.holds_gil", r.thread.TID)),
		advice: "Another thread of the process holds Python's global lock while the step waits for it. Move its work to another " +
			"process, or into code that lets go of the lock.",
	}}
}
