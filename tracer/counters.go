package tracer

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/counter"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// counting is what is read beside the job.
type counting struct {
	sampler *counter.Sampler // nil if no counters are wanted
	history *counter.History
}

// openCounters looks for what can be counted.
func openCounters(every time.Duration, offsetNS int64) (c counting) {
	clock := func() int64 { return monotonic() + offsetNS }
	c.history = counter.NewHistory(counter.Files(""), clock)
	if every > 0 {
		c.sampler = counter.Open(counter.Options{Clock: clock})
	}
	return c
}

func (c counting) close() {
	c.history.Close()
	if c.sampler != nil {
		c.sampler.Close()
	}
}

// tellHeld writes what the processes have held of memory lately, since there is none left.
func (c counting) tellHeld(d *decode.Decoder) { keepReadings(d, c.history.Take()) }

func keepReadings(d *decode.Decoder, readings []Counter) {
	if len(readings) == 0 {
		return
	}
	d.Rows.Out.Add(&event.Batch{Counters: readings})
	d.Rows.Sums.Totals.Counters += uint64(len(readings))
}

// probesTook measures what probes add to the times of allocations and frees.
func probesTook(k *kernel.Programs) decode.ProbesTook {
	return decode.ProbesTook{SinceMark: kernel.CalibrateMark(k), UntilReturn: kernel.CalibrateReturn(k)}
}

// monotonic is the clock that the kernel stamps records with.
func monotonic() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// runCounters reads the counters, and what the processes hold, on goroutines of their
// own. What it returns ends that, after a last reading.
func (s *Session) runCounters() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.counters.history.Run(ctx) })
	sampler := s.counters.sampler
	if sampler == nil {
		return func() {
			cancel()
			running.Wait()
		}
	}
	running.Go(func() {
		sampler.Run(ctx, s.options.Counters, func(readings []Counter) {
			s.do(func(d *decode.Decoder) { keepReadings(d, readings) })
		})
	})
	return func() {
		cancel()
		running.Wait()
		for _, f := range sampler.Failures() {
			s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "counter", Source: f.Source, Count: f.Count, Detail: f.Err.Error()})
		}
	}
}
