package budget

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// The anchor groups are meant to be in all the time: a dozen hits a step. On a
// step of half a millisecond even that is several percent, each hit being cold.
// Then the most expensive of them go into slices with the detail groups, until the rest
// fits: demoted. A job whose steps are long again ends its slices (Governor.calm),
// and so has every call of a demoted group recorded again.

const (
	// anchorsHigh is the share of the budget above which anchor groups are
	// demoted, anchorsLow that to which.
	anchorsHigh = 0.5
	anchorsLow  = 0.25
	// anchorWindow is the least time over which their price is judged.
	anchorWindow = 100 * time.Millisecond
	// lastWindow is that of the last group, and grossly by how much it must exceed the
	// budget before: what is called first is expensive, with stacks that nobody has
	// walked yet and a job that shares its core with its own imports.
	lastWindow = 2 * time.Second
	grossly    = 8.0
)

// anchors is the account of the anchor groups that are not in slices.
type anchors struct {
	*joints
	account   *account
	reference *reference
	at        time.Time // of the last look
	before    map[uint32]Hits
	shares    map[string]float64 // of the job's time, by group, between the last two looks
	steps     string             // the group whose calls tell steps, "" before there is one
	window    anchorSum          // since the last lastWindow
	steady    map[string]float64 // shares over the last lastWindow; nil before one is over
}

// anchorSum is what groups have cost in a time.
type anchorSum struct {
	spent map[string]float64
	over  time.Duration
}

// add takes the shares of a time, and returns those of the whole sum once that is long
// enough, and begins anew.
func (s *anchorSum) add(shares map[string]float64, over, enough time.Duration) (whole map[string]float64) {
	if s.spent == nil {
		s.spent = map[string]float64{}
	}
	s.over += over
	for name, share := range shares {
		s.spent[name] += share * float64(over)
	}
	if s.over < enough {
		return nil
	}
	whole = s.spent
	for name := range whole {
		whole[name] /= float64(s.over)
	}
	*s = anchorSum{}
	return whole
}

// begin has the account begin at a time.
func (a *anchors) begin(at time.Time) {
	a.at, a.before, a.shares = at, a.probes.Hits(a.probes.Anchors()), nil
	a.window, a.steady = anchorSum{}, nil
}

// share is that of all groups together.
func (a *anchors) share() (sum float64) {
	for _, share := range a.shares {
		sum += share
	}
	return sum
}

// settle adds what the anchor groups have cost since the last look to what is spent, if
// that is long enough ago to judge by.
func (a *anchors) settle() {
	now := time.Now()
	if now.Sub(a.at) < anchorWindow {
		return
	}
	processes := time.Duration(a.account.busyProcesses())
	over := now.Sub(a.at) * processes
	counts := a.probes.Hits(a.probes.Anchors())
	seen := since(a.before, counts)
	cold, taking := pace(seen, over), a.job.TakingCost()
	shares := map[string]float64{}
	for index, h := range seen {
		p := a.probes.At(index)
		shares[p.Group] += a.account.priceOf(p, h, cold, taking) / float64(over)
		if p.Function.Step && h.Traps > 0 {
			a.steps = p.Group
		}
	}
	if a.reference.counts() {
		shares[referenceName] = a.reference.price() / float64(over)
	}
	a.at, a.before, a.shares = now, counts, shares
	a.account.spent += time.Duration(a.share() * float64(over/processes))
	if steady := a.window.add(shares, over, lastWindow*processes); steady != nil {
		a.steady = steady
	}
}

// tooExpensive lists the groups that cost too much to be in all the time. It is called
// while no detail probe is in.
func (a *anchors) tooExpensive() []string {
	a.settle()
	allowance := a.account.part()
	return overBudget(a.shares, a.steps, allowance, func(last string) bool {
		return a.steady[last] > allowance || a.shares[last] > grossly*allowance
	})
}

// demoteExpensive has the groups that cost too much recorded in slices. It says so once
// their probes are out: who reads the warning may rely on it that no call that began
// after it is recorded as one of all.
func demoteExpensive(g *Governor) (demoted bool, err error) {
	names, shares := g.anchors.tooExpensive(), g.anchors.shares
	demoted, err = g.demote(names)
	if !demoted || err != nil {
		return demoted, err
	}
	for _, name := range names {
		g.warn(event.Warning{
			TSNS: time.Now().UnixNano(), Kind: "slice", Source: name, Count: 1,
			Detail: fmt.Sprintf("recording every call of this group would take %.1f %% of the job's time: from here on it is recorded in slices, "+
				"like the detail groups", 100*shares[name]),
		})
	}
	return true, nil
}

// overBudget lists the anchor groups to demote, the most expensive first and the one that
// tells steps last. That or the cheapest one stays unless it is too expensive even by
// itself: without any, the job's steps would not be seen one by one (a fleet's agent tells
// by them that a job is slow).
func overBudget(shares map[string]float64, steps string, budget float64, tooMuch func(last string) bool) []string {
	total := 0.0
	shares = maps.Clone(shares)
	delete(shares, referenceName) // it is what tells the weights
	names := make([]string, 0, len(shares))
	for name, share := range shares {
		if total += share; share > 0 {
			names = append(names, name)
		}
	}
	if total <= anchorsHigh*budget {
		return nil
	}
	slices.SortFunc(names, func(a, b string) int {
		if a == steps || b == steps {
			return cmp.Compare(index(a == steps), index(b == steps))
		}
		return cmp.Or(cmp.Compare(shares[b], shares[a]), cmp.Compare(a, b))
	})
	last := len(names) - 1
	for i, name := range names[:last] {
		if total -= shares[name]; total <= anchorsLow*budget {
			return names[:i+1]
		}
	}
	if tooMuch(names[last]) {
		return names
	}
	return names[:last]
}

func index(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
