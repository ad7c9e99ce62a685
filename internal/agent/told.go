package agent

import (
	"cmp"
	"maps"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/worker"
)

// What workers say of failures and hangs, as the log and the metrics have it.

// alsoFailed adds what failed under another worker of the job: a launcher that begins a job
// anew after a rank has died has another one follow it.
func alsoFailed(s, before *worker.Status) {
	s.Failed = cmp.Or(s.Failed, before.Failed)
	if len(before.Failures) == 0 {
		return
	}
	sum := maps.Clone(before.Failures)
	for kind, n := range s.Failures {
		sum[kind] += n
	}
	s.Failures = sum
}

// logFailed tells of a failure once.
func (s *supervisor) logFailed(before *worker.Failed, now *worker.Status) {
	f := now.Failed
	if f == nil || before != nil && before.At.Equal(f.At) && before.Sentence == f.Sentence { // each status has it
		return
	}
	s.log.Warn("job failed", "job", now.Job, "kind", f.Kind, "what", f.Sentence, "at", cmp.Or(f.Place, "unknown"), "since",
		f.At.UTC().Format(time.RFC3339), "also", f.Also, "last_moments", f.Dump)
}

// logHang tells of a verdict once, and of its end.
func (s *supervisor) logHang(before *worker.Hang, now *worker.Status) {
	h := now.Hang
	if h == nil || before != nil && before.At.Equal(h.At) {
		return
	}
	s.log.Warn("job is blocked", "job", now.Job, "verdict", h.Sentence, "since", h.Since.UTC().Format(time.RFC3339), "kind", h.Kind, "dumps",
		h.Dump)
}

// hangRanks are how many of this node's wait in a hang that lasts, and how many others wait for.
func hangRanks(h *worker.Hang) (waiting, missing int) {
	if h == nil || h.Over != nil || h.Report == nil {
		return 0, 0
	}
	if len(h.Report.Groups) > 0 {
		g := &h.Report.Groups[0]
		waiting = len(g.Waiting)
		for _, m := range g.Missing {
			if m.PID != nil {
				missing++
			}
		}
	} else if u := h.Report.Unseen; u != nil {
		waiting = len(u.Waiting)
	}
	return waiting, missing
}
