package tracer

import (
	"sync/atomic"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/decode"
)

// A thread sends what it has read and written when it reads or writes again in another
// second. What it has not sent, because it does not, is looked at.
type ioLook struct {
	at   time.Time
	took atomic.Int64 // the last time, nanoseconds; the decoder says so
}

const (
	// ioEvery is how often that is, at the least; the table has two kilobytes for each
	// thread, and reading it is to take no more than a share of ioShare.
	ioEvery = 5 * time.Second
	ioShare = 200
	// ioQuiet is how long ago the last call is of a thread that is looked at.
	ioQuiet = time.Second
)

func (l *ioLook) look(s *Session, now time.Time) {
	if s.sampling.sampler == nil || !s.options.measuresIO() || now.Before(l.at) {
		return
	}
	l.at = now.Add(max(ioEvery, ioShare*time.Duration(l.took.Load())))
	s.do(func(d *decode.Decoder) {
		begun := time.Now()
		d.Rows.Out.Keep(d.HeldIO(s.sampling.sampler.HeldIO(), uint64(monotonic()-int64(ioQuiet))))
		l.took.Store(int64(time.Since(begun)))
	})
}
