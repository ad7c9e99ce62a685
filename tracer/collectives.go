package tracer

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

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

// lookForOpen tells the decoder what threads are in.
func (s *Session) lookForOpen(now time.Time) {
	if !s.probes.Awaits() || now.Before(s.open.at) {
		return
	}
	begun := time.Now()
	calls, epoch := s.openCollectives()
	s.open.at = begun.Add(max(openEvery, openShare*time.Since(begun)))
	s.do(func(d *decode.Decoder) { d.Collectives.Open(now.UnixNano(), epoch, calls) })
}

// openCollectives reads which calls of collectives threads are in.
func (s *Session) openCollectives() (open []kernel.OpenFrame, epoch uint32) {
	return s.kernel.OpenFrames(func(spec uint32) bool {
		p := s.probes.Table().Find(spec)
		return p != nil && decode.ShowsOpen(p.Planned.Function)
	})
}
