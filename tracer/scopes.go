package tracer

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// A scope ends on whichever thread lets go of its object. One whose thread has
// ended may be ended by another yet, or never: it is given orphanWait, then its
// place, and it has a row without an end.

// orphanWait is how often scopes are looked at whose thread has ended.
const orphanWait = 10 * time.Second

// scopeSweep remembers the scopes whose thread was gone at the last look.
type scopeSweep struct {
	every   time.Duration
	at      time.Time
	orphans map[uint64]bool // by span id
}

// endOrphans takes scopes out of the kernel's table whose thread was gone at the
// last look, too.
func (s *Session) endOrphans(now time.Time) {
	if now.Sub(s.scopes.at) < s.scopes.every {
		return
	}
	s.scopes.at = now
	before, orphans := s.scopes.orphans, map[uint64]bool{}
	threads := map[threadID]int64{} // when they began, 0 for none
	s.leaveScopes(s.kernel.TakeScopes(func(c *kernel.OpenCall) bool {
		if !s.threadEnded(c, threads) {
			return false
		}
		if before[c.SpanID] {
			return true
		}
		orphans[c.SpanID] = true
		return false
	}))
	s.scopes.orphans = orphans
}

type threadID struct{ pid, tid int32 }

// threadEnded reports whether the thread that began a scope has ended. Its number may
// be another's by now.
func (s *Session) threadEnded(c *kernel.OpenCall, threads map[threadID]int64) bool {
	id := threadID{int32(c.Tgid), int32(c.TID)}
	began, looked := threads[id]
	if !looked {
		began, _ = process.ThreadStartedNS(id.pid, id.tid)
		threads[id] = began
	}
	const exact = 2 * time.Second // the clocks of a thread's start and of a scope's may drift
	return began == 0 || began > int64(c.StartNS)+s.offsetNS+int64(exact)
}

// leaveScopes makes rows of scopes whose end nobody will see.
func (s *Session) leaveScopes(open []kernel.OpenCall) {
	for _, c := range open {
		s.do(func(d *decode.Decoder) { d.Departed.Scope(c) })
	}
}
