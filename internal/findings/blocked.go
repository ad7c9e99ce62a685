package findings

import (
	"cmp"
	"fmt"
	"slices"
)

// blocked: the training thread sleeps, or waits for a lock, a pipe or a file, at
// a line of the user's.
func blocked(r *recording) (found []candidate) {
	waits := map[place][]interval{}
	calls := map[place]map[string]int64{}
	for _, s := range r.samples {
		if s.TID != r.thread.TID || s.OnCPU || s.Cause != "syscall" || s.Stack.waitsGIL ||
			s.Stack.place.file == "" || r.loading(s) {
			continue
		}
		p := s.Stack.place
		waits[p] = append(waits[p], interval{s.From, s.To})
		if calls[p] == nil {
			calls[p] = map[string]int64{}
		}
		calls[p][s.Syscall] += s.weight()
	}
	for p, intervals := range waits {
		if r.inSteps(intervals) < r.thresholds.BlockedPercent {
			continue
		}
		call := ""
		for name, w := range calls[p] {
			if w > calls[p][call] {
				call = name
			}
		}
		found = append(found, candidate{
			rule: "blocked", name: call, place: p, replace: r.intervalsGone(intervals),
			evidence: r.samplesSQL(fmt.Sprintf("s.tid = %d AND s.state = 'off_cpu' AND s.cause = 'syscall'", r.thread.TID)),
			advice: fmt.Sprintf("The training thread waits here in the system call %s. Take the wait out of the step: no sleeps, "+
				"files and locks on its way, or in another thread.", call),
		})
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.place.file, b.place.file), cmp.Compare(a.place.line, b.place.line))
	})
	return found
}

// loading says whether the thread was in the loader's next: another rule's.
func (r *recording) loading(s sample) bool {
	g := r.at(s.From)
	if g == nil {
		return false
	}
	for _, span := range g.Spans {
		if span.TID == s.TID && loads(span) && span.Begin <= s.From && s.From < span.End {
			return true
		}
	}
	return false
}
