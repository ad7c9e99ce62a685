package tracer

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// wheels is where the packages of PyPI's PyTorch are, with the CUDA libraries among them.
func wheels() string {
	cache := os.Getenv("EBPFPROF_CACHE")
	if cache == "" {
		home, _ := os.UserHomeDir()
		cache = filepath.Join(home, ".cache", "ebpfprof")
	}
	return filepath.Join(cache, "torch-venv", "lib", "python3*", "site-packages")
}

// listHeader is the first line of a list of symbols.
var listHeader = regexp.MustCompile(`^# Functions exported by (\S+), matching (\S+), from`)

// TestListsOfSymbolsAreThoseOfRealLibraries holds the lists that the catalog is
// compared with against the libraries of this machine, where it has that version.
func TestListsOfSymbolsAreThoseOfRealLibraries(t *testing.T) {
	for list, c := range map[string]struct{ library, version string }{
		"libamdhip64-5.2":  {"/usr/lib/*-linux-gnu/libamdhip64.so.5", "/usr/lib/*-linux-gnu/libamdhip64.so.5.2.21153"},
		"libOpenCL-2.3":    {"/usr/lib/*-linux-gnu/libOpenCL.so.1", "/usr/share/doc/ocl-icd-libopencl1"},
		"libze_loader-1.8": {"/usr/lib/*-linux-gnu/libze_loader.so.1", "/usr/lib/*-linux-gnu/libze_loader.so.1.8.0"},
		"libnccl-2.30":     {filepath.Join(wheels(), "nvidia/nccl/lib/libnccl.so.2"), filepath.Join(wheels(), "nvidia_nccl_cu13-2.30.*")},
		"libcudart-13.2":   {filepath.Join(wheels(), "nvidia/cu13/lib/libcudart.so.13"), filepath.Join(wheels(), "nvidia_cuda_runtime-13.2.*")},
	} {
		t.Run(list, func(t *testing.T) {
			libraries, _ := filepath.Glob(c.library)
			if versions, _ := filepath.Glob(c.version); len(versions) == 0 || len(libraries) == 0 {
				t.Skipf("%s is not here in the version of the list: run `make deps torch`", c.library)
			}
			content, err := os.ReadFile(filepath.Join("..", "testdata", "symbols", list+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			header := listHeader.FindStringSubmatch(string(content))
			if header == nil {
				t.Fatalf("%s does not say what it lists", list)
			}
			var listed []string
			for line := range strings.Lines(string(content)) {
				if !strings.HasPrefix(line, "#") {
					listed = append(listed, strings.TrimSpace(line))
				}
			}
			got := exportedFunctions(t, libraries[0], regexp.MustCompile(header[2]))
			slices.Sort(listed)
			if !slices.Equal(got, slices.Compact(listed)) || len(got) == 0 {
				t.Errorf("%s exports %d functions, %d are listed, or others", libraries[0], len(got), len(listed))
			}
			t.Logf("%s: %d functions", libraries[0], len(got))
		})
	}
}

// exportedFunctions are the names of the functions that a library exports, sorted.
func exportedFunctions(t *testing.T, path string, matching *regexp.Regexp) (names []string) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		const ifunc = 10 // STT_GNU_IFUNC
		if kind := elf.ST_TYPE(s.Info); s.Section != elf.SHN_UNDEF && (kind == elf.STT_FUNC || kind == ifunc) && matching.MatchString(s.Name) {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestRealRuntimesAreProbedCheaply plans the probes of runtime libraries of the
// machine: what is launched or sent often must have a site that the kernel
// emulates, with the return address in place.
func TestRealRuntimesAreProbedCheaply(t *testing.T) {
	wheels := filepath.Join(wheels(), "nvidia")
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
			file, err := symbolize.OpenELF(found[0])
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			plan := PlanLibrary(file, found[0], catalog.Groups())
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
