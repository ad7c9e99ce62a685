// Package paired compares a running job under a treatment with itself before and after.
package paired

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/recording"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/tracer"
)

// Treatment is one thing that is done to a running job for a while.
type Treatment struct {
	name   string
	window time.Duration // how long it is measured
	settle time.Duration // how long after its start that begins
	Start  func() error
	stop   func() error
	// counts is nil where nothing is counted.
	counts func() (tracer.TrialCounts, error)
	// cpu is the processor time of who does it, seconds; nil: this process.
	cpu func() (float64, error)
}

// window is one measured interval of a job.
type window struct {
	from, to int64
	waited   [2]int64           // of it the job and its twin waited for the core, nanoseconds
	Counted  tracer.TrialCounts // in it
	cpu      float64            // seconds of the tracer
}

func (w window) Seconds() float64 { return float64(w.to-w.from) / 1e9 }

// pair is a window under a treatment and the untreated ones around it.
type pair struct{ before, On, after window }

// interleave measures treatments in turn, each between two untreated windows,
// so that what drifts in the machine is in both sides of a difference.
func interleave(j *Job, rounds int, off time.Duration, treatments []Treatment) ([]*Comparison, error) {
	comparisons := make([]*Comparison, len(treatments))
	for i, t := range treatments {
		comparisons[i] = &Comparison{Name: t.name}
	}
	before, err := rest(j, off)
	if err != nil {
		return nil, err
	}
	for round := range rounds {
		for i, t := range treatments {
			on, stopped, err := treat(j, t)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			time.Sleep(100 * time.Millisecond)
			after, err := rest(j, off)
			if err != nil {
				return nil, err
			}
			comparisons[i].Pairs = append(comparisons[i].Pairs, pair{before, on, after})
			comparisons[i].Stops = append(comparisons[i].Stops, stopped)
			before = after
		}
		setup.Say("  round %d of %d", round+1, rounds)
	}
	return comparisons, nil
}

func rest(j *Job, length time.Duration) (w window, err error) {
	runtime.GC()
	err = w.open(j, length)
	return w, err
}

// open is the window, for so long.
func (w *window) open(j *Job, length time.Duration) error {
	before, err := j.coreWaits()
	if err != nil {
		return err
	}
	w.from = setup.Monotonic()
	time.Sleep(length)
	w.to = setup.Monotonic()
	after, err := j.coreWaits()
	for i := range after {
		w.waited[i] = after[i] - before[i]
	}
	return err
}

func treat(j *Job, t Treatment) (w window, stopped float64, err error) {
	if err := t.Start(); err != nil {
		return w, 0, err
	}
	time.Sleep(t.settle)
	counts := func() (c tracer.TrialCounts) {
		if t.counts != nil && err == nil {
			c, err = t.counts()
		}
		return c
	}
	used := func() (seconds float64) {
		if t.cpu == nil {
			return setup.CPUTime()
		}
		if err == nil {
			seconds, err = t.cpu()
		}
		return seconds
	}
	first := counts()
	cpu := used()
	if waitErr := w.open(j, t.window); err == nil {
		err = waitErr
	}
	w.cpu = used() - cpu
	last := counts()
	if err != nil {
		return w, 0, err
	}
	w.Counted = tracer.TrialCounts{
		Calls: last.Calls - first.Calls, Traps: last.Traps - first.Traps,
		Records: last.Records - first.Records, Lost: last.Lost - first.Lost,
	}
	begin := time.Now()
	err = t.stop()
	return w, float64(time.Since(begin)) / 1e6, err
}

// Nothing is the treatment of an A/A pair.
func Nothing(w time.Duration) Treatment {
	return Treatment{name: AA, window: w, settle: 250 * time.Millisecond, Start: func() error { return nil },
		stop: func() error { return nil }}
}

const AA = "nothing (A/A)"

// Trial is a treatment with probes that stay loaded and planned from one window
// to the next; only attaching and detaching lie between.
func Trial(name string, w time.Duration, t *recording.Probed) Treatment {
	return Treatment{
		name: name, window: w, settle: 250 * time.Millisecond,
		Start:  t.Attach,
		stop:   t.Detach,
		counts: t.Counts,
	}
}

// Profiler is torch.profiler inside the job.
func Profiler(name string, w time.Duration, j *Job, kind string) Treatment {
	return Treatment{
		name: name, window: w, settle: 100 * time.Millisecond,
		Start: func() error { return j.tell("profile " + kind) },
		stop:  func() error { return j.tell("profile off") },
	}
}

// Session is the tracer as `ebpfprof attach` runs it, started and ended for
// each window.
func Session(name string, w, settle time.Duration, options tracer.Options) Treatment {
	var s *tracer.Session
	var sink *recording.Scratch
	var cancel context.CancelFunc
	done := make(chan error, 1)
	return Treatment{
		name: name, window: w, settle: settle,
		Start: func() (err error) {
			if sink, err = recording.NewScratch(); err != nil {
				return err
			}
			if s, err = tracer.Open(context.Background(), options, sink); err != nil {
				return err
			}
			var ctx context.Context
			ctx, cancel = context.WithCancel(context.Background())
			go func() { done <- s.Run(ctx) }()
			return nil
		},
		stop: func() error {
			cancel()
			err := <-done
			s.Close()
			sink.Remove()
			return err
		},
		counts: func() (tracer.TrialCounts, error) {
			stats := s.Stats()
			return tracer.TrialCounts{Records: stats.Spans + stats.Memory}, nil
		},
	}
}
