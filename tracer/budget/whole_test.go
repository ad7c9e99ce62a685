package budget

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

func TestLaunchesGiveWayFirstAndStacksBeforeCalls(t *testing.T) {
	launches := func(share, stacks float64) wholePrice { return wholePrice{share, stacks, true} }
	anchor := func(share, stacks float64) wholePrice { return wholePrice{share, stacks, false} }
	for _, test := range []struct {
		name               string
		prices             map[string]wholePrice
		withoutStacks, out []string
	}{
		{"nothing seen", nil, nil, nil},
		{"all of the budget", map[string]wholePrice{"cuda": launches(0.02, 0.01), "scope": anchor(0.03, 0.02)}, nil, nil},
		{"stacks of launches", map[string]wholePrice{"cuda": launches(0.04, 0.03), "scope": anchor(0.03, 0.02)}, []string{"cuda"}, nil},
		{"launches, however cheap beside the rest", map[string]wholePrice{"cuda": launches(0.01, 0), "scope": anchor(0.045, 0.02)}, nil,
			[]string{"cuda"}},
		{"stacks of two", map[string]wholePrice{"cuda": launches(0.05, 0.02), "pjrt": launches(0.03, 0.02)}, []string{"cuda", "pjrt"}, nil},
		{"the more expensive launches, which leaves room for the stacks of others", map[string]wholePrice{"cuda": launches(0.06, 0.01),
			"pjrt": launches(0.01, 0.005)}, nil, []string{"cuda"}},
		{"launches and stacks of anchors", map[string]wholePrice{"cuda": launches(0.1, 0.05), "scope": anchor(0.06, 0.03)}, []string{"scope"},
			[]string{"cuda"}},
		{"everything", map[string]wholePrice{"cuda": launches(1, 0.5), "scope": anchor(0.5, 0), "backward": anchor(0.3, 0)}, nil,
			[]string{"cuda", "scope", "backward"}},
		{"what is not called stays", map[string]wholePrice{"cuda": launches(0, 0), "scope": anchor(0.5, 0)}, nil, []string{"scope"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			withoutStacks, out := giveWay(test.prices, 0.05)
			if !slices.Equal(withoutStacks, test.withoutStacks) || !slices.Equal(out, test.out) {
				t.Errorf("without stacks %v, out %v; want %v, %v", withoutStacks, out, test.withoutStacks, test.out)
			}
		})
	}
}

// manyCalls are the probes of a job of one group, which has made so many calls.
type manyCalls struct {
	Probes
	group, launches string // the group's name, and that of the one of launches
	calls           uint64
	stack           bool // its calls take their stacks
	demoted, left   []string
	demotedAt       time.Time
}

func (p *manyCalls) Anchors() []uint32 { return []uint32{0} }
func (p *manyCalls) Sliced() []uint32  { return nil }
func (p *manyCalls) Steps() []uint32   { return nil }
func (p *manyCalls) PastSteps() uint64 { return 0 }
func (p *manyCalls) SweepScopes()      {}
func (p *manyCalls) AnySliced() bool   { return true }
func (p *manyCalls) At(uint32) Probe {
	return Probe{Probe: weights.Probe{Group: p.group, Function: &spec.Function{}}, Launches: p.group == p.launches, Stack: p.stack}
}
func (p *manyCalls) Hits([]uint32) map[uint32]Hits {
	if len(p.demoted) > 0 {
		return nil
	}
	return map[uint32]Hits{0: {Recorded: p.calls, Traps: p.calls}}
}
func (p *manyCalls) Demote(groups []string, _ uint32) error {
	time.Sleep(time.Millisecond) // the kernel waits for calls that are under way
	p.demoted, p.demotedAt = append(p.demoted, groups...), time.Now()
	return nil
}
func (p *manyCalls) LeaveStacks(groups []string) error {
	p.left, p.stack = append(p.left, groups...), false
	return nil
}

type stackJob struct{ noJob }

func (stackJob) TakingCost() TakingCost { return TakingCost{Stack: 15_000} }

// newWhole is a governor without slices, of 2.5 % of a job's time.
func newWhole(probes Probes, job Job) (g *Governor, said *[]event.Warning) {
	said = new([]event.Warning)
	return New(Config{
		Budget: 0.05, NoSlices: true, Cost: HitCost{Warm: [3]float64{1000, 1000, 1000}}, Probes: probes, Job: job, Switches: noSwitches{},
		Nodes: progress.NewNodeClock(), Steps: progress.NewStepClock(), Warn: func(w event.Warning) { *said = append(*said, w) },
	}), said
}

// Where there are no slices, a group that costs too much is out, with a word, and
// nothing is ever put in again: no other probe is asked for, nor any row weighed.
func TestWithoutSlicesWhatCostsTooMuchIsLeftOut(t *testing.T) {
	probes := &manyCalls{group: "scope", calls: 1e6}
	g, said := newWhole(probes, noJob{})
	// 1.8 s of a minute, more than its 2.5 %; of two minutes it is affordable.
	g.whole.at = time.Now().Add(-2 * time.Minute)
	if err := g.next(); err != nil || len(probes.demoted) > 0 {
		t.Fatalf("taken out: %v, %v", probes.demoted, err)
	}
	*g.whole = whole{at: time.Now().Add(-time.Minute)}
	for range 3 {
		if err := g.next(); err != nil {
			t.Fatal(err)
		}
		g.whole.at = time.Now().Add(-time.Minute)
	}
	if len(probes.demoted) != 1 || probes.demoted[0] != "scope" {
		t.Errorf("taken out: %v, want scope once", probes.demoted)
	}
	if len(*said) != 1 || (*said)[0].Source != "scope" || !strings.Contains((*said)[0].Detail, "left out") ||
		!strings.Contains((*said)[0].Detail, "--budget off") {
		t.Errorf("warnings: %+v", *said)
	}
	if (*said)[0].TSNS < probes.demotedAt.UnixNano() {
		t.Error("it is said before the probes are out: calls after it may still be recorded")
	}
	if g.count != 0 || g.phase != phaseIdle {
		t.Errorf("%d slices, phase %d", g.count, g.phase)
	}
}

// Launches whose stacks are too expensive are recorded without them: 5,000 a second
// with a stack of 15 µs would be 8 % of the job's time, and are 0.9 % without.
func TestWithoutSlicesStacksGoBeforeLaunches(t *testing.T) {
	probes := &manyCalls{group: "cuda", launches: "cuda", calls: 300_000, stack: true}
	g, said := newWhole(probes, stackJob{})
	g.whole.at = time.Now().Add(-time.Minute)
	for range 3 {
		if err := g.next(); err != nil {
			t.Fatal(err)
		}
		*g.whole = whole{at: time.Now().Add(-time.Minute)}
	}
	if len(probes.demoted) > 0 || !slices.Equal(probes.left, []string{"cuda"}) {
		t.Errorf("taken out: %v, without stacks: %v, want the stacks of cuda alone", probes.demoted, probes.left)
	}
	if len(*said) != 1 || (*said)[0].Source != "cuda" || !strings.Contains((*said)[0].Detail, "recorded without them") {
		t.Errorf("warnings: %+v", *said)
	}
}

// A burst as the job begins is no reason to leave a group out for good, unless it alone
// takes what the budget has for the whole window.
func TestWithoutSlicesABurstIsForgiven(t *testing.T) {
	for calls, out := range map[uint64]bool{
		20_000: false, // 36 ms, of 50 in two seconds
		40_000: true,
	} {
		probes := &manyCalls{group: "cuda", launches: "cuda", calls: calls}
		g, _ := newWhole(probes, noJob{})
		g.whole.at = time.Now().Add(-anchorWindow)
		if err := g.next(); err != nil || (len(probes.demoted) > 0) != out {
			t.Errorf("%d calls in the first tenth of a second: taken out %v, %v", calls, probes.demoted, err)
		}
	}
}
