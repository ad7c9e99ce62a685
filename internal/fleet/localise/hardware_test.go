package localise

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// row is a pattern of a made-up rank.
func row(rank int, basis pattern.Basis, class pattern.Class, name string, beta, mu float64) pattern.Pattern {
	h := fnv.New64a()
	what, _, _ := strings.Cut(name, " (GPU")
	fmt.Fprint(h, basis, class, what)
	return pattern.Pattern{Host: fmt.Sprintf("node%d", rank/8), PID: int32(rank%8 + 1), Rank: int32(rank), EndNS: 20e9, ObservedNS: 20e9,
		Coverage: 1, Function: h.Sum64(),
		Class: class, Name: name, Basis: basis, Beta: beta, BetaLo: max(0, beta-0.01), BetaHi: min(1, beta+0.01), Mu: mu, Resource: "cpu",
		Count: 1000}
}

// nodes is a window of ranks that compute, wait for one another and load, each with the counters of its node (synthetic).
func nodes(random *rand.Rand, ranks int) (all [][]pattern.Pattern) {
	about := func(v, by float64) float64 { return v * (1 + by*(2*random.Float64()-1)) }
	for rank := range ranks {
		gpu := func(name string) string { return fmt.Sprintf("%s (GPU %d)", name, rank%8) }
		rows := []pattern.Pattern{
			row(rank, pattern.Sampled, pattern.Collective, "Work::wait", about(0.50, 0.04), 0.02),
			row(rank, pattern.Sampled, pattern.Compute, "aten::linear", about(0.40, 0.04), 0.98),
			row(rank, pattern.Sampled, pattern.Loader, "__getitem__", about(0.02, 0.3), 0.3),
			row(rank, pattern.Read, pattern.Host, gpu("gpu_clock_sm"), 1, about(1.98e9, 0.012)),
			row(rank, pattern.Read, pattern.Host, gpu("gpu_power"), 1, about(640, 0.06)),
			row(rank, pattern.Read, pattern.Host, "cpu_clock", 1, about(3.1e9, 0.02)),
			row(rank, pattern.Read, pattern.Host, "pressure_io_some", 1, about(0.02, 0.9)),
		}
		if random.IntN(3) == 0 { // at its power limit, as many are
			rows = append(rows, row(rank, pattern.Read, pattern.Host, gpu("gpu_throttle_power_cap"), 1, about(0.3, 0.5)))
		}
		if random.IntN(20) == 0 {
			rows = append(rows, row(rank, pattern.Read, pattern.Host, "cpu_steal", 1, about(0.02, 0.5)))
		}
		k := row(rank, pattern.Device, pattern.Kernel, "gemm", about(0.4, 0.03), 0)
		k.BetaHi = k.BetaLo
		all = append(all, append(rows, k))
	}
	return all
}

func together(all [][]pattern.Pattern) (flat []pattern.Pattern) {
	for _, rows := range all {
		flat = append(flat, rows...)
	}
	return flat
}

// change sets share and use of a function of a rank's.
func change(rows []pattern.Pattern, name string, beta, mu float64) []pattern.Pattern {
	for i := range rows {
		if strings.HasPrefix(rows[i].Name, name) {
			width := (rows[i].BetaHi - rows[i].BetaLo) / 2
			rows[i].Beta, rows[i].BetaLo, rows[i].BetaHi, rows[i].Mu = beta, beta-width, beta+width, mu
		}
	}
	return rows
}

// Of 8,000 ranks one is slow, by what its counters say: that is the first cause.
func TestPlantedHardwareIsTheFirstCause(t *testing.T) {
	const ranks, victim = 8000, 4003
	for _, c := range []struct {
		fault, class, want string
		plant              func(rows []pattern.Pattern) []pattern.Pattern
	}{
		{"power", "hardware", "GPU 3 ran at 1,230 of 1,9", func(rows []pattern.Pattern) []pattern.Pattern {
			rows = change(change(rows, "gpu_clock_sm", 1, 1.23e9), "Work::wait", 0.1, 0.02)
			return append(rows, row(victim, pattern.Read, pattern.Host, "gpu_throttle_power_cap (GPU 3)", 1, 0.96))
		}},
		{"heat", "hardware", "MHz, too hot", func(rows []pattern.Pattern) []pattern.Pattern {
			rows = change(change(rows, "gpu_clock_sm", 1, 0.9e9), "Work::wait", 0.1, 0.02)
			return append(rows, row(victim, pattern.Read, pattern.Host, "gpu_throttle_hardware_thermal (GPU 3)", 1, 0.9))
		}},
		{"a kernel that is slow by its clock", "hardware", "for a reason that its driver does not say",
			func(rows []pattern.Pattern) []pattern.Pattern {
				return change(change(rows, "gpu_clock_sm", 1, 1.2e9), "gemm", 0.8, 0)
			}},
		{"a kernel with more work", "unknown", "is that of its peers", func(rows []pattern.Pattern) []pattern.Pattern {
			return change(rows, "gemm", 0.8, 0)
		}},
		{"processor", "hardware", "its host's CPUs ran at 1,800 MHz", func(rows []pattern.Pattern) []pattern.Pattern {
			return change(change(rows, "cpu_clock", 1, 1.8e9), "Work::wait", 0.1, 0.02)
		}},
		{"hypervisor", "hardware", "the hypervisor took 31 %", func(rows []pattern.Pattern) []pattern.Pattern {
			return append(change(rows, "Work::wait", 0.1, 0.02), row(victim, pattern.Read, pattern.Host, "cpu_steal", 1, 0.31))
		}},
		{"disks", "storage", "waited for disks for 62 %", func(rows []pattern.Pattern) []pattern.Pattern {
			return change(change(change(rows, "pressure_io_some", 1, 0.62), "__getitem__", 0.45, 0.05), "Work::wait", 0.1, 0.02)
		}},
		{"none that counters tell", "unknown", "its peers wait for it", func(rows []pattern.Pattern) []pattern.Pattern {
			return change(rows, "Work::wait", 0.1, 0.02)
		}},
	} {
		all := nodes(rand.New(rand.NewPCG(7, 1)), ranks)
		all[victim] = c.plant(all[victim])
		if c.fault == "hypervisor" { // a rank has one row of a counter
			for i, p := range all[victim][:len(all[victim])-1] {
				if p.Name == "cpu_steal" {
					all[victim] = append(all[victim][:i], all[victim][i+1:]...)
					break
				}
			}
		}
		found := Compare(together(all)).Findings
		if len(found) == 0 || len(found[0].Workers) != 1 || found[0].Workers[0].Rank != victim || found[0].Cause.Class != c.class ||
			!strings.Contains(found[0].Cause.Name, c.want) {
			t.Errorf("%s: %d findings, want one of rank %d first, %q", c.fault, len(found), victim, c.want)
			for _, f := range found[:min(len(found), 2)] {
				t.Errorf("  %+v: %s", f.Cause, f.Sentence)
			}
		}
	}
}

func TestCountersAccuseNobodyInAHundredHealthyWindows(t *testing.T) {
	for seed := range uint64(100) {
		for _, f := range Compare(together(nodes(rand.New(rand.NewPCG(seed, 2)), 64))).Findings {
			if f.Kind == Special && (!f.Cause.Symptom || f.Cause.Class == "hardware") {
				t.Errorf("window %d: %s", seed, f.Sentence)
			}
		}
	}
}

// Where most workers have no counters, those of one say nothing.
func TestCountersOfOneWorkerAreNoEvidence(t *testing.T) {
	all := nodes(rand.New(rand.NewPCG(7, 1)), 64)
	for rank, rows := range all {
		if rank == 5 {
			all[rank] = append(change(rows, "Work::wait", 0.1, 0.02), row(rank, pattern.Read, pattern.Host, "cpu_steal", 1, 0.4))
			continue
		}
		var kept []pattern.Pattern
		for _, p := range rows {
			if p.Basis != pattern.Read {
				kept = append(kept, p)
			}
		}
		all[rank] = kept
	}
	for _, f := range Compare(together(all)).Findings {
		if f.Cause.Class == "hardware" {
			t.Errorf("%s", f.Sentence)
		}
	}
}
