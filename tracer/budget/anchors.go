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

// anchors is the account of the anchor groups that are not in slices.
type anchors struct {
	*joints
	account   *account
	reference *reference
	at        time.Time // of the last look
	before    map[uint32]Hits
	shares    map[string]float64 // of the job's time, by group, between the last two looks
}

// begin has the account begin at a time.
func (a *anchors) begin(at time.Time) {
	a.at, a.before, a.shares = at, a.probes.Hits(a.probes.Anchors()), nil
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
	}
	if a.reference.counts() {
		shares[referenceName] = a.reference.price() / float64(over)
	}
	a.at, a.before, a.shares = now, counts, shares
	a.account.spent += time.Duration(a.share() * float64(over/processes))
}

// tooExpensive lists the groups that cost too much to be in all the time, with a word on
// each. It is called while no detail probe is in.
func (a *anchors) tooExpensive() []string {
	a.settle()
	names := overBudget(a.shares, a.account.allowance())
	for _, name := range names {
		a.warn(event.Warning{
			TSNS: time.Now().UnixNano(), Kind: "slice", Source: name, Count: 1,
			Detail: fmt.Sprintf("recording every call of this group would take %.1f %% of the job's time: from here on it is recorded in slices, like the detail groups", 100*a.shares[name]),
		})
	}
	return names
}

// overBudget lists the anchor groups to demote, the most expensive first. The cheapest one
// stays where it fits by itself, though not as far below as anchorsLow asks for: without
// any, nobody would see the job's steps one by one (a fleet's agent tells by them that a
// job is slow).
func overBudget(shares map[string]float64, budget float64) []string {
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
		return cmp.Or(cmp.Compare(shares[b], shares[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		last := i == len(names)-2
		if total -= shares[name]; total <= anchorsLow*budget || last && total <= anchorsHigh*budget {
			return names[:i+1]
		}
	}
	return names
}
