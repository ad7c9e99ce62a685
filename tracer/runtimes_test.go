package tracer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// TestRealRuntimesAreProbedCheaply plans the probes of runtime libraries of the
// machine: what is launched or sent often must have a site that the kernel
// emulates, with the return address in place.
func TestRealRuntimesAreProbedCheaply(t *testing.T) {
	cache := os.Getenv("EBPFPROF_CACHE")
	if cache == "" {
		home, _ := os.UserHomeDir()
		cache = filepath.Join(home, ".cache", "ebpfprof")
	}
	wheels := filepath.Join(cache, "torch-venv", "lib", "python3*", "site-packages", "nvidia")
	for _, c := range []struct {
		path   string
		probes int     // at least
		cheap  float64 // share of them, at least
	}{
		{"/usr/lib/*-linux-gnu/libamdhip64.so.5", 110, 1},
		{"/usr/lib/*-linux-gnu/libOpenCL.so.1", 60, 0.95},
		{"/usr/lib/*-linux-gnu/libze_loader.so.1", 60, 1},
		{filepath.Join(wheels, "nccl", "lib", "libnccl.so.2"), 20, 0.9},
		{filepath.Join(wheels, "cu1*", "lib", "libcudart.so.1*"), 7, 1},
	} {
		t.Run(filepath.Base(c.path), func(t *testing.T) {
			found, _ := filepath.Glob(c.path)
			if len(found) == 0 {
				t.Skipf("%s is not here: run `make deps torch`", c.path)
			}
			elf, err := symbolize.OpenELF(found[0])
			if err != nil {
				t.Fatal(err)
			}
			defer elf.Close()
			plan := PlanLibrary(elf, found[0], catalog.Groups())
			cheap, returns := 0, 0
			for i := range plan.Probes {
				p := &plan.Probes[i]
				if p.EntryErr != nil {
					t.Errorf("%s has no site: %v", p.Symbol, p.EntryErr)
					continue
				}
				if p.Return {
					returns++
				}
				if p.Entry.Cost == site.CostEmulated {
					cheap++
				} else if p.Function.Category == "launch" {
					t.Errorf("%s, a launch, is dear: %s", p.Symbol, p.Entry.Reason)
				}
			}
			t.Logf("%s: %d functions, %d with a cheap site, %d with a return probe", found[0], len(plan.Probes), cheap, returns)
			if len(plan.Probes) < c.probes || float64(cheap) < c.cheap*float64(len(plan.Probes)) {
				t.Errorf("%d functions, %d cheap; want at least %d, and %.0f %% of them", len(plan.Probes), cheap, c.probes, 100*c.cheap)
			}
		})
	}
}
