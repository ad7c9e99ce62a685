package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
	"github.com/ebpfprof/ebpfprof/internal/otlp"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What becomes of the events of a session. It knows no session and reads no clock, so that
// a test replays a day of them.

// watching is what is kept of a job at level anchor until it is sent.
type watching struct {
	*worker
	collector *pattern.Collector
	guarded   *locked // the session's sink
	steps     []pattern.Step
}

func (w *worker) watching() *watching {
	k := &watching{worker: w, collector: pattern.New(frequency)}
	k.collector.Waited = w.steps.Waited
	k.guarded = &locked{to: tee{w.steps, w.config.sink(k.collector)}}
	return k
}

// look takes the steps that have ended, and says for what reason a window is due; "" is none.
func (k *watching) look(now time.Time) (reason string) {
	w := k.worker
	k.guarded.Lock()
	w.steps.Check(now.UnixNano())
	done, degraded := w.steps.Take(false)
	_, w.status.Sequence = w.steps.Learnt()
	w.status.Dropped = w.dropped + w.steps.Ignored()
	var last lasting
	last.Slow, last.Blocked = w.steps.Now()
	k.guarded.Unlock()
	if last != w.status.Now { // who watches need not wait for the next flush
		w.status.Now = last
		w.say("watching", "")
	}
	k.steps = w.keep(k.steps, done)
	for _, d := range degraded {
		reason = w.degraded(d)
	}
	return reason
}

// send writes what was seen since the last time for the store.
func (k *watching) send(ctx context.Context) {
	k.guarded.Lock()
	defer k.guarded.Unlock()
	k.worker.send(ctx, k.collector, k.steps, 0)
	k.steps = nil
}

func (k *watching) blind(watched time.Duration) string {
	k.guarded.Lock()
	defer k.guarded.Unlock()
	return k.worker.blind(watched)
}

// windowed is what is kept of a job in a window.
type windowed struct {
	*worker
	collector *pattern.Collector
	steps     *live.Steps
	samples   *otlp.Window // for a collector; nil without one
	raw       *raw         // nil where raw events are not kept
	guarded   *locked      // the session's sink
}

func (w *worker) windowed(frequency int, start time.Time) *windowed {
	k := &windowed{worker: w, collector: pattern.New(int64(frequency)), steps: live.New(trigger.Published), samples: w.config.samples(frequency)}
	k.collector.Waited = k.steps.Waited
	k.guarded = &locked{to: tee{w.config.sink(k.collector), k.steps}}
	if k.samples != nil {
		k.guarded.to = append(k.guarded.to, w.config.sink(k.samples))
	}
	raw, err := openRaw(w.config, w.job.Name, start)
	if err != nil {
		if w.config.SpoolMB > 0 {
			w.status.RawFailed++
		}
		w.say("window", fmt.Sprintf("raw events are not kept: %v", err))
		return k
	}
	k.raw = raw
	k.guarded.to = append(k.guarded.to, raw.sink)
	return k
}

// end closes the window and writes its patterns.
func (k *windowed) end(ctx context.Context) {
	w := k.worker
	rawBytes, err := k.raw.end()
	w.status.RawBytes += rawBytes
	if err != nil {
		w.status.RawFailed++
		w.say("window", fmt.Sprintf("raw events are in the spool in part: %v", err))
	}
	w.status.Windows++
	done, _ := k.steps.Take(true)
	w.send(ctx, k.collector, done, rawBytes)
	w.export(ctx, k.samples)
}

// locked has the session's goroutine and the worker's take turns with the sinks.
type locked struct {
	sync.Mutex
	to tee
}

func (l *locked) do(f func() error) error {
	l.Lock()
	defer l.Unlock()
	return f()
}

func (l *locked) Spans(r []event.Span) error { return l.do(func() error { return l.to.Spans(r) }) }
func (l *locked) Samples(r []event.Sample) error {
	return l.do(func() error { return l.to.Samples(r) })
}
func (l *locked) Stacks(r []event.Stack) error  { return l.do(func() error { return l.to.Stacks(r) }) }
func (l *locked) Memory(r []event.Memory) error { return l.do(func() error { return l.to.Memory(r) }) }
func (l *locked) Slices(r []event.Slice) error  { return l.do(func() error { return l.to.Slices(r) }) }
func (l *locked) OpenCalls(r event.OpenCalls) error {
	return l.do(func() error { return l.to.OpenCalls(r) })
}
func (l *locked) Flows(r []event.Flow) error { return l.do(func() error { return l.to.Flows(r) }) }
func (l *locked) IO(r []event.IO) error      { return l.do(func() error { return l.to.IO(r) }) }
func (l *locked) Counters(r []event.Counter) error {
	return l.do(func() error { return l.to.Counters(r) })
}
func (l *locked) Process(r event.Process) error { return l.do(func() error { return l.to.Process(r) }) }
func (l *locked) Thread(r event.Thread) error   { return l.do(func() error { return l.to.Thread(r) }) }
func (l *locked) Library(r event.Library) error { return l.do(func() error { return l.to.Library(r) }) }
func (l *locked) Probes(r []event.Probe) error  { return l.do(func() error { return l.to.Probes(r) }) }
func (l *locked) Warning(r event.Warning) error { return l.do(func() error { return l.to.Warning(r) }) }
