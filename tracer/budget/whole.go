package budget

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Where nothing is recorded in slices, the groups that are in are recorded one and all,
// and the budget is theirs alone. What exceeds it gives way for good: launches before
// the anchor groups, which are few calls and tell more, and of each of the two the
// stacks of its calls before the calls.

// wholeWindow is over how long the groups are judged. Sooner they must have spent all
// that the budget has for so long: a job that begins takes stacks that are not cached
// yet, and to take probes out takes seconds by itself.
const wholeWindow = 2 * time.Second

// whole judges them.
type whole struct {
	at     time.Time // of the last look that was a whole window after the one before
	before map[uint32]Hits
}

// wholePrice is what a group's calls take of the job's time.
type wholePrice struct {
	share    float64
	stacks   float64 // part of it
	launches bool
}

// begin has the next look judge what is called from now on.
func (w *whole) begin(g *Governor) {
	w.at, w.before = time.Now(), g.probes.Hits(g.probes.Anchors())
}

// judge takes out what is too expensive.
func (w *whole) judge(g *Governor) error {
	now := time.Now()
	elapsed := now.Sub(w.at)
	if elapsed < anchorWindow {
		return nil
	}
	g.account.tick(now)
	counts := g.probes.Hits(g.probes.Anchors())
	prices := w.prices(g, since(w.before, counts), elapsed)
	if elapsed >= wholeWindow {
		w.at, w.before = now, counts
	}
	withoutStacks, out := giveWay(prices, g.account.part())
	if len(withoutStacks)+len(out) == 0 {
		return nil
	}
	room := fmt.Sprintf("of which the budget has %.1f %% for hits of probes", 100*g.account.part())
	if err := g.probes.LeaveStacks(slices.Concat(withoutStacks, out)); err != nil {
		return err
	}
	if _, err := g.demote(out); err != nil {
		return err
	}
	for _, name := range withoutStacks {
		g.warnWhole(name, fmt.Sprintf("the stacks of this group's calls would take %.1f %% of the job's time, %s: from here on its calls are "+
			"recorded without them",
			100*prices[name].stacks, room))
	}
	for _, name := range out {
		g.warnWhole(name, fmt.Sprintf("recording every call of this group, without stacks, would take %.1f %% of the job's time, %s: from here "+
			"on it is left out, "+
			"since without uprobe.multi (Linux 6.6) probes come out one by one, too slowly for slices; a larger --budget may have room, --budget "+
			"off records every call",
			100*(prices[name].share-prices[name].stacks), room))
	}
	w.begin(g)
	return nil
}

func (j *joints) warnWhole(group, detail string) {
	j.warn(event.Warning{TSNS: time.Now().UnixNano(), Kind: "slice", Source: group, Count: 1, Detail: detail})
}

// prices are those of what was seen, by group, as shares of a window at the least.
func (w *whole) prices(g *Governor, seen map[uint32]Hits, elapsed time.Duration) map[string]wholePrice {
	processes := time.Duration(g.account.busyProcesses())
	over := float64(max(elapsed, wholeWindow) * processes)
	cold, taking := pace(seen, elapsed*processes), g.job.TakingCost()
	prices := map[string]wholePrice{}
	for index, h := range seen {
		p := g.probes.At(index)
		of := prices[p.Group]
		of.launches = p.Launches
		of.share += g.account.priceOf(p, h, cold, taking) / over
		if p.Stack {
			of.stacks += float64(h.Recorded) * taking.Stack / over
		}
		prices[p.Group] = of
	}
	return prices
}

// giveWay lists the groups that lose their stacks, and those that go, so that the rest
// is within the budget.
func giveWay(prices map[string]wholePrice, budget float64) (withoutStacks, out []string) {
	total := 0.0
	for _, p := range prices {
		total += p.share
	}
	for _, launches := range []bool{true, false} {
		names := slices.SortedFunc(maps.Keys(prices), func(a, b string) int {
			return cmp.Or(cmp.Compare(prices[b].share, prices[a].share), cmp.Compare(a, b))
		})
		names = slices.DeleteFunc(names, func(name string) bool { return prices[name].launches != launches })
		for _, name := range names {
			if total > budget && prices[name].stacks > 0 {
				total -= prices[name].stacks
				withoutStacks = append(withoutStacks, name)
			}
		}
		for _, name := range names {
			if total > budget && prices[name].share > prices[name].stacks {
				total -= prices[name].share - prices[name].stacks
				out = append(out, name)
			}
		}
	}
	return slices.DeleteFunc(withoutStacks, func(name string) bool {
		if slices.Contains(out, name) {
			return true
		}
		if total+prices[name].stacks > budget {
			return false
		}
		total += prices[name].stacks // what went after it has left room for them
		return true
	}), out
}
