package probes

import (
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/features"
)

func TestOnlyABudgetWithoutUprobeMultiLeavesOut(t *testing.T) {
	all := catalog.Groups()
	for _, c := range []struct {
		budget float64
		multi  bool
		all    bool
	}{{0.05, true, true}, {-1, true, true}, {-1, false, true}, {0.05, false, false}} {
		s := Select(all, c.budget, &features.Set{UprobeMulti: c.multi})
		if len(s.Groups)+len(s.leftOut) != len(all) || (len(s.leftOut) == 0) != c.all || (s.LeftOut() == "") != c.all {
			t.Errorf("%+v: %d of %d groups, %q left out", c, len(s.Groups), len(all), s.leftOut)
		}
		for _, g := range s.Groups {
			if !c.all && g.Tier == spec.Detail {
				t.Errorf("%s is recorded in slices", g.Name)
			}
		}
		for _, name := range []string{"cuda", "hip", "level-zero", "neuron", "neuron-execute", "opencl", "pjrt", "pjrt-execute"} {
			if slices.Contains(s.leftOut, name) {
				t.Errorf("%+v: the launches of %s are left out", c, name)
			}
		}
	}
}
