package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

func TestVariantsThatTheCatalogDoesNotKnowAreFound(t *testing.T) {
	functions := []*spec.Function{
		{Symbol: "cuLaunchKernelEx", Label: "cuLaunchKernelEx"}, {Symbol: "cuLaunchKernelEx_ptsz", Label: "cuLaunchKernelEx"},
		{Symbol: "cuMemAlloc_v2", Label: "cuMemAlloc"}, {Symbol: "hipFree", Label: "hipFree"},
	}
	exports := []string{
		"cuLaunchKernelEx", "cuLaunchKernelEx_ptsz", "cuLaunchKernelEx_v2", "cuLaunchKernelEx_v2_ptsz", "cuLaunchKernelExtra",
		"cuMemAlloc_v2", "cuMemAlloc_v3_ptds", "cuMemAllocPitch_v2", "cuMemAlloc_vnew", "hipFree_spt", "cuOther_v2", "_v2",
	}
	got := unknownVariants(exports, functions)
	want := []string{"cuLaunchKernelEx_v2", "cuLaunchKernelEx_v2_ptsz", "cuMemAlloc_v3_ptds", "hipFree_spt"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRealRuntimesHaveNoVariantThatTheCatalogLacks: of the libraries whose
// exports are listed, every variant of a catalogued function is catalogued.
func TestRealRuntimesHaveNoVariantThatTheCatalogLacks(t *testing.T) {
	lists, _ := filepath.Glob(filepath.Join("..", "..", "testdata", "symbols", "*.txt"))
	if len(lists) == 0 {
		t.Fatal("no lists of symbols")
	}
	for _, list := range lists {
		content, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		base := strings.Split(filepath.Base(list), "-")[0] + ".so"
		var functions []*spec.Function
		groups := catalog.Groups()
		for g := range groups {
			for i := range groups[g].Functions {
				if f := &groups[g].Functions[i]; f.Exact && f.Runtime != "" && f.In(base) {
					functions = append(functions, f)
				}
			}
		}
		if unknown := unknownVariants(strings.Fields(string(content)), functions); len(unknown) > 0 {
			t.Errorf("%s: %v", list, unknown)
		}
	}
}
