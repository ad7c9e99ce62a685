package localise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// Whether a worker is slow by its hardware its counters say, beside those of its peers: a GPU at
// its power limit is nothing unusual where all are. Counters accuse nobody by themselves: they say
// why a worker that was found to be slow is.

// The shares from which a counter tells.
const (
	lowerClock = 0.95 // of the peers' clock: healthy ones differ by a percent or two
	heldBack   = 0.2  // of the readings, in which a clock was held down
	slowLink   = 0.5  // of the peers' throughput
	waitedFor  = 0.1  // of the time, in which some task of the host waited for memory or disks
	timesMore  = 3.0  // than the peers, of what a host loses
	lost       = 0.05 // of the time, that a host loses to heat or to its hypervisor
)

// reasons for which a clock is held down, in the order in which they are looked at.
var reasons = []struct{ counter, words string }{
	{"gpu_throttle_power_cap", "power-capped"},
	{"gpu_throttle_hardware_thermal", "too hot"}, {"gpu_throttle_thermal", "too hot"},
	{"gpu_throttle_power_brake", "by its power brake"}, {"gpu_throttle_hardware", "by its hardware"},
	{"gpu_throttled_power", "power-capped"}, {"gpu_throttled_thermal", "too hot"},
}

// hardware puts what counters say into the cause of a finding that they can explain.
func (t *table) hardware(f *Finding) {
	if len(f.Workers) != 1 || f.Kind == Common {
		return
	}
	w, p := slices.Index(t.workers, f.Workers[0]), &f.Pattern
	var looks []func(int) string
	last := p.Class == pattern.Collective && f.Kind == Special && !f.more()
	switch {
	case last: // its peers wait for it
		looks = []func(int) string{t.deviceClock, t.processorClock, t.loses(heat), t.loses(stolen), t.loses(memory)}
	case f.Cause.Class == "unknown" && !f.Cause.Symptom && (p.Class == pattern.Kernel || p.Class == pattern.Compute):
		looks = []func(int) string{t.deviceClock, t.processorClock, t.loses(heat), t.loses(stolen)}
	case f.Cause.Class == "unknown" && !f.Cause.Symptom && p.Class == pattern.Copy:
		looks = []func(int) string{t.link}
	case f.Cause.Class == "storage":
		if said := t.loses(disks)(w); said != "" {
			f.Cause.Name += ": " + said
		}
		return
	case f.Cause.Class == "machine" && p.Class == pattern.Host && p.Name == "preempted":
		looks = []func(int) string{t.loses(stolen)}
	}
	for _, look := range looks {
		if said := look(w); said != "" {
			f.Cause = Cause{Name: said, Class: "hardware"}
			if last {
				f.Cause.Name = "its peers wait for it, and " + said
			}
			return
		}
	}
	if f.Cause.Class == "unknown" && !f.Cause.Symptom && p.Class == pattern.Kernel {
		if mine, usual := t.counter("gpu_clock_sm", w); mine != nil && usual > 0 {
			f.Cause.Name = fmt.Sprintf("unknown: its GPU's clock of %s MHz is that of its peers", megahertz(mine.Mu))
		} else {
			f.Cause.Name += "; no counter of its GPU is known"
		}
	}
}

// counter is a worker's, nil where it has none, it was zero or too few peers have counters to say
// what is usual; and the median of its peers.
func (t *table) counter(name string, w int) (mine *pattern.Pattern, usual float64) {
	if t.counters == nil {
		t.counters, t.read = map[string][]*pattern.Pattern{}, make([]bool, len(t.workers))
		for _, k := range t.keys() {
			if k.basis != pattern.Read {
				continue
			}
			for i, p := range t.rows[k] {
				if p != nil {
					of, _, _ := strings.Cut(p.Name, " (")
					t.counters[of], t.read[i] = t.rows[k], true
				}
			}
		}
	}
	row := t.counters[name]
	if row == nil {
		return nil, 0
	}
	var others []float64
	for i, p := range row {
		switch {
		case i == w:
		case p != nil:
			others = append(others, p.Mu)
		case t.read[i] && !strings.Contains(name, "_clock"):
			others = append(others, 0) // what never happened has no row
		}
	}
	if len(others) < 2 {
		return nil, 0
	}
	return row[w], middle(others)
}

// device names what a counter's row is of.
func device(p *pattern.Pattern) string {
	if _, of, ok := strings.Cut(p.Name, " ("); ok {
		return strings.TrimSuffix(of, ")")
	}
	return "its GPU"
}

func megahertz(hertz float64) string {
	text := fmt.Sprintf("%.0f", hertz/1e6)
	if len(text) > 3 {
		return text[:len(text)-3] + "," + text[len(text)-3:]
	}
	return text
}

func (t *table) deviceClock(w int) string {
	mine, usual := t.counter("gpu_clock_sm", w)
	if mine == nil || usual == 0 || mine.Mu > lowerClock*usual {
		return ""
	}
	said := fmt.Sprintf("%s ran at %s of %s MHz", device(mine), megahertz(mine.Mu), megahertz(usual))
	for _, r := range reasons {
		if held, peers := t.counter(r.counter, w); held != nil && held.Mu > max(heldBack, peers) {
			return said + ", " + r.words
		}
	}
	return said + ", for a reason that its driver does not say"
}

func (t *table) processorClock(w int) string {
	mine, usual := t.counter("cpu_clock", w)
	if mine == nil || usual == 0 || mine.Mu > lowerClock*usual {
		return ""
	}
	return fmt.Sprintf("its host's CPUs ran at %s MHz, those of its peers at %s", megahertz(mine.Mu), megahertz(usual))
}

// loss is time that a host loses by a counter of shares, if that is much and more than its peers lose.
type loss struct {
	counter string
	least   float64
	words   string // with the share in them
}

var (
	heat   = loss{"cpu_throttled", lost, "heat slowed its host's CPUs for %s of the time"}
	stolen = loss{"cpu_steal", lost, "the hypervisor took %s of its host's CPUs"}
	memory = loss{"pressure_memory_some", waitedFor, "tasks of its host waited for memory for %s of the time"}
	disks  = loss{"pressure_io_some", waitedFor, "tasks of its host waited for disks for %s of the time"}
)

// loses describes a worker's loss; "" if there is none.
func (t *table) loses(l loss) func(w int) string {
	return func(w int) string {
		mine, usual := t.counter(l.counter, w)
		if mine == nil || mine.Mu < l.least || mine.Mu < timesMore*usual {
			return ""
		}
		return fmt.Sprintf(l.words, percent(mine.Mu))
	}
}

// link is PCIe: what is sent again, or moves at half of its peers' pace.
func (t *table) link(w int) string {
	if mine, usual := t.counter("gpu_pcie_replays", w); mine != nil && mine.Mu > timesMore*usual {
		return fmt.Sprintf("%s sent %.1f PCIe packets a second again", device(mine), mine.Mu)
	}
	for _, name := range []string{"gpu_pcie_sent", "gpu_pcie_received", "gpu_pcie_send_rate", "gpu_pcie_receive_rate"} {
		if mine, usual := t.counter(name, w); mine != nil && mine.Mu < slowLink*usual {
			return fmt.Sprintf("%s moved %.1f GB/s over PCIe, those of its peers %.1f", device(mine), mine.Mu/1e9, usual/1e9)
		}
	}
	return ""
}
