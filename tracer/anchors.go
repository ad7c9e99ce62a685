package tracer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// The anchor groups are meant to be in all the time: a dozen hits a step. On a
// step of half a millisecond even that is several percent, each hit being cold.
// Then the dearest of them go into slices with the detail groups, until the rest
// fits: demoted. A job whose steps are long again ends its slices (governor.calm),
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
	before map[uint32]hits
	shares map[string]float64 // of the job's time, by group, between the last two looks
}

// share is that of all groups together.
func (a *anchorAccount) share() (sum float64) {
	for _, share := range a.shares {
		sum += share
	}
	return sum
}

// anchorProbes lists the probes that are in all the time.
func (s *Session) anchorProbes() map[*tracedFile][]int {
	probes := map[*tracedFile][]int{}
	for _, f := range s.files {
		if usable := s.usable(f, catalog.Anchor); len(usable) > 0 {
			probes[f] = usable
		}
	}
	return probes
}

// settleAnchors adds what the anchor groups have cost since the last look to
// what is spent, if that is long enough ago to judge by.
func (g *governor) settleAnchors() {
	now := time.Now()
	if now.Sub(g.anchors.at) < anchorWindow {
		return
	}
	processes := time.Duration(g.session.busyProcesses())
	over := now.Sub(g.anchors.at) * processes
	counts := g.session.hitsOf(g.session.anchorProbes())
	seen := since(g.anchors.before, counts)
	pace, stack := g.pace(seen, over), g.session.stackCost()
	shares := map[string]float64{}
	for index, h := range seen {
		p := g.session.probes.at(index)
		shares[p.planned.Group.Name] += g.priceOf(p, h, pace, stack) / float64(over)
	}
	if g.reference != nil {
		shares[referenceName] = g.reference.price(g) / float64(over)
	}
	g.anchors = anchorAccount{now, counts, shares}
	g.spent += time.Duration(g.anchors.share() * float64(over/processes))
}

// tooDear lists the anchor groups to demote, the dearest first.
func tooDear(shares map[string]float64, budget float64) []string {
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

// judgeAnchors demotes what is too dear to be in all the time, and reports
// whether it did. It is called while no detail probe is in.
func (g *governor) judgeAnchors() (demoted bool, err error) {
	g.settleAnchors()
	shares := g.anchors.shares
	names := tooDear(shares, g.allowance())
	if len(names) == 0 {
		return false, nil
	}
	for _, name := range names {
		g.demoted[name] = true
		g.session.warn(Warning{
			TSNS: time.Now().UnixNano(), Kind: "slice", Source: name, Count: 1,
			Detail: fmt.Sprintf("recording every call of this group would take %.1f %% of the job's time: from here on it is recorded in slices, like the detail groups", 100*shares[name]),
		})
	}
	return true, g.demote()
}

// demote takes the probes of the groups that are demoted now out, makes detail
// of them, and begins a new stretch: what was recorded so far stands for itself.
func (g *governor) demote() error {
	s := g.session
	if g.ended {
		now := g.mark()
		g.release(g.cycleStart)
		g.closeStretch(now)
		g.release(now)
		g.ended = false
	}
	if err := s.kernel.setDetail(false); err != nil {
		return fmt.Errorf("slicing an anchor group: %w", err)
	}
	s.decoder.slicing.Store(true)
	for _, f := range s.files {
		if err := g.demoteFile(f); err != nil {
			return err
		}
	}
	g.epoch++
	if err := s.kernel.setAnchorEpoch(g.epoch); err != nil {
		return fmt.Errorf("slicing an anchor group: %w", err)
	}
	s.sweepScopes()
	if err := g.keepCounting(); err != nil {
		return err
	}
	s.steps = slices.DeleteFunc(s.steps, func(p *probe) bool { return g.demoted[p.planned.Group.Name] })
	if len(s.steps) == 0 {
		g.steps.forget()
	}
	g.cycleStart = g.mark()
	for _, p := range s.probes.all() {
		p.covered = g.cycleStart
	}
	g.anchors = anchorAccount{at: time.Now(), before: s.hitsOf(s.anchorProbes())}
	return nil
}

// demoteFile is demote for the probes of one file.
func (g *governor) demoteFile(f *tracedFile) error {
	for i := range f.plan.Probes {
		planned := &f.plan.Probes[i]
		if !g.demoted[planned.Group.Name] || planned.spec.Flags&uint16(bpf.CallSpecFlagSPEC_DETAIL) != 0 {
			continue
		}
		g.session.probes.at(f.base + uint32(i)).makeDetail(g.epoch + 1)
		if err := g.session.kernel.setSpec(f.base+uint32(i), &planned.spec); err != nil {
			return fmt.Errorf("slicing an anchor group: %w", err)
		}
	}
	for name, tier := range f.anchor {
		if g.demoted[name] {
			g.session.detaching.closeTier(tier)
			delete(f.anchor, name)
		}
	}
	return nil
}

// makeDetail puts an anchor probe into the slices from an epoch on.
func (p *probe) makeDetail(since uint32) {
	p.planned.spec.Flags |= uint16(bpf.CallSpecFlagSPEC_DETAIL)
	p.used = true
	p.slicedSince.Store(since)
}

// sweepScopes ends the scopes that began in a slice that is over: nobody sees
// their end any more.
func (s *Session) sweepScopes() {
	if !s.governor.demoted["scope"] {
		return
	}
	for _, c := range s.kernel.takeScopes() {
		s.do(func(d *decoder) { d.leave(c) })
	}
}
