package pattern

import (
	"cmp"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// The limits that keep a collector's memory from depending on the job.
const (
	mostWorkers   = 256  // processes; a node has eight ranks and their loader workers
	mostFunctions = 2048 // of one worker in one window
	mostThreads   = 1024 // of one worker whose calls steps are made of
	slot          = 1e9  // ns: over how long Mu and Sigma are one value
	mostSlots     = 600
)

// Lost counts what a limit turned away.
type Lost struct {
	Workers   int64 // events of processes above the limit
	Functions int64 // looks and waits whose function is not told apart: they count as "other functions"
	Stacks    int64 // looks and waits whose stack was no longer there
}

// Collector takes the events of one recording and makes the patterns of one window
// after the other. It implements event.Sink; calls come from one goroutine.
type Collector struct {
	// Waited is called with each wait of a thread, with the class of what waited; nil is
	// told nothing.
	Waited func(s *event.Sample, class Class)

	period  int64 // ns between looks at a running thread
	stacks  recognised
	workers map[int32]*worker
	// Of the node, in the window: what counters showed.
	readings map[reading]*readings
	lost     Lost
}

// New makes a collector of a recording that looks so many times a second.
func New(frequency int64) *Collector {
	c := &Collector{stacks: newRecognised(), workers: map[int32]*worker{}, readings: map[reading]*readings{}}
	if frequency > 0 {
		c.period = int64(1e9) / frequency
	}
	return c
}

// Lost is what the limits have turned away so far.
func (c *Collector) Lost() Lost { return c.lost }

// worker is a process that may train: what its threads did in the window.
type worker struct {
	rank     int32
	ended    bool   // nothing more will come than what is still on its way
	cgroup   string // its path; "" is not known
	device   *int32 // that it is at work on, as the driver numbers them; nil is not known
	machine  machine
	anchors  map[int32]int64 // by thread: calls that steps are made of
	threads  map[int32]*thread
	calls    map[*event.Call]*calls
	kernels  map[kernel]*deviceTime
	from, to int64
}

// thread is what one thread did in the window.
type thread struct {
	functions map[uint64]*usage
	total     int64
	off       times // it was not on a CPU
	stopped   usage
}

// usage is one function's.
type usage struct {
	function
	onCPU, looks       int64
	wait, waits        int64
	preempted, stopped int64
	durations          histogram
	waiting            map[string]int64 // by system call
	places             map[place]int64
	slots              []share
}

// share is what a function took of a slot.
type share struct{ total, onCPU float64 }

// calls is what a probe saw of one kind of call.
type calls struct {
	durations histogram
	bytes     int64
	square    float64 // Σ bytes²/duration, for the spread of the throughput
	sliced    bool    // some were recorded in slices, and most were not: they tell no share of the time
	union     int64   // the time in which at least one of them ran
	until     int64
}

// Write implements event.Sink.
func (c *Collector) Write(b *event.Batch) error {
	for i := range b.Processes {
		c.addProcess(b.Processes[i])
	}
	c.addStacks(b.Stacks)
	c.addSamples(b.Samples)
	c.addSpans(b.Spans)
	c.addCounters(b.Counters)
	return nil
}

func (c *Collector) addStacks(stacks []event.Stack) {
	for i := range stacks {
		c.stacks.add(&stacks[i])
	}
}

// addProcess notes a worker's rank.
func (c *Collector) addProcess(p event.Process) {
	w := c.worker(p.PID)
	if w != nil && p.Rank != nil {
		w.rank = *p.Rank
	}
	if w != nil && p.Cgroup != nil && *p.Cgroup != "/" {
		w.cgroup = *p.Cgroup
	}
	if w != nil {
		w.ended = p.EndedNS != nil
	}
}

func (c *Collector) worker(pid int32) *worker {
	w := c.workers[pid]
	if w == nil {
		if len(c.workers) >= mostWorkers {
			c.makeRoom()
		}
		if len(c.workers) >= mostWorkers {
			c.lost.Workers++
			return nil
		}
		w = &worker{rank: -1, anchors: map[int32]int64{}, threads: map[int32]*thread{}, calls: map[*event.Call]*calls{}, from: math.MaxInt64}
		c.workers[pid] = w
	}
	return w
}

// makeRoom forgets processes that make no steps and of which this window has nothing: the
// last looks at one may be read after its end.
func (c *Collector) makeRoom() {
	for pid, w := range c.workers {
		if len(w.anchors) == 0 && len(w.threads) == 0 {
			delete(c.workers, pid)
		}
	}
}

func (c *Collector) addSamples(samples []event.Sample) {
	for i := range samples {
		c.sample(&samples[i])
	}
}

func (c *Collector) sample(s *event.Sample) {
	w := c.worker(s.PID)
	if w == nil {
		return
	}
	w.machine.saw(s)
	t := w.threads[s.TID]
	if t == nil {
		if s.TID != s.PID && w.anchors[s.TID] == 0 {
			return // a thread that makes no steps
		}
		t = &thread{functions: map[uint64]*usage{}}
		w.threads[s.TID] = t
	}
	w.from, w.to = min(w.from, s.TSNS), max(w.to, s.TSNS+s.WeightNS)
	f := c.function(s)
	u := t.functions[f.key]
	if u == nil {
		if len(t.functions) >= mostFunctions {
			c.lost.Functions++
			f = function{class: Other, name: otherFunctions}
			f.hash()
		}
		if u = t.functions[f.key]; u == nil {
			u = &usage{function: f}
			t.functions[f.key] = u
		}
	}
	if c.Waited != nil && s.State == event.OffCPU && s.Cause != event.CausePreempted {
		c.Waited(s, f.class)
	}
	t.total += s.WeightNS
	u.add(s, &f, w.from)
	if s.State == event.OffCPU {
		t.offCPU(s, &w.machine, w.from)
	}
}

func (c *Collector) function(s *event.Sample) function {
	var known *function
	if s.StackID != nil {
		known = c.stacks.of(*s.StackID, s.InGC != nil && *s.InGC)
	}
	if known == nil {
		c.lost.Stacks++
		f := function{class: Other, name: withoutStack}
		f.hash()
		return f
	}
	f := *known
	if f.class == Python && s.State == event.OffCPU && ioCalls[s.Syscall] && s.Cause == event.CauseSyscall {
		f.class = IO
		f.hash()
	}
	return f
}

func (u *usage) add(s *event.Sample, f *function, from int64) {
	k := int((s.TSNS - from) / slot)
	k = min(max(k, 0), mostSlots-1)
	for len(u.slots) <= k {
		u.slots = append(u.slots, share{})
	}
	u.slots[k].total += float64(s.WeightNS)
	if f.line > 0 {
		u.at(place{f.stack, f.file, f.line}, s.WeightNS)
	}
	if s.State == event.OnCPU {
		u.onCPU += s.WeightNS
		u.looks++
		u.slots[k].onCPU += float64(s.WeightNS)
		return
	}
	u.wait += s.WeightNS
	u.waits++
	u.durations.add(s.WeightNS)
	switch s.Cause {
	case event.CausePreempted:
		u.preempted += s.WeightNS
		return
	case event.CauseStopped:
		u.stopped += s.WeightNS
		return
	}
	if s.Syscall != "" {
		if u.waiting == nil {
			u.waiting = map[string]int64{}
		}
		u.waiting[s.Syscall] += s.WeightNS // system calls have few hundred names
	}
}

// addSpans takes spans. Of calls it takes those that are recorded always:
// what steps are made of, and collectives. Where the budget has such a call in slices, its
// function has no pattern, and the call tells whose steps they are all the same.
func (c *Collector) addSpans(spans []event.Span) {
	for i := range spans {
		s := &spans[i]
		anchor, counted := interesting(s.Call)
		if !anchor && !counted && s.Detail == nil {
			continue
		}
		w := c.worker(s.PID)
		if w == nil {
			continue
		}
		w.ran(s, &c.lost)
		if anchor {
			w.anchor(s.TID)
		}
		if !counted || s.DurationNS < 0 {
			continue
		}
		k := w.calls[s.Call]
		if k == nil {
			if len(w.calls) >= mostFunctions {
				c.lost.Functions++
				continue
			}
			k = &calls{}
			w.calls[s.Call] = k
		}
		k.sliced = k.sliced || s.SliceID != 0
		k.durations.add(s.DurationNS)
		end := s.StartNS + s.DurationNS
		k.union += max(0, end-max(s.StartNS, k.until))
		k.until = max(k.until, end)
		if s.Detail != nil && s.Detail.Bytes != nil {
			k.bytes += *s.Detail.Bytes
			if s.DurationNS > 0 {
				k.square += float64(*s.Detail.Bytes) * float64(*s.Detail.Bytes) / float64(s.DurationNS)
			}
		}
	}
}

// interesting says whether a call is one that steps are made of, and whether its
// duration becomes a pattern of its own.
func interesting(call *event.Call) (anchor, counted bool) {
	switch call.Layer {
	case "scope":
		return call.Category != "function", true
	case "autograd":
		return call.Category == "backward", call.Category == "backward"
	case "collective":
		// The library's own threads run it, and a wait for it is no part of a step's sequence.
		return call.Category != "work" && call.Category != "wait", call.Category != "wait"
	case "runtime":
		return call.Category == "launch" && (call.Runtime == "pjrt" || call.Runtime == "neuron"), false
	}
	return false, false
}

// Flush returns the patterns of what was seen since the last Flush, of workers that
// make steps, in order of pid and falling share, and begins a new window.
func (c *Collector) Flush() (all []Pattern) {
	pids := make([]int32, 0, len(c.workers))
	for pid := range c.workers {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	for _, pid := range pids {
		w := c.workers[pid]
		all = append(all, c.patterns(pid, w)...)
		if w.ended {
			delete(c.workers, pid)
			continue
		}
		c.workers[pid] = &worker{rank: w.rank, cgroup: w.cgroup, device: w.device, anchors: w.anchors, threads: map[int32]*thread{},
			calls: map[*event.Call]*calls{}, from: math.MaxInt64}
	}
	clear(c.readings)
	return all
}

// anchor counts a call that steps are made of. Threads come and go: above the limit those
// that are not sampled in this window go.
func (w *worker) anchor(tid int32) {
	if _, known := w.anchors[tid]; !known && len(w.anchors) >= mostThreads {
		for other := range w.anchors {
			if w.threads[other] == nil {
				delete(w.anchors, other)
			}
		}
		if len(w.anchors) >= mostThreads {
			return
		}
	}
	w.anchors[tid]++
}

// training is the thread that makes the steps: the one with the most anchors.
func (w *worker) training() (tid int32, ok bool) {
	best := int64(0)
	for id, n := range w.anchors {
		if w.threads[id] != nil && (n > best || n == best && id < tid) {
			tid, best, ok = id, n, true
		}
	}
	return tid, ok
}

func (c *Collector) patterns(pid int32, w *worker) (all []Pattern) {
	tid, ok := w.training()
	if !ok || w.to <= w.from {
		return nil
	}
	t := w.threads[tid]
	observed := w.to - w.from
	base := Pattern{PID: pid, Rank: w.rank, BeginNS: w.from, EndNS: w.to, ObservedNS: observed,
		Coverage: float64(t.total) / float64(observed)}
	for _, u := range t.functions {
		all = append(all, u.pattern(base, c.period))
	}
	if t.stopped.waits > 0 {
		t.stopped.function = function{class: Host, name: "stopped"}
		t.stopped.hash()
		all = append(all, t.stopped.pattern(base, c.period))
	}
	all = append(all, w.machine.patterns(base, t)...)
	all = append(all, w.devicePatterns(base)...)
	all = append(all, c.counterPatterns(base, w)...)
	for call, k := range w.calls {
		if !k.sliced {
			all = append(all, k.pattern(base, call))
		}
	}
	slices.SortFunc(all, func(a, b Pattern) int {
		return cmp.Or(cmp.Compare(a.Basis, b.Basis)*-1, cmp.Compare(b.Beta, a.Beta), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Function,
			b.Function))
	})
	return all
}

func (u *usage) pattern(base Pattern, period int64) Pattern {
	p := base
	p.Function, p.Class, p.Name, p.Basis = u.key, u.class, u.name, Sampled
	p.Stack, p.File, p.Line = u.stack, u.file, 0
	if longest, ok := u.longest(); ok {
		p.Stack, p.File, p.Line = longest.stack, longest.file, longest.line
	}
	total := u.onCPU + u.wait
	p.Beta = float64(total) / float64(p.ObservedNS)
	// Looks at a running thread are a count: its 95 % interval, and at least one look.
	err := 1.96 * math.Sqrt(float64(max(u.looks, 1))) * float64(period) / float64(p.ObservedNS)
	p.BetaLo, p.BetaHi = max(float64(u.wait)/float64(p.ObservedNS), p.Beta-err), min(p.Beta+err, 1)
	p.Resource = "cpu"
	p.Mu, p.Sigma = u.steadiness()
	p.Count = u.looks + u.waits
	p.MeanNS, p.P99NS, p.LongestNS = u.durations.mean(), u.durations.quantile(0.99), u.durations.longest
	if total > 0 {
		p.Preempted, p.Stopped = float64(u.preempted)/float64(total), float64(u.stopped)/float64(total)
	}
	p.Wait = most(u.waiting)
	return p
}

// steadiness is the mean and spread of the share of its time that the function ran,
// over slots, weighed by its time in each.
func (u *usage) steadiness() (mu, sigma float64) {
	var total, on float64
	for _, s := range u.slots {
		total, on = total+s.total, on+s.onCPU
	}
	if total == 0 {
		return 0, 0
	}
	mu = on / total
	var square float64
	for _, s := range u.slots {
		if s.total > 0 {
			d := s.onCPU/s.total - mu
			square += s.total * d * d
		}
	}
	return mu, math.Sqrt(square / total)
}

func (k *calls) pattern(base Pattern, call *event.Call) Pattern {
	p := base
	f := function{class: Python, name: call.Name}
	switch {
	case call.Layer == "collective":
		f.class = Collective
	case loaderScope(call.Name):
		f.class = Loader
	case call.Layer == "autograd":
		f.class = Compute
	}
	if call.Layer == "collective" && call.Category != "" {
		f.name += " (" + call.Category + ")"
	}
	f.hash()
	p.Function, p.Class, p.Name, p.Basis = f.key, f.class, f.name, Counted
	p.Beta = float64(k.union) / float64(p.ObservedNS)
	p.BetaLo, p.BetaHi = p.Beta, p.Beta
	p.Resource = "bytes_per_second"
	if sum := float64(k.durations.sum); sum > 0 && k.bytes > 0 {
		p.Mu = float64(k.bytes) / sum * 1e9
		p.Sigma = math.Sqrt(max(0, k.square/sum*1e18-p.Mu*p.Mu))
	}
	p.Count = k.durations.count
	p.MeanNS, p.P99NS, p.LongestNS = k.durations.mean(), k.durations.quantile(0.99), k.durations.longest
	return p
}

// loaderScope is PyTorch's own scope around the loader's next.
func loaderScope(name string) bool {
	const prefix = "enumerate(DataLoader)#"
	return len(name) > len(prefix) && name[:len(prefix)] == prefix
}

// most is the key with the largest value, the least key of several.
func most[K cmp.Ordered](m map[K]int64) (best K) {
	var n int64
	for k, v := range m {
		if v > n || v == n && k < best {
			best, n = k, v
		}
	}
	return best
}
