package tracer

import (
	debugelf "debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// inCache is where the scripts keep what they fetch.
func inCache(path ...string) string {
	cache := os.Getenv("EBPFPROF_CACHE")
	if cache == "" {
		home, _ := os.UserHomeDir()
		cache = filepath.Join(home, ".cache", "ebpfprof")
	}
	return filepath.Join(append([]string{cache}, path...)...)
}

// wheels is where the packages of PyPI's PyTorch are, with the CUDA libraries among them.
func wheels() string { return inCache("torch-venv", "lib", "python3*", "site-packages") }

// realLibrary is a library and what is there only in the version of its list.
type realLibrary struct{ library, version string }

// later is a library that scripts/runtime-libraries.sh fetched.
func later(list, file string) realLibrary {
	return realLibrary{inCache("runtimes", list, file), inCache("runtimes", list, "version")}
}

// listHeader is the first line of a list of symbols.
var listHeader = regexp.MustCompile(`^# Functions exported by (\S+), matching (\S+), from`)

// TestListsOfSymbolsAreThoseOfRealLibraries holds the lists that the catalog is
// compared with against the libraries of this machine, where it has that version.
func TestListsOfSymbolsAreThoseOfRealLibraries(t *testing.T) {
	lists, _ := filepath.Glob(filepath.Join("..", "testdata", "symbols", "lib*.txt"))
	compared := map[string]realLibrary{
		"libamdhip64-5.2":  {"/usr/lib/*-linux-gnu/libamdhip64.so.5", "/usr/lib/*-linux-gnu/libamdhip64.so.5.2.21153"},
		"libOpenCL-2.3":    {"/usr/lib/*-linux-gnu/libOpenCL.so.1", "/usr/share/doc/ocl-icd-libopencl1"},
		"libze_loader-1.8": {"/usr/lib/*-linux-gnu/libze_loader.so.1", "/usr/lib/*-linux-gnu/libze_loader.so.1.8.0"},
		"libnccl-2.30":     {filepath.Join(wheels(), "nvidia/nccl/lib/libnccl.so.2"), filepath.Join(wheels(), "nvidia_nccl_cu13-2.30.*")},
		"libcudart-13.2":   {filepath.Join(wheels(), "nvidia/cu13/lib/libcudart.so.13"), filepath.Join(wheels(), "nvidia_cuda_runtime-13.2.*")},
		// Of later releases of Debian; these folders are named after the lists.
		"libcuda-550":       later("libcuda-550", "libcuda.so.550.163.01"),
		"libamdhip64-6.4":   later("libamdhip64-6.4", "libamdhip64.so.6.4.43484"),
		"librccl-5.4":       later("librccl-5.4", "librccl.so.1.0"),
		"libze_loader-1.32": later("libze_loader-1.32", "libze_loader.so.1.32.0"),
	}
	for _, path := range lists {
		list := strings.TrimSuffix(filepath.Base(path), ".txt")
		c, ok := compared[list]
		if !ok {
			t.Errorf("%s is compared with no library", path)
			continue
		}
		t.Run(list, func(t *testing.T) {
			libraries, _ := filepath.Glob(c.library)
			if versions, _ := filepath.Glob(c.version); len(versions) == 0 || len(libraries) == 0 {
				t.Skipf("%s is not here in the version of the list: run `make deps torch runtimes`", c.library)
			}
			content, err := os.ReadFile(path)
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
			if !strings.HasPrefix(filepath.Base(c.library), "libamdhip64.so.5") && !strings.HasPrefix(header[1], filepath.Base(c.library)) {
				t.Errorf("%s lists %s, and is compared with %s", list, header[1], c.library)
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
	file, err := debugelf.Open(path)
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
		if kind := debugelf.ST_TYPE(s.Info); s.Section != debugelf.SHN_UNDEF && (kind == debugelf.STT_FUNC || kind == ifunc) &&
			matching.MatchString(s.Name) {
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
		costly string  // the launches that are expensive all the same
	}{
		{"/usr/lib/*-linux-gnu/libamdhip64.so.5", 110, 1, ""},
		{"/usr/lib/*-linux-gnu/libOpenCL.so.1", 60, 0.95, ""},
		{"/usr/lib/*-linux-gnu/libze_loader.so.1", 60, 1, ""},
		{later("libcuda-550", "libcuda.so.550.163.01").library, 235, 1, ""},
		{later("libamdhip64-6.4", "libamdhip64.so.6.4.43484").library, 140, 0.12, "hipLaunchByPtr"},
		{later("librccl-5.4", "librccl.so.1.0").library, 20, 0.7, ""},
		{later("libze_loader-1.32", "libze_loader.so.1.32.0").library, 80, 0.98, "zeCommandListAppendLaunchKernelWithArguments"},
		{filepath.Join(wheels, "nccl", "lib", "libnccl.so.2"), 20, 0.9, ""},
		{filepath.Join(wheels, "cu1*", "lib", "libcudart.so.1*"), 7, 1, ""},
	} {
		t.Run(filepath.Base(c.path), func(t *testing.T) {
			found, _ := filepath.Glob(c.path)
			if len(found) == 0 {
				t.Skipf("%s is not here: run `make deps torch runtimes`", c.path)
			}
			file, err := elf.Open(found[0])
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			plan := plan.Library(file, found[0], catalog.Groups())
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
				} else if p.Function.Category == "launch" && p.Symbol != c.costly {
					t.Errorf("%s, a launch, is expensive: %s", p.Symbol, p.Entry.Reason)
				}
			}
			t.Logf("%s: %d functions, %d with a cheap site, %d with a return probe", found[0], len(plan.Probes), cheap, returns)
			if len(plan.Probes) < c.probes || float64(cheap) < c.cheap*float64(len(plan.Probes)) {
				t.Errorf("%d functions, %d cheap; want at least %d, and %.0f %% of them", len(plan.Probes), cheap, c.probes, 100*c.cheap)
			}
		})
	}
}

// TestVersionsOfNewerFunctionsAreThoseOfTheHeaders: what no listed library has is
// declared in the headers of a newer one. Those of CUDA tell the version as well,
// in the names of the function types: PFN_cuCtxCreate_v12050 is 12.5.
func TestVersionsOfNewerFunctionsAreThoseOfTheHeaders(t *testing.T) {
	read := func(t *testing.T, path ...string) string {
		found, _ := filepath.Glob(filepath.Join(append([]string{wheels()}, path...)...))
		if len(found) == 0 {
			t.Skipf("%s is not here: run `make torch`", filepath.Join(path...))
		}
		content, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	word := func(text, name string) bool { return regexp.MustCompile(`\b` + name + `\b`).MatchString(text) }
	version := func(t *testing.T, of string) (major, minor int) {
		if _, err := fmt.Sscanf(of, "%d.%d", &major, &minor); err != nil {
			t.Fatalf("%q is no version", of)
		}
		return major, minor
	}
	for runtime, check := range map[string]func(t *testing.T, f *spec.Function){
		"cuda": func(t *testing.T, f *spec.Function) {
			major, minor := version(t, f.Since)
			if !word(read(t, "nvidia", "cu13", "include", "cuda.h"), f.Symbol) {
				t.Errorf("%s is not in cuda.h", f.Symbol)
			}
			if kind := fmt.Sprintf("PFN_%s_v%d", f.Label, 1000*major+10*minor); !word(read(t, "nvidia", "cu13", "include", "cudaTypedefs.h"), kind) {
				t.Errorf("%s is said to be of %s: %s is not in cudaTypedefs.h", f.Symbol, f.Since, kind)
			}
		},
		"hip": func(t *testing.T, f *spec.Function) {
			const include = "triton/backends/amd/include/hip"
			major, minor := version(t, f.Since)
			var ofMajor, ofMinor int
			for line := range strings.Lines(read(t, include, "hip_version.h")) {
				fmt.Sscanf(line, "#define HIP_VERSION_MAJOR %d", &ofMajor)
				fmt.Sscanf(line, "#define HIP_VERSION_MINOR %d", &ofMinor)
			}
			if ofMajor < major || ofMajor == major && ofMinor < minor {
				t.Errorf("%s is of %s, the header of %d.%d", f.Symbol, f.Since, ofMajor, ofMinor)
			}
			if !word(read(t, include, "hip_runtime_api.h"), f.Symbol) {
				t.Errorf("%s is not in hip_runtime_api.h of %d.%d", f.Symbol, ofMajor, ofMinor)
			}
		},
	} {
		t.Run(runtime, func(t *testing.T) {
			checked := 0
			for _, g := range catalog.Groups() {
				for i := range g.Functions {
					if f := &g.Functions[i]; f.Runtime == runtime && f.Since != "" {
						check(t, f)
						checked++
					}
				}
			}
			if checked == 0 {
				t.Errorf("no function of %s is newer than the lists", runtime)
			}
			t.Logf("%d functions", checked)
		})
	}
	for _, g := range catalog.Groups() {
		for _, f := range g.Functions {
			if f.Since != "" && f.Runtime != "cuda" && f.Runtime != "hip" && f.Runtime != "neuron" && g.Name != "collective" {
				t.Errorf("%s is said to be of %s, and no header is looked into", f.Symbol, f.Since)
			}
		}
	}
}

// withoutAlternatives are the groups with the functions that are probed only where
// a better one is missing.
func withoutAlternatives(groups []spec.Group) []spec.Group {
	for g := range groups {
		groups[g].Functions = slices.Clone(groups[g].Functions)
		for f := range groups[g].Functions {
			groups[g].Functions[f].Unless = ""
		}
	}
	return groups
}

// TestEveryFunctionOfPyTorchIsInARealOne: of either version that the tests trace.
func TestEveryFunctionOfPyTorchIsInARealOne(t *testing.T) {
	in := map[string][]string{} // functions of the catalog, by the libraries that have them
	libraries := 0
	for version, folder := range map[string]string{
		"1.13": "/usr/lib/python3/dist-packages/torch/lib",
		"2.15": filepath.Join(wheels(), "torch/lib"),
	} {
		found, _ := filepath.Glob(filepath.Join(folder, "lib*.so"))
		for _, path := range found {
			file, err := elf.Open(path)
			if err != nil {
				continue
			}
			libraries++
			for _, p := range plan.Library(file, path, withoutAlternatives(catalog.Groups())).Probes {
				key := p.Function.Symbol + p.Function.Suffix
				if p.Function.Since != "" {
					t.Errorf("%s is said to be of another version, %s, but is in %s", key, p.Function.Since, path)
				}
				if where := filepath.Base(path) + " " + version; !slices.Contains(in[key], where) {
					in[key] = append(in[key], where)
				}
			}
			file.Close()
		}
	}
	if libraries < 10 {
		t.Skip("not both versions of PyTorch are here: run `make deps torch`")
	}
	checked := 0
	for _, g := range catalog.Groups() {
		for _, f := range g.Functions {
			// What is looked for in any library is in none that is installed: jobs make it.
			if f.Runtime != "" && g.Name != "collective" || f.Anywhere != "" {
				continue
			}
			key := f.Symbol + f.Suffix
			slices.Sort(in[key])
			t.Logf("%s %s: %v %s", g.Name, key, in[key], f.Since)
			if checked++; len(in[key]) == 0 && f.Since == "" {
				t.Errorf("%s %s is in neither PyTorch", g.Name, key)
			}
		}
	}
	if checked == 0 {
		t.Error("no function of PyTorch was looked for")
	}
}
