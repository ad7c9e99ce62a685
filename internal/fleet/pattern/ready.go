package pattern

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What the machine did to a worker: its training thread could run and had no CPU, or it
// waited while another thread of its process had none. A collective that a library's own
// thread runs is late by what keeps that thread from running.

// bin is how finely it is known when a thread was where, in ns; the waits that are recorded
// last a millisecond at least.
const bin = 250_000

// mostBins bounds a window as mostSlots does.
const mostBins = int(mostSlots * slot / bin)

// times is a set of instants.
type times struct{ words []uint64 }

// add puts the time between two instants in, each rounded to a bin.
func (t *times) add(from, until int64) {
	first, end := max(0, (from+bin/2)/bin), min(int64(mostBins), (until+bin/2)/bin)
	for i := first; i < end; i++ {
		for int(i/64) >= len(t.words) {
			t.words = append(t.words, 0)
		}
		t.words[i/64] |= 1 << (i % 64)
	}
}

// slots are how much of each second both sets have, in ns.
func (t *times) with(o *times) (slots []share) {
	const words = slot / bin / 64 // of a slot
	for i := range min(len(t.words), len(o.words)) {
		k := int(float64(i) / words)
		for len(slots) <= k {
			slots = append(slots, share{})
		}
		slots[k].total += float64(bits.OnesCount64(t.words[i]&o.words[i])) * bin
	}
	return slots
}

// machine is what was seen of the machine's part in one window of a worker.
type machine struct {
	base      int64 // of the instants; 0: none yet
	ready     times // some thread of the process could run and had no CPU
	waits     int64
	durations histogram
	throttled []share // by second: what the quota of its control group took
	quota     bool    // it is known
	// periods are those of the quota, throttles in how many of them it was used up, and cpus what it
	// gives; 0 where that is not known.
	periods, throttles, cpus float64
}

// lead is how long before the first sample of a window one that comes later may have begun.
const lead = int64(slot)

func (m *machine) at(ns int64) int64 {
	if m.base == 0 {
		m.base = ns - lead
	}
	return ns - m.base
}

// saw takes a look at any thread of the process.
func (m *machine) saw(s *event.Sample) {
	begin := m.at(s.TSNS)
	if s.State != event.OffCPU || s.ReadyNS <= 0 {
		return
	}
	end := begin + s.WeightNS // what it had to wait for came first
	m.ready.add(end-s.ReadyNS, end)
	m.waits++
	m.durations.add(s.ReadyNS)
}

// offCPU takes a wait of a thread that may be the one that trains.
func (t *thread) offCPU(s *event.Sample, m *machine, from int64) {
	t.off.add(m.at(s.TSNS), m.at(s.TSNS+s.WeightNS))
	if s.Cause == event.CauseStopped {
		t.stopped.add(s, &function{}, from)
	}
}

// addCounters takes the quotas of control groups of them, and what tells hardware from software.
func (c *Collector) addCounters(counters []event.Counter) {
	for i := range counters {
		n := &counters[i]
		c.read(n)
		if !slices.Contains(QuotaCounters, n.Name) {
			continue
		}
		for pid, w := range c.workers {
			if n.PID != nil && *n.PID == pid || n.PID == nil && w.cgroup != "" && strings.HasSuffix(n.Scope, w.cgroup) {
				w.machine.count(n)
			}
		}
	}
}

const throttled = "cgroup_cpu_throttled"

// QuotaCounters are what is known of the quota of a control group.
var QuotaCounters = []string{throttled, QuotaThrottles, "cgroup_cpu_periods", QuotaCPUs}

// The rows of basis counters of a worker whose control group has a quota: the share of its periods in
// which it was used up, and how many CPUs it is.
const (
	QuotaThrottles = "cgroup_cpu_throttles"
	QuotaCPUs      = "cgroup_cpu_quota"
)

// count takes a counter of the worker's control group.
func (m *machine) count(n *event.Counter) {
	if math.IsNaN(n.Value) || math.IsInf(n.Value, 0) {
		return
	}
	switch n.Name {
	case throttled:
		m.throttle(n)
	case QuotaThrottles:
		m.throttles += n.Value
	case QuotaCPUs:
		m.cpus = n.Value / 100 // of percent
	default:
		m.periods += n.Value
	}
}

func (m *machine) throttle(n *event.Counter) {
	if m.quota = true; n.Value <= 0 {
		return
	}
	k := int(max(0, m.at(n.TSNS)) / slot)
	for len(m.throttled) <= min(k, mostSlots-1) {
		m.throttled = append(m.throttled, share{})
	}
	m.throttled[min(k, mostSlots-1)].total += n.Value
}

// patterns are what the machine did to the worker whose training thread is t.
func (m *machine) patterns(base Pattern, t *thread) (all []Pattern) {
	if m.waits > 0 {
		p := m.pattern(base, "preempted", m.ready.with(&t.off))
		p.Count, p.Preempted = m.waits, 1
		p.MeanNS, p.P99NS, p.LongestNS = m.durations.mean(), m.durations.quantile(0.99), m.durations.longest
		all = append(all, p)
	}
	if m.quota {
		all = append(all, m.pattern(base, "throttled", m.throttled))
	}
	if m.periods > 0 {
		all = append(all, m.counter(base, QuotaThrottles, min(1, m.throttles/m.periods), "share"))
		if m.cpus > 0 {
			all = append(all, m.counter(base, QuotaCPUs, m.cpus, "cpus"))
		}
	}
	return all
}

// counter is a row of basis counters.
func (m *machine) counter(base Pattern, name string, value float64, unit string) Pattern {
	p := base
	f := function{class: Host, name: name}
	f.hash()
	p.Function, p.Class, p.Name, p.Basis, p.Resource = f.key, Host, name, Read, unit
	p.Count, p.Mu, p.Beta, p.BetaLo, p.BetaHi = int64(m.periods), value, 1, 1, 1
	return p
}

// pattern is one of the machine's. Its parts are known exactly; how far its share would be
// another in the next window the spread over the seconds says.
func (m *machine) pattern(base Pattern, name string, slots []share) Pattern {
	p := base
	f := function{class: Host, name: name}
	f.hash()
	p.Function, p.Class, p.Name, p.Basis, p.Resource = f.key, Host, name, Sampled, "cpu"
	var total float64
	for _, s := range slots {
		total += s.total
	}
	p.Beta = min(1, total/float64(p.ObservedNS))
	half := spread(slots, int(p.ObservedNS/slot))
	p.BetaLo, p.BetaHi = max(0, p.Beta-half), min(1, p.Beta+half)
	return p
}

// students are quantiles of Student's t at 97.5 %, by degrees of freedom from 1 on; above
// them the last one is near enough.
var students = []float64{12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23}

// spread is half of the 95 % interval of a share that was seen over so many whole seconds,
// which begin at the second slot: the first is the lead.
func spread(slots []share, seconds int) float64 {
	if seconds < 2 {
		return 1
	}
	var sum, square float64
	for _, s := range slots[min(1, len(slots)):min(1+seconds, len(slots))] {
		v := s.total / slot
		sum, square = sum+v, square+v*v
	}
	n := float64(seconds)
	variance := max(0, square-sum*sum/n) / (n - 1)
	return students[min(seconds-2, len(students)-1)] * math.Sqrt(variance/n)
}
