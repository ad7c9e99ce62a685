package unwinding

import (
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/beat"
)

// How often the kernel is asked in which processes walks met code that it was
// not told of. A process that is asked for again and again has code that is not
// understood: it is looked at ever more seldom.
const (
	watchPeriod  = 50 * time.Millisecond // where they did lately
	calmPeriod   = 400 * time.Millisecond
	firstPause   = 100 * time.Millisecond
	longestPause = 30 * time.Second
	pauseOfTime  = 20 // a look that takes long is followed by a pause so many times as long
)

// watch looks again at the processes that walks want it for.
type watch struct {
	u      *Unwinder
	ended  chan struct{}
	once   sync.Once
	closed chan struct{}
	after  map[int]pause
}

type pause struct {
	until  time.Time
	length time.Duration
}

func startWatch(u *Unwinder) *watch {
	w := &watch{u: u, ended: make(chan struct{}), closed: make(chan struct{}), after: map[int]pause{}}
	go w.run()
	return w
}

func (w *watch) stop() {
	w.once.Do(func() { close(w.closed) })
	<-w.ended
}

func (w *watch) run() {
	defer close(w.ended)
	period := watchPeriod
	timer := time.NewTimer(period)
	defer timer.Stop()
	for {
		select {
		case <-w.closed:
			return
		case now := <-timer.C:
			wanted, _ := w.u.tables.takeWanted() // what fails now is asked for again
			// Each look wakes the tracer: on a quiet job there is nothing else to pay for.
			if period = min(period*5/4, calmPeriod); len(wanted) > 0 {
				period = watchPeriod
			}
			timer.Reset(beat.Of(period))
			for _, pid := range wanted {
				w.refresh(pid, now)
			}
		}
	}
}

// refresh reads a process's mappings and generated code again, unless that was
// done a moment ago.
func (w *watch) refresh(pid int, now time.Time) {
	p := w.after[pid]
	if now.Before(p.until) {
		return
	}
	if now.Sub(p.until) > 2*p.length {
		p.length = firstPause
	} else {
		p.length = min(2*p.length, longestPause)
	}
	_ = w.u.UpdateProcess(pid)
	w.u.mu.Lock()
	if t := w.u.processes[pid]; t != nil {
		p.length = max(p.length, pauseOfTime*t.looked)
	}
	w.u.look(pid)
	w.u.mu.Unlock()
	p.until = now.Add(p.length)
	w.after[pid] = p
	if len(w.after) > maxPauses {
		clear(w.after)
	}
}

// maxPauses bounds what is kept of processes that have ended.
const maxPauses = 1024
