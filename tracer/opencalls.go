package tracer

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/waits"
)

// A scope ends on whichever thread lets go of its object. One whose thread has
// ended may be ended by another yet, or never: it is given orphanWait, then its
// place, and it has a row without an end.

// orphanWait is how often scopes are looked at whose thread has ended.
const orphanWait = 10 * time.Second

// scopeSweep remembers the scopes whose thread was gone at the last look.
type scopeSweep struct {
	at      time.Time
	orphans map[uint64]bool // by span id
}

// endOrphans takes scopes out of the kernel's table whose thread was gone at the
// last look, too.
func (w *scopeSweep) endOrphans(s *Session, now time.Time) {
	if now.Sub(w.at) < orphanWait {
		return
	}
	w.at = now
	before, orphans := w.orphans, map[uint64]bool{}
	threads := map[threadID]int64{} // when they began, 0 for none
	told{decoder: s.decoder}.Left(s.kernel.TakeScopes(func(c *kernel.OpenCall) bool {
		if !threadEnded(c, s.offsetNS, threads) {
			return false
		}
		if before[c.SpanID] {
			return true
		}
		orphans[c.SpanID] = true
		return false
	}))
	w.orphans = orphans
}

type threadID struct{ pid, tid int32 }

// threadEnded reports whether the thread that began a scope has ended. Its number may
// be another's by now.
func threadEnded(c *kernel.OpenCall, offsetNS int64, threads map[threadID]int64) bool {
	id := threadID{int32(c.Tgid), int32(c.TID)}
	began, looked := threads[id]
	if !looked {
		began, _ = process.ThreadStartedNS(id.pid, id.tid)
		threads[id] = began
	}
	const exact = 2 * time.Second // the clocks of a thread's start and of a scope's may drift
	return began == 0 || began > int64(c.StartNS)+offsetNS+int64(exact)
}

// openLook says when the kernel's table of open calls is read, for the collectives that
// threads are in.
type openLook struct {
	at time.Time
}

const (
	// openEvery is how often that is, at the least; the table has ten kilobytes for
	// each thread, and reading it is to take no more than a share of openShare.
	openEvery = time.Second
	openShare = 200
)

// look tells the decoder what threads are in.
func (o *openLook) look(s *Session, now time.Time) {
	if !s.probes.Awaits() || now.Before(o.at) {
		return
	}
	begun := time.Now()
	calls, since := s.openCollectives()
	o.at = begun.Add(max(openEvery, openShare*time.Since(begun)))
	s.do(func(d *decode.Decoder) { d.Collectives.Open(now.UnixNano(), since, calls) })
}

// openCollectives reads which calls of collectives threads are in.
func (s *Session) openCollectives() (open []kernel.OpenFrame, since waits.Epochs) {
	open, all, sliced := s.kernel.OpenFrames(func(spec uint32) bool {
		p := s.probes.Table().Find(spec)
		return p != nil && decode.ShowsOpen(p.Planned.Function)
	})
	return open, waits.Epochs{All: all, Sliced: sliced}
}
