package plan

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// torchLibraries are the builds of libtorch_cpu on this machine, by what made them.
func torchLibraries() map[string]string {
	found := map[string]string{}
	cache := os.Getenv("EBPFPROF_CACHE")
	if cache == "" {
		home, _ := os.UserHomeDir()
		cache = filepath.Join(home, ".cache/ebpfprof")
	}
	for name, pattern := range map[string]string{
		"debian": "/usr/lib/*/libtorch_cpu.so.*.*",
		"pypi":   filepath.Join(cache, "torch-venv/lib/python*/site-packages/torch/lib/libtorch_cpu.so"),
	} {
		if paths, _ := filepath.Glob(pattern); len(paths) > 0 {
			found[name] = paths[0]
		}
	}
	return found
}

// windowGroups are the groups of a recording that names none.
func windowGroups() []spec.Group {
	return slices.DeleteFunc(catalog.Groups(), func(g spec.Group) bool { return g.OnDemand })
}

// BenchmarkPlan opens a libtorch_cpu and plans every probe of the catalog in it:
// most of what an attach waits for.
func BenchmarkPlan(b *testing.B) {
	groups := windowGroups()
	for name, path := range torchLibraries() {
		b.Run(name, func(b *testing.B) {
			probes := 0
			for b.Loop() {
				e, err := elf.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				probes = len(Library(e, path, groups).Probes)
				e.Close()
			}
			b.ReportMetric(float64(probes), "probes")
		})
	}
}

// BenchmarkKeptPlan is BenchmarkPlan when the cache has the plan: of a library that
// root alone can write, and of one that its user can.
func BenchmarkKeptPlan(b *testing.B) {
	groups := windowGroups()
	for name, path := range torchLibraries() {
		contents, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		copied := filepath.Join(b.TempDir(), filepath.Base(path))
		if err := os.WriteFile(copied, contents, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.Chown(copied, 12345, 12345); err != nil {
			b.Skip(err)
		}
		c := Cache{directory: filepath.Join(b.TempDir(), "plans")}
		for owner, path := range map[string]string{"root": path, "user": copied} {
			b.Run(name+"/"+owner, func(b *testing.B) {
				for b.Loop() {
					e, err := elf.Open(path)
					if err != nil {
						b.Fatal(err)
					}
					c.Plan(e, path, groups)
					e.Close()
				}
			})
		}
	}
}
