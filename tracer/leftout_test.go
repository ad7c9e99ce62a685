package tracer

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/probes"
)

// leftOutGroups are an anchor group, one that goes into slices and one of launches, of
// the functions of callee.h.
func leftOutGroups(detail, launches []string) []spec.Group {
	groups := nativeGroup("libcallee-plain", spec.ExitSites, callees)
	sliced := spec.Group{Name: "sliced", Tier: spec.Detail}
	launch := spec.Group{Name: "launches", Tier: spec.Detail, Launches: true}
	groups[0].Functions = slices.DeleteFunc(groups[0].Functions, func(f spec.Function) bool {
		switch {
		case slices.Contains(detail, f.Label):
			sliced.Functions = append(sliced.Functions, f)
		case slices.Contains(launches, f.Label):
			f.Category = "launch"
			launch.Functions = append(launch.Functions, f)
		default:
			return false
		}
		return true
	})
	return append(groups, sliced, launch)
}

// costless has a session find that its probes cost nothing: the job, which does nothing
// but call what is probed, would not be worth its price on a slow machine.
var costless = &budget.HitCost{}

// hasSite reports whether a function has a place for a probe: on arm64 one that is a loop
// from its first instruction on has none.
func hasSite(s *Session, name string) bool {
	return slices.ContainsFunc(s.probes.All(), func(p *probes.Probe) bool { return p.Planned.Call.Name == name && p.Planned.Usable() })
}

// Where each probe is a perf event that the kernel takes tens of milliseconds to take
// out, a budget leaves out what it would have in slices, says so once, and records
// every call of the rest, launches among it. Without a budget every call is recorded.
func TestPerfEventsAreNeverSliced(t *testing.T) {
	detail := []string{"callee_branchy", "callee_many", "callee_recursive"}
	groups := leftOutGroups(detail, []string{"callee_message", "callee_protected"})
	for _, c := range []struct {
		name   string
		budget float64
	}{{"all of the job's time", 1}, {"no budget", Unlimited}} {
		t.Run(c.name, func(t *testing.T) {
			budgeted := c.budget > 0
			options := Options{PerfEvents: true, Budget: c.budget, catalog: groups, hitCost: costless}
			truth, sink, session := traceCommand(t, options, nil, filepath.Join(buildNative(t), "calls-plain"), "200", "wait")
			counts := countSpans(sink.spans)
			for name, made := range truth.Calls {
				if budgeted && slices.Contains(detail, name) || name == "callee_loop_at_entry" && !hasSite(session, name) {
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
			// That of the tracer's own function, by which the others go at once, is the last.
			for deadline := time.Now().Add(10 * time.Second); session.kernel.LinksLeft() != 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d probes are left", session.kernel.LinksLeft())
				}
			}
		})
	}
}

// The calls of a group that has lost its stacks are recorded as before.
func TestCallsGoOnWithoutTheirStacks(t *testing.T) {
	launches := []string{"callee_message", "callee_protected"}
	groups := leftOutGroups(nil, launches)
	for _, leave := range []bool{false, true} {
		between := func(s *Session) {
			if !leave {
				return
			}
			if err := s.probes.Governed().LeaveStacks([]string{"launches"}); err != nil {
				t.Fatal(err)
			}
		}
		options := Options{PerfEvents: true, Budget: 1, Frequency: 99, catalog: groups, hitCost: costless}
		truth, sink, _ := traceCommand(t, options, between, filepath.Join(buildNative(t), "calls-plain"), "200", "wait")
		counts, stacks := countSpans(sink.spans), map[string]int{}
		for _, s := range sink.spans {
			if s.Detail != nil && s.Detail.StackID != nil {
				stacks[s.Call.Name]++
			}
		}
		for _, name := range launches {
			if counts[name] != truth.Calls[name] || (stacks[name] > 0) == leave {
				t.Errorf("without stacks %t: %d of %d calls of %s recorded, %d with a stack", leave, counts[name], truth.Calls[name], name,
					stacks[name])
			}
		}
	}
}
