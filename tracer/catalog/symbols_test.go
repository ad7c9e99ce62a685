package catalog

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// exported reads the functions that some versions of a library export, from
// testdata/symbols, where each file says where it comes from.
func exported(t *testing.T, pattern string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "symbols", pattern+".txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no lists of symbols for %s: %v", pattern, err)
	}
	names := map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.Lines(string(content)) {
			if !strings.HasPrefix(name, "#") {
				names[strings.TrimSpace(name)] = true
			}
		}
	}
	return names
}

var realLibraries = map[string][]string{
	"libcuda-*":      {"cuda", "cuda-memory", "cuda-sync", "cuda-code"},
	"libamdhip64-*":  {"hip", "hip-memory", "hip-sync", "hip-code"},
	"lib?ccl-*":      {"nccl"},
	"libcudart-*":    {"cuda-stubs"},
	"libOpenCL-*":    {"opencl", "opencl-memory", "opencl-sync", "opencl-code"},
	"libze_loader-*": {"level-zero", "level-zero-memory", "level-zero-sync", "level-zero-code"},
}

func TestEverySymbolIsInARealLibraryOrSaysSinceWhen(t *testing.T) {
	for library, groups := range realLibraries {
		names := exported(t, library)
		found, since := 0, 0
		for _, g := range Groups() {
			if !slices.Contains(groups, g.Name) {
				continue
			}
			for _, f := range g.Functions {
				switch {
				case names[f.Symbol] && f.Since == "":
					found++
				case !names[f.Symbol] && f.Since != "":
					since++
				case names[f.Symbol]:
					t.Errorf("%s is said to come with %s, but the versions listed for %s have it", f.Symbol, f.Since, library)
				default:
					t.Errorf("%s: in no library of %s, and no word of the version that has it", f.Symbol, library)
				}
			}
		}
		t.Logf("%s: %d found, %d of other versions", library, found, since)
	}
}

// TestEveryRuntimeHasALibraryToLookIn: a new table is held against a real library,
// or is one of those that say why there is none.
func TestEveryRuntimeHasALibraryToLookIn(t *testing.T) {
	// Neuron's library is in no registry; PJRT's functions have no symbols; Gloo is
	// C++ inside PyTorch, and its symbols are looked for in real ones end to end.
	without := []string{"neuron", "pjrt", "gloo"}
	for _, g := range Groups() {
		listed := slices.ContainsFunc(slices.Collect(maps.Values(realLibraries)), func(groups []string) bool { return slices.Contains(groups, g.Name) })
		for _, f := range g.Functions {
			if f.Runtime != "" && !listed && !slices.Contains(without, f.Runtime) {
				t.Errorf("%s of group %s is looked for in no real library", f.Symbol, g.Name)
			}
		}
	}
}

// captureSlots is how many values the kernel side takes (MAX_ARGS, bpf/wire.h).
const captureSlots = 12

// TestSymbolsOfLibrariesThatNobodyHasSaySo: libnrt is in no registry.
func TestSymbolsOfLibrariesThatNobodyHasSaySo(t *testing.T) {
	for _, g := range Groups() {
		for _, f := range g.Functions {
			if f.Runtime == "neuron" && f.Since == "" {
				t.Errorf("%s names no version", f.Symbol)
			}
		}
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
				if v.Derefs > 2 || v.AtReturn && (v.Derefs == 0 || v.Derefs == 2 && v.Narrow()) {
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
			if !slices.ContainsFunc(groups, func(other Group) bool { return other.Name == name }) {
				t.Errorf("group %s comes with %s, which is none", g.Name, name)
			}
		}
	}
}
