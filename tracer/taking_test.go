package tracer

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// labelled finds a function of the catalog.
func labelled(t *testing.T, label string) *spec.Function {
	t.Helper()
	for _, g := range catalog.Groups() {
		for i := range g.Functions {
			if g.Functions[i].Label == label || g.Name == label {
				return &g.Functions[i]
			}
		}
	}
	t.Fatalf("no function %q in the catalog", label)
	return nil
}

func TestWhichCallsTakeTheirStack(t *testing.T) {
	for label, want := range map[string][3]bool{ // at anchor, window, deep
		"cuMemAlloc":                             {true, true, true},
		"hipMalloc":                              {true, true, true},
		"ProfiledCPUMemoryReporter::OutOfMemory": {true, true, true},
		"reportOutOfMemoryToProfiler":            {true, true, true},
		"ProfiledCPUMemoryReporter::New":         {false, false, false},
		"cuLaunchKernel":                         {false, true, true},
		"hipModuleLaunchKernel":                  {false, true, true},
		"ncclAllReduce":                          {false, true, true},
		"scope":                                  {false, true, true},
		"op":                                     {false, false, true},
		"cuMemFree":                              {false, false, false},
		"cuStreamSynchronize":                    {false, false, false},
	} {
		f := labelled(t, label)
		for i, level := range []Level{LevelAnchor, LevelWindow, LevelDeep} {
			if got := wantsStack(level, f); got != want[i] {
				t.Errorf("%s at %s: %v, want %v", label, level, got, want[i])
			}
		}
	}
}

func TestMemoisedStacksArePricedAsSuch(t *testing.T) {
	for _, test := range []struct {
		name   string
		totals kernel.MemoTotals
		want   float64
	}{
		{"nothing is known", kernel.MemoTotals{Found: 10}, stackPrice},
		{"all walked", kernel.MemoTotals{Walked: 1000}, stackPrice},
		{"half memoised", kernel.MemoTotals{Found: 500, Walked: 500}, (memoisedPrice + stackPrice) / 2},
		{"compared as well", kernel.MemoTotals{Found: 1000, Verified: 100}, memoisedPrice + 0.1*stackPrice},
	} {
		if got := stackCostOf(&test.totals); got != test.want {
			t.Errorf("%s: %v ns, want %v", test.name, got, test.want)
		}
	}
}
