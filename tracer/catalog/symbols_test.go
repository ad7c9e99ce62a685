package catalog

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// provenance is the end of a list's first sentence: which package, which version.
var provenance = regexp.MustCompile(`from (.*)\.\n`)

// exported reads the functions that some versions of a library export, from
// testdata/symbols, and for each the packages that have it.
func exported(t *testing.T, pattern string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "symbols", pattern+".txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no lists of symbols for %s: %v", pattern, err)
	}
	names := map[string][]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		from := provenance.FindSubmatch(content)
		if from == nil {
			t.Fatalf("%s does not say where it is from", file)
		}
		for name := range strings.Lines(string(content)) {
			if !strings.HasPrefix(name, "#") {
				name = strings.TrimSpace(name)
				names[name] = append(names[name], string(from[1]))
			}
		}
	}
	return names
}

// realLibraries are the lists of what a real library exports, and the groups that
// are held against them. That the lists are right is a test of the package tracer.
var realLibraries = map[string][]string{
	"libcuda-*":      {"cuda", "cuda-memory", "cuda-sync", "cuda-code"},
	"libamdhip64-*":  {"hip", "hip-memory", "hip-sync", "hip-code"},
	"lib?ccl-*":      {"nccl"},
	"libcudart-*":    {"cuda-stubs"},
	"libOpenCL-*":    {"opencl", "opencl-memory", "opencl-sync", "opencl-code"},
	"libze_loader-*": {"level-zero", "level-zero-memory", "level-zero-sync", "level-zero-code"},
}

// TestEverySymbolIsInARealLibraryOrSaysSinceWhen logs for each symbol the
// libraries that have it (go test -v).
func TestEverySymbolIsInARealLibraryOrSaysSinceWhen(t *testing.T) {
	for _, library := range slices.Sorted(maps.Keys(realLibraries)) {
		t.Run(strings.TrimSuffix(library, "-*"), func(t *testing.T) {
			names := exported(t, library)
			found, since := 0, 0
			for _, g := range Groups() {
				if !slices.Contains(realLibraries[library], g.Name) {
					continue
				}
				for _, f := range g.Functions {
					in := names[f.Symbol]
					switch {
					case len(in) > 0 && f.Since == "":
						found++
						t.Logf("%s: %s", f.Symbol, strings.Join(in, "; "))
					case len(in) == 0 && f.Since != "":
						since++
						t.Logf("%s: since %s", f.Symbol, f.Since)
					case len(in) > 0:
						t.Errorf("%s is said to come with %s, but is in %v", f.Symbol, f.Since, in)
					default:
						t.Errorf("%s: in no library of %s, and no word of the version that has it", f.Symbol, library)
					}
				}
			}
			if found == 0 {
				t.Errorf("nothing of %v was looked for", realLibraries[library])
			}
			t.Logf("%d found, %d of other versions", found, since)
		})
	}
}

// TestEveryRuntimeHasALibraryToLookIn: a new table is held against a real library,
// or is one of those that say why there is none.
func TestEveryRuntimeHasALibraryToLookIn(t *testing.T) {
	// Neuron's library is in no registry, its headers are looked into below; PJRT's
	// functions have no symbols, their names are held against a real plugin
	// (tracer/pjrt); c10d (group collective) is C++ inside PyTorch, and looked for in real ones.
	without := []string{"neuron", "pjrt"}
	for _, g := range Groups() {
		listed := slices.ContainsFunc(slices.Collect(maps.Values(realLibraries)), func(groups []string) bool {
			return slices.Contains(groups,
				g.Name)
		})
		for _, f := range g.Functions {
			if f.Runtime != "" && !listed && !slices.Contains(without, f.Runtime) && g.Name != "collective" {
				t.Errorf("%s of group %s is looked for in no real library", f.Symbol, g.Name)
			}
		}
	}
}

// captureSlots is how many values the kernel side takes (MAX_ARGS, bpf/wire.h).
const captureSlots = 12

// TestSymbolsOfALibraryThatNobodyHasAreInItsHeaders: libnrt is in no registry. Its
// functions say so, and are declared in the headers of its maker.
func TestSymbolsOfALibraryThatNobodyHasAreInItsHeaders(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "testdata", "symbols", "headers-libnrt-2.txt"))
	if err != nil {
		t.Fatal(err)
	}
	declared, looked := strings.Fields(string(content)), 0
	for _, g := range Groups() {
		for _, f := range g.Functions {
			if f.Runtime != "neuron" {
				continue
			}
			looked++
			if f.Since == "" {
				t.Errorf("%s names no version", f.Symbol)
			}
			if !slices.Contains(declared, f.Symbol) {
				t.Errorf("%s is declared in no header", f.Symbol)
			}
		}
	}
	if looked == 0 {
		t.Error("no function of Neuron was looked for")
	}
}

func TestNoFunctionCapturesMoreThanTheKernelTakes(t *testing.T) {
	for _, g := range Groups() {
		for _, f := range g.Functions {
			if len(f.Values) > captureSlots {
				t.Errorf("%s captures %d values, the kernel takes %d", f.Symbol, len(f.Values), captureSlots)
			}
			for _, v := range f.Values {
				if v.Stack && v.Index >= 8 {
					t.Errorf("%s: stack argument %d is out of the kernel's reach", f.Symbol, v.Index)
				}
				if v.Derefs > 2 || v.AtReturn && !v.Delay && (v.Derefs == 0 || v.Derefs == 2 && v.Narrow()) {
					t.Errorf("%s: value %d is followed %d times, at return %t", f.Symbol, v.Field, v.Derefs, v.AtReturn)
				}
			}
		}
	}
}

func TestGroupsComeWithGroupsThatExist(t *testing.T) {
	groups := Groups()
	for _, g := range groups {
		for _, name := range g.With {
			if !slices.ContainsFunc(groups, func(other spec.Group) bool { return other.Name == name }) {
				t.Errorf("group %s comes with %s, which is none", g.Name, name)
			}
		}
	}
}
