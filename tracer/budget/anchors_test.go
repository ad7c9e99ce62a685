package budget

import (
	"slices"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

func TestTheMostExpensiveAnchorGroupsAreDemotedUntilTheRestFits(t *testing.T) {
	for _, test := range []struct {
		name   string
		shares map[string]float64
		want   []string
	}{
		{"within half the budget", map[string]float64{"scope": 0.003, "backward": 0.002}, nil},
		{"one is enough", map[string]float64{"scope": 0.05, "backward": 0.002}, []string{"scope"}},
		{"the most expensive first", map[string]float64{"scope": 0.02, "backward": 0.012, "collective": 0.03}, []string{"collective", "scope",
			"backward"}},
		{"the last stays where it fits by itself", map[string]float64{"scope": 0.02, "backward": 0.009, "collective": 0.03, "launch": 0},
			[]string{"collective", "scope"}},
		{"that is what tells steps, not the cheapest", map[string]float64{"scope": 0.004, "backward": 0.009}, []string{"scope"}},
		{"one alone that fits", map[string]float64{"scope": 0.009}, []string{}},
		{"one alone that does not", map[string]float64{"scope": 0.011}, []string{"scope"}},
		{"equal ones by name", map[string]float64{"b": 0.02, "a": 0.02, "c": 0}, []string{"a", "b"}},
		{"the reference stays", map[string]float64{referenceName: 0.02}, nil},
		{"nothing seen", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			tooMuch := func(last string) bool { return test.shares[last] > 0.01 }
			if got := overBudget(test.shares, "backward", 0.01, tooMuch); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestRareHitsArePricedCold(t *testing.T) {
	seen := map[uint32]Hits{0: {Traps: 1000}}
	if cold := pace(seen, time.Second); cold != 1 {
		t.Errorf("a hit a millisecond: pace %v, want 1", cold)
	}
	if cold := pace(seen, time.Millisecond); cold != 0 {
		t.Errorf("a hit a microsecond: pace %v, want 0", cold)
	}
}

func TestTheLastGroupIsJudgedByAWholeWindow(t *testing.T) {
	var sum anchorSum
	for i := range 19 {
		share := 0.01
		if i == 0 {
			share = 0.21 // its first calls
		}
		if got := sum.add(map[string]float64{"backward": share}, 100*time.Millisecond, lastWindow); got != nil {
			t.Fatalf("after %d looks: %v", i+1, got)
		}
	}
	got := sum.add(map[string]float64{"backward": 0.01}, 100*time.Millisecond, lastWindow)
	if share := got["backward"]; share < 0.0199 || share > 0.0201 {
		t.Errorf("share %v, want 0.02", share)
	}
	if sum.over != 0 || len(sum.spent) != 0 {
		t.Errorf("the next window begins with %v", sum)
	}
}

// A fleet's agent learns the steps anew from what is recorded after the warning: a call
// of the group among that would never come again.
func TestGroupsAreSaidToBeInSlicesOnceTheirProbesAreOut(t *testing.T) {
	probes, said := &manyCalls{group: "scope", calls: 1e6}, []event.Warning(nil)
	g := New(Config{
		Budget: 0.05, Cost: HitCost{Warm: [3]float64{1000, 1000, 1000}}, Probes: probes, Job: noJob{}, Switches: noSwitches{},
		Nodes: progress.NewNodeClock(), Steps: progress.NewStepClock(), Warn: func(w event.Warning) { said = append(said, w) },
	})
	g.anchors.at = time.Now().Add(-time.Second)
	if demoted, err := demoteExpensive(g); err != nil || !demoted {
		t.Fatal(demoted, err)
	}
	if len(said) != 1 || said[0].Source != "scope" || said[0].TSNS < probes.demotedAt.UnixNano() {
		t.Errorf("%+v, out at %d", said, probes.demotedAt.UnixNano())
	}
}
