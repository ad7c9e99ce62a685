package tracer

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/counter"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
)

// openCounters looks for what can be counted; nil if no counters are wanted.
func openCounters(every time.Duration, offsetNS int64) *counter.Sampler {
	if every <= 0 {
		return nil
	}
	return counter.Open(counter.Options{Clock: func() int64 { return monotonic() + offsetNS }})
}

// monotonic is the clock that the kernel stamps records with.
func monotonic() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// runCounters reads the counters on a goroutine of its own. What it returns
// ends that, after a last reading.
func runCounters(s *Session) (stop func()) {
	if s.counters == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.counters.Run(ctx, s.options.Counters, func(readings []Counter) {
			s.do(func(d *decode.Decoder) {
				d.Rows.Out.Keep(d.Rows.Out.Counters(readings))
				d.Rows.Sums.Totals.Counters += uint64(len(readings))
			})
		})
	}()
	return func() {
		cancel()
		<-done
		for _, f := range s.counters.Failures() {
			s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "counter", Source: f.Source, Count: f.Count, Detail: f.Err.Error()})
		}
	}
}
