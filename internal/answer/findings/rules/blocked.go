package rules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
)

// Blocked: the training thread sleeps, or waits for a lock, a pipe or a file, at
// a line of the user's.
var Blocked = evidence.Rule{
	Name: "blocked", Title: "the training thread waits", Placed: true, Look: lookBlocked,
	Thresholds: []thresholds.Threshold{blockedPercent},
}

var blockedPercent = thresholds.Threshold{
	Name: "blocked_percent", Default: 5,
	Why: "The training thread sleeps, or waits for a lock or a file, in user code.",
}

func lookBlocked(r *evidence.Recording) (found []evidence.Candidate, err error) {
	waits := map[evidence.Place][]evidence.Interval{}
	calls := map[evidence.Place]map[string]int64{}
	for _, s := range r.Samples {
		if s.TID != r.Thread.TID || s.OnCPU || s.Cause != "syscall" || s.Stack.WaitsGIL ||
			s.Stack.Place.File == "" || loading(r, s) {
			continue
		}
		p := s.Stack.Place
		waits[p] = append(waits[p], evidence.Interval{From: s.From, To: s.To})
		if calls[p] == nil {
			calls[p] = map[string]int64{}
		}
		calls[p][s.Syscall] += s.Weight()
	}
	for p, intervals := range waits {
		if r.InSteps(intervals) < r.Thresholds.Of(blockedPercent) {
			continue
		}
		call := ""
		for name, w := range calls[p] {
			if w > calls[p][call] {
				call = name
			}
		}
		found = append(found, evidence.Candidate{
			Name: call, Place: p, Replace: r.IntervalsGone(intervals),
			Evidence: r.SamplesThat(fmt.Sprintf("s.tid = %d AND s.state = 'off_cpu' AND s.cause = 'syscall'", r.Thread.TID)),
			Advice: fmt.Sprintf("The %s waits here %s. Take the wait out of the step: do it ahead of time, or in another thread.",
				r.Thread.Worker(), waitFor(call)),
			Title: fmt.Sprintf("the %s waits", r.Thread.Worker()),
		})
	}
	slices.SortFunc(found, func(a, b evidence.Candidate) int {
		return cmp.Or(cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line))
	})
	return found, nil
}

// waitFor is what a thread waits for in a system call, as far as the call tells.
func waitFor(call string) string {
	switch call {
	case "futex":
		return "for a lock or another thread's signal (futex)"
	case "nanosleep", "clock_nanosleep":
		return "because it sleeps (" + call + ")"
	case "read", "write", "fsync", "fdatasync", "openat", "pread64", "pwrite64":
		return "for a file or pipe (" + call + ")"
	}
	return "in the system call " + call
}

// loading says whether the thread was in the loader's next: another rule's.
func loading(r *evidence.Recording, s evidence.Sample) bool {
	g := r.At(s.From)
	if g == nil {
		return false
	}
	for _, span := range g.Spans {
		if span.TID == s.TID && evidence.Loads(span) && span.Begin <= s.From && s.From < span.End {
			return true
		}
	}
	return false
}
