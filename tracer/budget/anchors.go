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
)

// anchorAccount is what the anchor groups cost.
type anchorAccount struct {
	at     time.Time // of the last look
	before map[uint32]Hits
	shares map[string]float64 // of the job's time, by group, between the last two looks
}

// share is that of all groups together.
func (a *anchorAccount) share() (sum float64) {
	for _, share := range a.shares {
		sum += share
	}
	return sum
}

// settleAnchors adds what the anchor groups have cost since the last look to
// what is spent, if that is long enough ago to judge by.
func (g *Governor) settleAnchors() {
	now := time.Now()
	if now.Sub(g.anchors.at) < anchorWindow {
		return
	}
	processes := time.Duration(g.busyProcesses())
	over := now.Sub(g.anchors.at) * processes
	counts := g.probes.Hits(g.probes.Anchors())
	seen := since(g.anchors.before, counts)
	pace, taking := g.pace(seen, over), g.job.TakingCost()
	shares := map[string]float64{}
	for index, h := range seen {
		p := g.probes.At(index)
		shares[p.Group] += g.priceOf(p, h, pace, taking) / float64(over)
	}
	if g.reference != nil {
		shares[referenceName] = g.reference.price(g) / float64(over)
	}
	g.anchors = anchorAccount{now, counts, shares}
	g.spent += time.Duration(g.anchors.share() * float64(over/processes))
}

// overBudget lists the anchor groups to demote, the most expensive first.
func overBudget(shares map[string]float64, budget float64) []string {
	total := 0.0
	shares = maps.Clone(shares)
	delete(shares, referenceName) // it is what tells the weights
	names := make([]string, 0, len(shares))
	for name, share := range shares {
		total += share
		names = append(names, name)
	}
	if total <= anchorsHigh*budget {
		return nil
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(shares[b], shares[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		if total -= shares[name]; total <= anchorsLow*budget {
			return names[:i+1]
		}
	}
	return names
}

// judgeAnchors demotes what is too expensive to be in all the time, and reports
// whether it did. It is called while no detail probe is in.
func (g *Governor) judgeAnchors() (demoted bool, err error) {
	g.settleAnchors()
	shares := g.anchors.shares
	names := overBudget(shares, g.allowance())
	if len(names) == 0 {
		return false, nil
	}
	for _, name := range names {
		g.warn(event.Warning{
			TSNS: time.Now().UnixNano(), Kind: "slice", Source: name, Count: 1,
			Detail: fmt.Sprintf("recording every call of this group would take %.1f %% of the job's time: from here on it is recorded in slices, like the detail groups", 100*shares[name]),
		})
	}
	return true, g.demote(names)
}

// demote takes the probes of some groups out, makes detail of them, and begins a new
// stretch: what was recorded so far stands for itself.
func (g *Governor) demote(names []string) error {
	if err := g.switches.SetDetail(false); err != nil {
		return fmt.Errorf("slicing an anchor group: %w", err)
	}
	steps := g.probes.Steps()
	if err := g.probes.Demote(names, g.epoch+1); err != nil {
		return err
	}
	g.epoch++
	if err := g.switches.SetAnchorEpoch(g.epoch); err != nil {
		return fmt.Errorf("slicing an anchor group: %w", err)
	}
	g.probes.SweepScopes()
	if g.whole == nil { // else no slice has to be weighed
		if err := g.keepCounting(steps, names); err != nil {
			return err
		}
	}
	if len(steps) > 0 && len(g.probes.Steps()) == 0 {
		// They are not seen any more: what was before is shared out by them.
		at := time.Now()
		g.settle(at, at.UnixNano())
		g.ledger.restart(at.UnixNano())
		g.steps.forget(at.UnixNano())
	}
	now := g.mark().at.UnixNano()
	for _, name := range names {
		g.ledger.since[name] = now
	}
	g.anchors = anchorAccount{at: time.Now(), before: g.probes.Hits(g.probes.Anchors())}
	return nil
}
