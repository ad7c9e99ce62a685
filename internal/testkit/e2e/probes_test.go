package e2e

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// TestProbesOfEveryRuntimesLibraryAreShown: `probes --library` on the runtime
// libraries of this machine, real and stub, has a line for the entry of every
// catalogued function that the library exports.
func TestProbesOfEveryRuntimesLibraryAreShown(t *testing.T) {
	harness.Beside(t)
	stubs := filepath.Dir(stub(t, "libcuda.so.1"))
	later := filepath.Join(harness.Cache(), "runtimes")
	wheels := filepath.Join(harness.Cache(), "torch-venv", "lib", "python3*", "site-packages", "nvidia")
	for _, c := range []struct{ library, runtime string }{
		{filepath.Join(later, "libcuda-550", "libcuda.so.*"), "cuda"},
		{filepath.Join(later, "libamdhip64-6.4", "libamdhip64.so.*"), "hip"},
		{filepath.Join(later, "librccl-5.4", "librccl.so.*"), "nccl"},
		{filepath.Join(later, "libze_loader-1.32", "libze_loader.so.*"), "level_zero"},
		{"/usr/lib/*-linux-gnu/libamdhip64.so.5", "hip"},
		{"/usr/lib/*-linux-gnu/libze_loader.so.1", "level_zero"},
		{"/usr/lib/*-linux-gnu/libOpenCL.so.1", "opencl"},
		{filepath.Join(wheels, "nccl", "lib", "libnccl.so.2"), "nccl"},
		{filepath.Join(stubs, "libcuda.so.1"), "cuda"},
		{filepath.Join(stubs, "libamdhip64.so.6"), "hip"},
		{filepath.Join(stubs, "libnccl.so.2"), "nccl"},
		{filepath.Join(stubs, "libnrt.so.1"), "neuron"},
	} {
		found, _ := filepath.Glob(c.library)
		if len(found) == 0 {
			t.Logf("%s is not here: `make deps torch runtimes native`", c.library)
			continue
		}
		t.Run(c.runtime+" "+filepath.Base(found[0]), func(t *testing.T) {
			out, err := exec.Command(harness.Binary, "probes", "--json", "--library", found[0]).Output()
			if err != nil {
				t.Fatal(err)
			}
			var sites []struct{ Library, Group, Symbol, Kind, Offset, Cost string }
			if err := json.Unmarshal(out, &sites); err != nil {
				t.Fatal(err)
			}
			shown := map[string]bool{}
			for _, s := range sites {
				if s.Kind == "entry" && s.Cost != "" && strings.HasPrefix(s.Offset, "+") && s.Library == filepath.Base(found[0]) {
					shown[s.Symbol] = true
				}
			}
			exports := exportsOf(t, found[0])
			want := 0
			for _, g := range catalog.Groups() {
				for _, f := range g.Functions {
					if f.Runtime != c.runtime || !exports[f.Symbol] || f.Symbol == "__cudaRegisterFunction" {
						continue
					}
					if want++; !shown[f.Symbol] {
						t.Errorf("%s is exported and has no line", f.Symbol)
					}
				}
			}
			if want < 20 {
				t.Errorf("%d catalogued functions in %s", want, found[0])
			}
			t.Logf("%d functions", want)
		})
	}
	// A plugin's functions have no symbols, and it says what to ask for instead.
	plugin := filepath.Join(harness.Cache(), "pjrt", "xla_cuda_plugin.so")
	if _, err := os.Stat(plugin); err != nil {
		t.Log("no plugin is here: `make jax`")
	} else if out, err := exec.Command(harness.Binary, "probes", "--library", plugin).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "give --pid") {
		t.Errorf("a plugin: %v, %s", err, out)
	}
}

// exportsOf are the symbols that a library defines for others.
func exportsOf(t *testing.T, library string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	_, symbols := dynamicSymbols(t, library)
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			names[s.Name] = true
		}
	}
	return names
}
