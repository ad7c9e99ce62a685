package tracer

import (
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// Where each probe is a perf event that the kernel takes tens of milliseconds to take
// out, a budget leaves out what it would have in slices, says so once, and records
// every call of the rest. Without a budget every call is recorded.
func TestPerfEventsAreNeverSliced(t *testing.T) {
	detail := []string{"callee_branchy", "callee_many", "callee_recursive"}
	groups := nativeGroup("libcallee-plain", catalog.ExitSites, callees)
	sliced := catalog.Group{Name: "sliced", Tier: catalog.Detail}
	groups[0].Functions = slices.DeleteFunc(groups[0].Functions, func(f catalog.Function) bool {
		if !slices.Contains(detail, f.Label) {
			return false
		}
		sliced.Functions = append(sliced.Functions, f)
		return true
	})
	groups = append(groups, sliced)
	for _, c := range []struct {
		name   string
		budget float64
	}{{"all of the job's time", 1}, {"no budget", Unlimited}} {
		t.Run(c.name, func(t *testing.T) {
			truth, sink, session := traceNative(t, "calls-plain", Options{PerfEvents: true, Budget: c.budget, catalog: groups})
			budgeted := c.budget > 0
			counts := countSpans(sink.spans)
			for name, made := range truth.Calls {
				if budgeted && slices.Contains(detail, name) {
					made = 0
				}
				if counts[name] != made {
					t.Errorf("%s: %d calls recorded, want %d", name, counts[name], made)
				}
			}
			var said []string
			for _, w := range sink.warnings {
				if w.Kind == "slice" {
					said = append(said, w.Source+": "+w.Detail)
				}
			}
			switch {
			case !budgeted && (len(said) > 0 || session.Report().LeftOut != ""):
				t.Errorf("without a budget it says %q, %q", said, session.Report().LeftOut)
			case budgeted && (len(said) != 1 || said[0] != "uprobe_multi: "+session.Report().LeftOut ||
				!strings.Contains(said[0], "within a budget no call of sliced is recorded") || !strings.Contains(said[0], "--budget off")):
				t.Errorf("with a budget it says %q, %q", said, session.Report().LeftOut)
			}
			if len(sink.slices) > 0 {
				t.Errorf("%d slices", len(sink.slices))
			}
			if left := session.kernel.LinksLeft(); left != 0 {
				t.Errorf("%d probes are left", left)
			}
		})
	}
}

func TestOnlyABudgetWithoutUprobeMultiLeavesOut(t *testing.T) {
	all := catalog.Groups()
	for _, c := range []struct {
		budget float64
		multi  bool
		all    bool
	}{{0.05, true, true}, {Unlimited, true, true}, {Unlimited, false, true}, {0.05, false, false}} {
		s := newSelection(all, c.budget, &features.Set{UprobeMulti: c.multi})
		if len(s.groups)+len(s.leftOut) != len(all) || (len(s.leftOut) == 0) != c.all || (s.says() == "") != c.all {
			t.Errorf("%+v: %d of %d groups, %q left out", c, len(s.groups), len(all), s.leftOut)
		}
		for _, g := range s.groups {
			if !c.all && g.Tier == catalog.Detail {
				t.Errorf("%s is recorded in slices", g.Name)
			}
		}
	}
}
