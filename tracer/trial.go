package tracer

import (
	"context"
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// A Trial records running processes with probes that the caller puts in and
// out: for measuring what they cost. To record a job, use a Session.
type Trial struct {
	session *Session
	calls   *kernel.CallRing
	stop    chan struct{}
	decoded chan error
	chosen  []uint32 // nil: all
	sites   int
}

// OpenTrial plans the probes of the processes and puts none in; what the
// options say about a budget does not count. The errors are those of Open.
func OpenTrial(ctx context.Context, options Options, sink Sink) (*Trial, error) {
	options.Budget = Unlimited
	s, err := Open(ctx, options, sink)
	if err != nil {
		return nil, err
	}
	s.detachAll()
	calls, err := s.kernel.OpenCallRing()
	if err != nil {
		s.Close()
		return nil, err
	}
	t := &Trial{session: s, calls: calls, stop: make(chan struct{}), decoded: make(chan error, 1)}
	go func() { t.decoded <- s.decode(decode.Rings{Calls: calls, CallBytes: s.options.BufferBytes}, t.stop) }()
	return t, nil
}

// Choose says which probes the next Attach puts in: all, or those that the
// processes are known to have used.
func (t *Trial) Choose(used bool) {
	t.chosen = nil
	if used {
		governed := t.session.probes.Governed()
		governed.Learn()
		t.chosen = governed.InUse()
	}
}

// Attach puts the chosen probes in, and those that are always on.
func (t *Trial) Attach() error {
	s := t.session
	if err := s.kernel.SetDetail(false); err != nil {
		return err
	}
	if err := s.probes.AttachAnchors(); err != nil {
		return err
	}
	governed, chosen := s.probes.Governed(), t.chosen
	if chosen == nil {
		chosen = governed.Sliced()
	}
	if err := governed.Attach(chosen); err != nil {
		return err
	}
	t.sites = s.probes.Sites()
	return s.kernel.SetDetail(true)
}

// PrepareRemoval returns when a Detach can act at once. A Session calls it at the end
// of each slice, while that still records.
func (t *Trial) PrepareRemoval() { t.session.kernel.PrepareRemoval() }

// Detach takes the probes out.
func (t *Trial) Detach() error {
	s := t.session
	if err := s.kernel.SetDetail(false); err != nil {
		return err
	}
	s.detachAll()
	return s.governor.NextEpoch()
}

// TrialCounts are the hits of all probes since the Trial was opened.
type TrialCounts struct {
	Calls   uint64 // entries that were recorded
	Traps   uint64 // every hit that the job paid for
	Records uint64 // spans and events that were decoded
	Lost    uint64
}

// Counts reads the counters of every probe.
func (t *Trial) Counts() (c TrialCounts, err error) {
	for _, p := range t.session.probes.All() {
		n, err := t.session.kernel.Count(p.Index)
		if err != nil {
			return c, err
		}
		c.Calls += n.Entries
		c.Traps += n.Entries + n.Exits + n.Passed
		c.Lost += n.Lost
	}
	stats := t.session.Stats()
	c.Records = stats.Spans + stats.Memory
	return c, nil
}

// Sites is how many places the last Attach put a probe at.
func (t *Trial) Sites() int { return t.sites }

// Close takes everything out and hands the last rows to the sink.
func (t *Trial) Close() error {
	t.session.detachAll()
	close(t.stop)
	err := <-t.decoded
	t.calls.Close()
	t.session.Close()
	return err
}

// HitCost is what one hit costs this machine's processes, in a loop, by the
// class of the site: nop5, emulated, stepped; and "emulated, cold", when the
// process has used the caches in between.
func HitCost() (map[string]time.Duration, error) {
	if err := features.CheckPermitted(); err != nil {
		return nil, err
	}
	k, err := kernel.Load(kernel.Sizes{Ring: 1 << 20}, features.Probe())
	if err != nil {
		return nil, err
	}
	defer k.Close()
	cost, err := kernel.MeasureHits(k)
	if err != nil {
		return nil, err
	}
	costs := map[string]time.Duration{}
	for class, ns := range cost.Warm {
		costs[site.Cost(class).String()] = time.Duration(ns)
	}
	costs["emulated, cold"] = time.Duration(cost.Warm[site.CostEmulated] + cost.Cold)
	return costs, nil
}

// ProgramCost is what one run of a program has cost so far, its trap left out.
type ProgramCost struct {
	Runs   uint64
	PerRun time.Duration
}

// ProgramCosts reads the kernel's own statistics of the probe programs, by
// name; they are kept only while ebpf.EnableStats is on (Linux 5.8).
func (t *Trial) ProgramCosts() (map[string]ProgramCost, error) {
	costs := map[string]ProgramCost{}
	programs, err := t.session.kernel.CallPrograms()
	if err != nil {
		return nil, err
	}
	for name, p := range programs {
		stats, err := p.Stats()
		if err != nil {
			return nil, fmt.Errorf("reading the statistics of %s: %w", name, err)
		}
		if stats.RunCount > 0 {
			costs[name] = ProgramCost{stats.RunCount, stats.Runtime / time.Duration(stats.RunCount)}
		}
	}
	return costs, nil
}
