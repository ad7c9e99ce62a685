package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
)

// treatment is one thing that is done to a running job for a while.
type treatment struct {
	name   string
	window time.Duration // how long it is measured
	settle time.Duration // how long after its start that begins
	start  func() error
	stop   func() error
	// counts is nil where nobody counts.
	counts func() (tracer.TrialCounts, error)
	// cpu is the processor time of who does it, seconds; nil: this process.
	cpu func() (float64, error)
}

// window is one measured interval of a job.
type window struct {
	from, to int64
	waited   [2]int64           // of it the job and its twin waited for the core, nanoseconds
	counted  tracer.TrialCounts // in it
	cpu      float64            // seconds of the tracer
}

func (w window) seconds() float64 { return float64(w.to-w.from) / 1e9 }

// pair is a window under a treatment and the untreated ones around it.
type pair struct{ before, on, after window }

// comparison is what the pairs of one treatment say.
type comparison struct {
	name  string
	pairs []pair
	stops []float64 // milliseconds that ending the treatment took

	off, on          float64 // median step, nanoseconds
	share            estimate
	meanShare        estimate
	cpu, meanCPU     estimate // the same of CPU time
	difference       estimate // nanoseconds a step
	cpuDifference    estimate
	calls, traps     float64 // a step
	trapRate, rate   float64 // a second: hits, calls
	lost             uint64
	cpuShare, cpuRow float64 // of a core; nanoseconds a record
}

// interleave measures treatments in turn, each between two untreated windows,
// so that what drifts in the machine is in both sides of a difference.
func interleave(j *job, rounds int, off time.Duration, treatments []treatment) ([]*comparison, error) {
	comparisons := make([]*comparison, len(treatments))
	for i, t := range treatments {
		comparisons[i] = &comparison{name: t.name}
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
			comparisons[i].pairs = append(comparisons[i].pairs, pair{before, on, after})
			comparisons[i].stops = append(comparisons[i].stops, stopped)
			before = after
		}
		say("  round %d of %d", round+1, rounds)
	}
	return comparisons, nil
}

func rest(j *job, length time.Duration) (w window, err error) {
	runtime.GC()
	err = w.open(j, length)
	return w, err
}

// open is the window, for so long.
func (w *window) open(j *job, length time.Duration) error {
	before, err := j.coreWaits()
	if err != nil {
		return err
	}
	w.from = monotonic()
	time.Sleep(length)
	w.to = monotonic()
	after, err := j.coreWaits()
	for i := range after {
		w.waited[i] = after[i] - before[i]
	}
	return err
}

func treat(j *job, t treatment) (w window, stopped float64, err error) {
	if err := t.start(); err != nil {
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
			return cpuTime()
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
	w.counted = tracer.TrialCounts{
		Calls: last.Calls - first.Calls, Traps: last.Traps - first.Traps,
		Records: last.Records - first.Records, Lost: last.Lost - first.Lost,
	}
	begin := time.Now()
	err = t.stop()
	return w, float64(time.Since(begin)) / 1e6, err
}

// judge compares the steps of the windows. With a twin, the shares are of the
// job's steps over the twin's.
func (c *comparison) judge(jobs against) {
	all := jobs.own
	var off, on, shares, means, differences, cpus, meanCPUs, cpuDifferences []float64
	var records, seconds, cpu float64
	var count float64 // steps, parts of one too
	for _, p := range c.pairs {
		a, x, b := all.in(p.before.from, p.before.to), all.in(p.on.from, p.on.to), all.in(p.after.from, p.after.to)
		if len(a) == 0 || len(x) == 0 || len(b) == 0 {
			continue
		}
		base, meanBase := (a.median()+b.median())/2, (a.mean()+b.mean())/2
		off, on = append(off, base), append(on, x.median())
		differences = append(differences, x.median()-base)
		if jobs.twin == nil {
			shares = append(shares, x.median()/base-1)
			means = append(means, x.mean()/meanBase-1)
		} else {
			shares = append(shares, 2*jobs.median(p.on)/(jobs.median(p.before)+jobs.median(p.after))-1)
			means = append(means, 2*jobs.mean(p.on)/(jobs.mean(p.before)+jobs.mean(p.after))-1)
		}
		baseCPU, meanBaseCPU := (a.medianCPU()+b.medianCPU())/2, (a.meanCPU()+b.meanCPU())/2
		cpus, cpuDifferences = append(cpus, x.medianCPU()/baseCPU-1), append(cpuDifferences, x.medianCPU()-baseCPU)
		meanCPUs = append(meanCPUs, x.meanCPU()/meanBaseCPU-1)
		c.calls += float64(p.on.counted.Calls)
		c.traps += float64(p.on.counted.Traps)
		c.lost += p.on.counted.Lost
		records += float64(p.on.counted.Records)
		seconds += p.on.seconds()
		cpu += p.on.cpu
		count += p.on.seconds() * 1e9 / x.mean()
	}
	c.off, c.on = median(off), median(on)
	c.share, c.meanShare, c.difference = estimateOf(shares), estimateOf(means), estimateOf(differences)
	c.cpu, c.meanCPU, c.cpuDifference = estimateOf(cpus), estimateOf(meanCPUs), estimateOf(cpuDifferences)
	c.trapRate, c.rate = c.traps/seconds, c.calls/seconds
	c.calls, c.traps = c.calls/max(1, count), c.traps/max(1, count)
	c.cpuShare, c.cpuRow = cpu/seconds, cpu*1e9/max(1, records)
}

// String is the comparison in a line, for the log.
func (c *comparison) String() string {
	line := "step " + c.share.percent() + ", mean " + c.meanShare.percent() + ", CPU " + c.cpu.percent()
	if c.calls > 0 {
		line += fmt.Sprintf(", %.0f calls a step, %.0f hits/s, %.2f µs a call", c.calls, c.trapRate, c.difference.median/c.calls/1e3)
	}
	return line
}

// nothing is the treatment of an A/A pair.
func nothing(w time.Duration) treatment {
	return treatment{name: aa, window: w, settle: 250 * time.Millisecond, start: func() error { return nil }, stop: func() error { return nil }}
}

const aa = "nothing (A/A)"

// trial is a treatment with probes that stay loaded and planned from one window
// to the next; only attaching and detaching lie between.
func trial(name string, w time.Duration, t *probed) treatment {
	return treatment{
		name: name, window: w, settle: 250 * time.Millisecond,
		start:  t.Attach,
		stop:   t.Detach,
		counts: t.Counts,
	}
}

// profiler is torch.profiler inside the job.
func profiler(name string, w time.Duration, j *job, kind string) treatment {
	return treatment{
		name: name, window: w, settle: 100 * time.Millisecond,
		start: func() error { return j.tell("profile " + kind) },
		stop:  func() error { return j.tell("profile off") },
	}
}

// session is the tracer as `ebpfprof attach` runs it, started and ended for
// each window.
func session(name string, w, settle time.Duration, options tracer.Options) treatment {
	var s *tracer.Session
	var sink *scratch
	var cancel context.CancelFunc
	done := make(chan error, 1)
	return treatment{
		name: name, window: w, settle: settle,
		start: func() (err error) {
			if sink, err = newScratch(); err != nil {
				return err
			}
			if s, err = tracer.Open(options, sink); err != nil {
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
			sink.remove()
			return err
		},
		counts: func() (tracer.TrialCounts, error) {
			stats := s.Stats()
			return tracer.TrialCounts{Records: stats.Spans + stats.Memory}, nil
		},
	}
}

// scratch is a dataset that nobody keeps.
type scratch struct {
	*output.Dataset
	dir string
}

func newScratch() (*scratch, error) {
	dir, err := os.MkdirTemp("", "ebpfprof-bench-")
	if err != nil {
		return nil, err
	}
	d, err := output.Create(filepath.Join(dir, "dataset"), output.Options{})
	if err != nil {
		return nil, err
	}
	return &scratch{d, dir}, d.Session(tracer.Recording{ID: "bench", StartedNS: time.Now().UnixNano()})
}

func (s *scratch) remove() {
	s.Dataset.Close()
	os.RemoveAll(s.dir)
}

// probed is a running job's probes and where their rows go.
type probed struct {
	*tracer.Trial
	sink  *scratch
	ended bool
}

// probe plans a running job's probes, of the groups named or of all.
func probe(j *job, groups ...string) (*probed, error) {
	return probeWith(tracer.Options{PIDs: []int{j.pid}, Filter: filter.OfGroups(groups...), Level: tracer.LevelWindow, Follow: true})
}

// probeLines is probe with the Python line behind every call, which comes with stacks.
// No wait is as long as would be recorded.
func probeLines(j *job, groups ...string) (*probed, error) {
	return probeWith(tracer.Options{PIDs: []int{j.pid}, Filter: filter.OfGroups(groups...), Level: tracer.LevelWindow, Follow: true, OffCPU: 24 * time.Hour})
}

func probeWith(options tracer.Options) (*probed, error) {
	sink, err := newScratch()
	if err != nil {
		return nil, err
	}
	t, err := tracer.OpenTrial(options, sink)
	if err != nil {
		sink.remove()
		return nil, err
	}
	return &probed{t, sink, false}, nil
}

// end closes the dataset and reports how many bytes a span takes in it.
func (p *probed) end() float64 {
	if p.ended {
		return 0
	}
	p.ended = true
	counts, _ := p.Counts()
	p.Trial.Close()
	p.sink.Dataset.Close()
	bytes := tableBytes(filepath.Join(p.sink.dir, "dataset", "span"))
	p.sink.remove()
	return float64(bytes) / float64(max(1, counts.Records))
}
