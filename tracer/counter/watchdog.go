package counter

import (
	"errors"
	"runtime"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/threadclock"
)

// errStalled is what a source says that has not answered yet.
var errStalled = errors.New("the driver has not answered in time: a gap")

// watched reads a source that may hang: a driver's library can block for
// seconds when a device is wedged, and the other counters shall go on.
type watched struct {
	source   source
	patience time.Duration
	ask      chan *round
	done     chan error
	pending  *round // asked for, not answered; nil if none
	closed   chan struct{}
}

func watch(s source, patience time.Duration) *watched {
	w := &watched{source: s, patience: patience, ask: make(chan *round), done: make(chan error, 1), closed: make(chan struct{})}
	go w.serve()
	return w
}

// serve reads on a thread of its own, so that its time can be measured.
func (w *watched) serve() {
	runtime.LockOSThread()
	for r := range w.ask {
		began := threadclock.Now()
		err := w.source.read(r)
		r.used = threadclock.Now() - began
		w.done <- err
	}
	if c, ok := w.source.(interface{ close() }); ok {
		c.close()
	}
	close(w.closed)
}

// read asks for a reading and waits for it, at most as long as its patience.
// One that comes later is delivered with the next call, with its own times.
func (w *watched) read(r *round) error {
	if w.pending != nil {
		if err := w.collect(r, 0); err != nil {
			return err
		}
	}
	w.pending = &round{name: r.name, clock: r.clock, now: r.now, history: r.history}
	w.ask <- w.pending
	return w.collect(r, w.patience)
}

// collect takes the answer over, if it is there in time.
func (w *watched) collect(r *round, patience time.Duration) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	var err error
	select {
	case err = <-w.done:
	default:
		select {
		case err = <-w.done:
		case <-late.C:
			return errStalled
		}
	}
	r.readings = append(r.readings, w.pending.readings...)
	r.backward += w.pending.backward
	r.used += w.pending.used
	w.pending = nil
	return err
}

// close lets the library go; one that hangs is closed once it answers.
func (w *watched) close() {
	close(w.ask)
	select {
	case <-w.closed:
	case <-time.After(2 * w.patience):
	}
}
