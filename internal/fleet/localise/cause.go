package localise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/symbolize"
)

// Cause is what a finding most likely comes from, by the table of the method.
type Cause struct {
	Name  string `json:"name"`
	Class string `json:"class"` // hardware, software, configuration, storage, machine, or unknown
	// Symptom: the worker waits for another; what it waits for is another finding's.
	Symptom bool `json:"symptom"`
}

// The shares from which on a function's time is the machine's or a wait's.
const (
	mostly = 0.5
	partly = 0.2
	// steady is how little the throughput of a link that is simply slow varies.
	steady = 0.1
)

// What the machine did, in words.
const (
	quota  = "the CPU quota of its control group (cpu.max)"
	others = "other processes on its CPUs"
)

// cause of a finding, by its class and what its time went to.
func cause(f *Finding) Cause {
	p := &f.Pattern
	more := f.more()
	switch {
	case p.Class == pattern.Host && p.Name == "stopped":
		return Cause{Name: "process stopped by a signal", Class: "machine"}
	case p.Class == pattern.Host && p.Name == "throttled":
		return Cause{Name: quota, Class: "configuration"}
	case p.Class == pattern.Host:
		return Cause{Name: others + ", or a CPU quota", Class: "machine"}
	case pattern.Untold(p):
		return Cause{Name: "not told: no stack was taken, or it is of many functions", Class: "unknown", Symptom: true}
	case f.Kind == Special && p.Class == pattern.Collective && !more:
		// It comes last, so that it waits least: the others wait for it.
		return Cause{Name: "its peers wait for it", Class: "unknown", Symptom: true}
	case p.Class == pattern.Collective && f.Kind == Special && p.Resource == "bytes_per_second" && p.Mu < f.PeersMu/2 && p.Sigma < steady*p.Mu:
		return Cause{Name: "its link is slow: low throughput that does not vary", Class: "hardware"}
	case p.Class == pattern.Collective:
		return Cause{Name: "waits for a slower peer, or for the network", Class: "unknown", Symptom: true}
	case f.Kind == Special && !more:
		return Cause{Name: "spends less on it than its peers: its time goes elsewhere", Class: "unknown", Symptom: true}
	case p.Stopped > partly:
		return Cause{Name: "process stopped by a signal", Class: "machine"}
	case p.Preempted > mostly:
		return Cause{Name: others + ", or a CPU quota", Class: "machine"}
	case strings.HasPrefix(p.Name, "garbage collection"):
		return Cause{Name: "Python's garbage collection", Class: "software"}
	case p.Class == pattern.Loader && p.Mu < partly && sleeps(p.Wait):
		return Cause{Name: "the loading code sleeps", Class: "software"}
	case p.Class == pattern.Loader && p.Mu < mostly && p.Preempted < partly:
		return Cause{Name: "storage, or loader workers that do not keep up", Class: "storage"}
	case p.Class == pattern.Loader:
		return Cause{Name: "loading takes CPU on the training thread", Class: "software"}
	case p.Class == pattern.IO:
		return Cause{Name: "reads or writes on the training thread", Class: "storage"}
	case p.Class == pattern.Copy && f.Kind == Special:
		return Cause{Name: "unknown: PCIe, NUMA placement or pageable memory", Class: "unknown"}
	case p.Class == pattern.Copy:
		return Cause{Name: "copies between host and device", Class: "configuration"}
	case (p.Class == pattern.Compute || p.Class == pattern.Kernel) && f.Kind == Special && f.PeersBeta < partly*p.Beta:
		return Cause{Name: "work that its peers do not have", Class: "software"}
	case (p.Class == pattern.Compute || p.Class == pattern.Kernel) && f.Kind == Special:
		return Cause{Name: "unknown: slower hardware, or more work than its peers have", Class: "unknown"}
	case p.Class == pattern.Kernel && f.Kind == Own:
		return Cause{Name: "unknown: a lower clock, or more work than before", Class: "unknown"}
	case p.Class == pattern.Python && sleeps(p.Wait) && p.Mu < partly:
		return Cause{Name: "Python code that sleeps", Class: "software"}
	case p.Class == pattern.Python && p.Mu < partly && p.Wait == "futex":
		return Cause{Name: "a lock, or the interpreter's", Class: "software"}
	case p.Class == pattern.Python:
		return Cause{Name: "Python code on the training thread", Class: "software"}
	}
	return Cause{Name: "unknown", Class: "unknown"}
}

func sleeps(call string) bool { return call == "clock_nanosleep" || call == "nanosleep" }

// explain settles the cause and says the finding in one sentence.
func (t *table) explain(f *Finding) {
	f.Cause = cause(f)
	if f.Pattern.Class == pattern.Host && f.Pattern.Name == "preempted" && len(f.Workers) == 1 {
		t.contention(f)
	}
	if f.Cause.Name == quota && len(f.Workers) == 1 {
		f.Cause.Name += t.throttles(slices.Index(t.workers, f.Workers[0]))
	}
	t.hardware(f)
	f.Sentence = f.sentence(len(t.workers))
}

// contention says more of a worker that had no CPU, where the patterns do: whether a quota
// held it back, or whether it only has more to run than its peers, and is preempted in
// proportion.
func (t *table) contention(f *Finding) {
	w := slices.Index(t.workers, f.Workers[0])
	running, throttled := t.load()
	usual := middle(slices.Concat(running[:w], running[w+1:]))
	switch {
	case f.Kind == Special && running[w] > (1+partly)*usual && f.Pattern.Beta*usual <= (1+far)*f.PeersBeta*running[w]:
		f.Cause = Cause{Name: "it has more to run than its peers, and waits for a CPU in proportion", Class: "unknown", Symptom: true}
	case throttled[w] == nil: // its quota is not known
	case throttled[w].Beta > partly*f.Pattern.Beta:
		f.Cause = Cause{Name: quota, Class: "configuration"}
	default:
		f.Cause = Cause{Name: others + ": no quota held it back", Class: "machine"}
	}
}

// throttles says how often a worker's quota was used up; "" where that is not known.
func (t *table) throttles(w int) string {
	own := func(name string) float64 {
		for _, k := range t.keys() {
			if p := t.rows[k][w]; p != nil && k.basis == pattern.Read && p.Name == name {
				return p.Mu
			}
		}
		return 0
	}
	share, cpus := own(pattern.QuotaThrottles), own(pattern.QuotaCPUs)
	switch {
	case share == 0:
		return ""
	case cpus == 0:
		return fmt.Sprintf(", used up in %s of its periods", percent(share))
	}
	return fmt.Sprintf(" of %.3g CPUs, used up in %s of its periods", cpus, percent(share))
}

// load is how much of the time each worker ran, and what its quota took; nil is not known.
func (t *table) load() (running []float64, throttled []*pattern.Pattern) {
	if t.running != nil {
		return t.running, t.throttled
	}
	t.running, t.throttled = make([]float64, len(t.workers)), make([]*pattern.Pattern, len(t.workers))
	for _, k := range t.keys() { // in one order always: sums of floats depend on it
		if k.basis != pattern.Sampled {
			continue
		}
		for w, p := range t.rows[k] {
			switch {
			case p == nil:
			case p.Class != pattern.Host:
				t.running[w] += p.Beta * p.Mu
			case p.Name == "throttled":
				t.throttled[w] = p
			}
		}
	}
	return t.running, t.throttled
}

func (f *Finding) sentence(workers int) string {
	p := &f.Pattern
	what, place := p.Name, ""
	if p.File != "" && p.Line > 0 && p.Class != pattern.Collective {
		place = fmt.Sprintf(" (%s:%d)", symbolize.ShortPath(p.File), p.Line)
		what, _, _ = strings.Cut(what, " (") // the file, which the place says
	}
	if caller := p.Caller(); caller != "" {
		caller, _, _ = strings.Cut(caller, " (")
		what += ", called by " + caller
	}
	if p.Class == pattern.Loader {
		what = "the data loader, in " + what
	}
	if f.Kind == Common {
		return fmt.Sprintf("%d of %d workers spend %s of their time in %s%s: %s", len(f.Workers), workers, percent(p.Beta), what, place,
			f.Cause.Name)
	}
	if f.Kind == Own {
		who, whose := fmt.Sprintf("%s spends", f.Workers[0]), "its own normal time"
		if n := len(f.Workers); n > 1 {
			who, whose = fmt.Sprintf("%d of %d workers spend", n, workers), "their own normal time"
		}
		if p.Basis == pattern.Device {
			devices := fmt.Sprintf("the device of %s needs", f.Workers[0])
			if n := len(f.Workers); n > 1 {
				devices = fmt.Sprintf("the devices of %d of %d workers need", n, workers)
			}
			return fmt.Sprintf("%s %s of the time for %s, in %s %s at the most: %s", devices, bounds(p), what, whose, percent(f.PeersBeta),
				f.Cause.Name)
		}
		return fmt.Sprintf("%s %s of the time in %s%s, in %s %s: %s", who, percent(p.Beta), what, place, whose, percent(f.PeersBeta),
			f.Cause.Name)
	}
	switch {
	case p.Class == pattern.Host && p.Name == "stopped":
		return fmt.Sprintf("%s was stopped by signals for %s of the time, its peers for %s", f.Workers[0], percent(p.Beta), percent(f.PeersBeta))
	case p.Class == pattern.Host && p.Name == "throttled":
		return fmt.Sprintf("%s was held back for %s of the time, its peers for %s: %s", f.Workers[0], percent(p.Beta), percent(f.PeersBeta),
			f.Cause.Name)
	case p.Class == pattern.Host:
		return fmt.Sprintf("%s, or a thread that it waited for, could run and had no CPU for %s of the time, its peers for %s: %s", f.Workers[0],
			percent(p.Beta), percent(f.PeersBeta), f.Cause.Name)
	}
	if p.Basis == pattern.Device {
		return fmt.Sprintf("the device of %s needs %s of the time for %s, those of its peers %s at the most: %s", f.Workers[0], bounds(p), what,
			percent(f.PeersBeta), f.Cause.Name)
	}
	return fmt.Sprintf("%s spends %s of its time in %s%s, its peers %s: %s", f.Workers[0], percent(p.Beta), what, place, percent(f.PeersBeta),
		f.Cause.Name)
}

// bounds of a share, or the share where it was measured.
func bounds(p *pattern.Pattern) string {
	if p.BetaHi-p.BetaLo < 0.0005 {
		return percent(p.BetaLo)
	}
	return fmt.Sprintf("%s to %s", percent(p.BetaLo), percent(p.BetaHi))
}

// String names a worker for people.
func (w Worker) String() string {
	if w.Rank >= 0 {
		return fmt.Sprintf("rank %d", w.Rank)
	}
	return fmt.Sprintf("pid %d on %s", w.PID, w.Host)
}

func percent(share float64) string {
	if share != 0 && share < 0.0995 {
		return fmt.Sprintf("%.1f %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}
