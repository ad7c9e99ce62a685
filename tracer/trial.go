package tracer

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// A Trial records running processes with probes that the caller puts in and
// out: for measuring what they cost. To record a job, use a Session.
type Trial struct {
	session *Session
	calls   *callRing
	stop    chan struct{}
	decoded chan error
	chosen  map[*tracedFile][]int // nil: all
	sites   int
}

// OpenTrial plans the probes of the processes and puts none in; what the
// options say about a budget does not count. The errors are those of Open.
func OpenTrial(options Options, sink Sink) (*Trial, error) {
	options.Budget = Unlimited
	s, err := Open(options, sink)
	if err != nil {
		return nil, err
	}
	s.detachAll()
	calls, err := openCallRing(s.kernel.call.Maps["calls"])
	if err != nil {
		s.Close()
		return nil, err
	}
	t := &Trial{session: s, calls: calls, stop: make(chan struct{}), decoded: make(chan error, 1)}
	go func() { t.decoded <- s.decode(calls, t.stop) }()
	return t, nil
}

// Choose says which probes the next Attach puts in: all, or those that the
// processes are known to have used.
func (t *Trial) Choose(used bool) {
	t.chosen = nil
	if used {
		t.session.learnUsed()
		t.chosen = t.session.usedDetail()
	}
}

// Attach puts the chosen probes in, and those that are always on.
func (t *Trial) Attach() error {
	s := t.session
	if err := s.kernel.setDetail(false); err != nil {
		return err
	}
	for _, f := range s.files {
		if err := s.attachAnchors(f); err != nil {
			return err
		}
	}
	if err := s.attachDetail(t.chosen); err != nil {
		return err
	}
	t.sites = 0
	for _, f := range s.files {
		for _, tier := range f.tiers() {
			for _, set := range tier {
				t.sites += set.sites
			}
		}
	}
	return s.kernel.setDetail(true)
}

// Hasten returns when a Detach can act at once. A Session calls it at the end
// of each slice, while that still records.
func (t *Trial) Hasten() { t.session.kernel.hasten() }

// Detach takes the probes out.
func (t *Trial) Detach() error {
	s := t.session
	if err := s.kernel.setDetail(false); err != nil {
		return err
	}
	s.detachAll()
	s.governor.epoch++
	return s.kernel.setEpoch(s.governor.epoch)
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
	for _, p := range t.session.probes.all() {
		n, err := t.session.kernel.count(p.index)
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
	t.calls.close()
	t.session.Close()
	return err
}

// HitCost is what one hit costs this machine's processes, in a loop, by the
// class of the site: nop5, emulated, stepped; and "emulated, cold", when the
// process has used the caches in between.
func HitCost() (map[string]time.Duration, error) {
	if err := CheckPermitted(); err != nil {
		return nil, err
	}
	k, err := loadKernel(kernelSizes{ring: 1 << 20}, ProbeFeatures())
	if err != nil {
		return nil, err
	}
	defer k.Close()
	cost, err := measureHits(k)
	if err != nil {
		return nil, err
	}
	costs := map[string]time.Duration{}
	for class, ns := range cost.warm {
		costs[site.Cost(class).String()] = time.Duration(ns)
	}
	costs["emulated, cold"] = time.Duration(cost.warm[site.CostEmulated] + cost.cold)
	return costs, nil
}

// A Replay decodes records that the caller made as the kernel makes them, one
// probe for each of the calls: for measuring what that costs.
type Replay struct{ decoder *decoder }

// NewReplay makes one; probe n is calls[n], an operator without arguments.
func NewReplay(sink Sink, calls []*Call) (*Replay, error) {
	plan := &Plan{Path: "replay"}
	group := &catalog.Group{Name: "op", Tier: catalog.Detail}
	for _, call := range calls {
		plan.Probes = append(plan.Probes, PlannedProbe{Group: group, Function: &catalog.Function{Layer: call.Layer, Action: catalog.Span}, Call: call})
	}
	probes := &probeTable{}
	if _, err := probes.add(&tracedFile{plan: plan}); err != nil {
		return nil, err
	}
	return &Replay{newDecoder(sink, probes, newClasses(), 0)}, nil
}

// Record decodes one record, 8-byte aligned, and now and then hands a batch to
// the sink, as the reader of the ring does.
func (r *Replay) Record(raw []byte) error {
	d := r.decoder
	d.record(raw)
	if len(d.spans)+len(d.memory) >= batchRows {
		return d.flush()
	}
	return d.failed
}

// Flush hands the rest to the sink and reports how many spans there were, and
// how many records did not decode.
func (r *Replay) Flush() (spans, damaged uint64, err error) {
	err = r.decoder.flush()
	return r.decoder.totals.Spans, r.decoder.damaged, err
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
	for name, p := range t.session.kernel.call.Programs {
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
