package budget

import (
	"fmt"
	"math"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// The budget. A probe hit costs its trap, and thinning inside BPF does not give
// the trap back: only a probe that is not there costs nothing. So when the
// detail groups would cost more than the budget, they are attached in slices:
// in for some training steps, out for many, and every row says how many calls
// it stands for. Putting probes in and taking them out stalls the job as well
// (the kernel patches each site in the job's memory), so a slice attaches only
// the operators that the job is known to use.

const (
	minSliceSteps = 12
	minSlice      = 30 * time.Millisecond
	maxTrial      = 250 * time.Millisecond
	// firstDemoted is the first slice of groups that were recorded whole. The pause
	// behind it pays for that as well and may be most of a recording: with a dozen
	// steps, one call more or less at its ends would be 8 %.
	firstDemoted = 120 * time.Millisecond
	cycleAim     = time.Second
	// fullCut is how long a slice is of a job that is recorded whole, youngCheck how
	// often that is asked for while the job is young, creditOf how much time's budget it
	// may save up.
	fullCut    = 4 * time.Second
	youngCheck = 50 * time.Millisecond
	creditOf   = 4 * time.Second
	// CheckEvery is how often a job whose every call is recorded is looked at.
	CheckEvery = time.Second
	// fixedShare is how much more a slice spends on hits than on being put in
	// and taken out, at the least.
	fixedShare = 2.0
	// calmSlices in a row that cost less than half the budget let the job be
	// recorded whole again, on trial.
	calmSlices = 3
	// A slice lasts for a whole step and stepRoom of one if that is no longer than
	// maxWhole and costs the job no more than wholeCost.
	maxWhole  = 3 * time.Second
	wholeCost = 250 * time.Millisecond
	stepRoom  = 0.3
)

type phase uint8

const (
	phaseIdle  phase = iota // nothing of the detail groups is known to be used yet
	phaseFull               // every detail probe is attached
	phaseTrial              // the first slice, which tells the rate of hits
	phaseOn
	phaseOff
)

// Governor keeps what the probes cost the job within the budget. It belongs to
// the manager's goroutine.
type Governor struct {
	*slicer
	whole   *whole // judges what is recorded where there are no slices; nil: there are
	threads func() (progress.Threads, error)
	begun   time.Time // when the job was first looked at
	ticked  time.Time // when its clocks were read last in a pause
}

// Begin is called once there are processes; Step is called from then on.
func (g *Governor) Begin() error {
	if g.account.budget > 0 {
		g.gauge.Counter = progress.NewNodeCounter(g.threads)
	}
	if g.account.budget <= 0 || g.whole != nil {
		g.gauge.Steps.Forget(math.MaxInt64) // no slice is ever weighed by them
	}
	g.begun = g.mark().At
	g.ledger.Begin(g.begun)
	g.account.clock.Reset()
	g.anchors.begin(g.begun)
	if g.account.budget <= 0 {
		g.phase = phaseFull
		return g.probes.AttachAll()
	}
	if g.whole != nil {
		g.whole.begin(g)
	}
	g.rows.Hold(true)
	return g.Step()
}

// Beside takes what the recording has cost beside the probes, as a share of the job's time since its
// beginning, and returns what the probes have cost. A slice's cost is paid back in the pause after it: what
// of it exceeds their part of the budget is left out, and only anchors, which have no pauses, can exceed it.
func (g *Governor) Beside(rest float64) (probes float64) {
	anchors := g.anchors.share()
	g.account.beside(rest, anchors)
	return min(g.account.share(), max(g.account.budget, anchors))
}

// Step does what is due.
func (g *Governor) Step() error {
	now := time.Now()
	if g.phase == phaseOff && g.gauge.Counter.Due(now) {
		g.mark()
	}
	if g.account.budget > 0 {
		g.ledger.Settle(now, 0, g.attached)
	}
	switch {
	case g.phase == phaseFull:
		return g.checkFull(now)
	case g.phase == phaseTrial:
		return g.judgeTrial(now)
	case g.phase == phaseOn:
		if err := g.extend(0); err != nil || !now.After(g.until) {
			return err
		}
		if m := g.mark(); g.awaitsStratum() || awaitsPass(g.slicer, m) {
			return nil
		}
		return g.end()
	case g.phase == phaseIdle, g.phase == phaseOff && g.account.paid(now, &g.until):
		return g.next()
	case g.phase == phaseOff:
		return g.watchPause(now)
	}
	return nil
}

// watchPause looks after the job between two slices.
func (g *Governor) watchPause(now time.Time) error {
	if g.strata.young(now) && now.Sub(g.strata.looked) >= g.strata.every {
		g.mark()
		if g.strata.unseen(now, g.gauge.Steps.Usual()) {
			// On trial: what is not training may be cheap enough to be recorded whole.
			if known, _ := g.probes.Learn(); known > 0 {
				return g.begin(phaseTrial)
			}
		}
	}
	if now.Sub(g.off.At) <= anchorWindow || now.Sub(g.ticked) <= g.look()/2 {
		return nil
	}
	g.ticked = now
	g.gauge.Nodes.Tick(now)
	g.account.tick(now)
	if now.Sub(g.anchors.at) <= judgeAfter(g.slicer, now) {
		return nil
	}
	demoted, err := demoteExpensive(g) // not only at the end of a long pause
	if err != nil || !demoted {
		return err
	}
	// What was in all the time until now gets a slice at once, whatever is left of the
	// pause: on a short run nothing would stand for it else.
	g.length = firstDemoted
	if known, _ := g.probes.Learn(); known > 0 {
		return g.begin(phaseOn)
	}
	return nil
}

// next begins a slice, if there is anything to record in it.
func (g *Governor) next() error {
	if g.whole != nil {
		return g.whole.judge(g)
	}
	demoted, err := demoteExpensive(g)
	if err != nil {
		return err
	}
	looked := time.Now()
	if known, _ := g.probes.Learn(); known == 0 {
		g.ledger.Unused(looked)
		return nil
	}
	switch {
	case g.phase == phaseIdle && !demoted:
		return g.begin(phaseTrial)
	case demoted:
		g.length = firstDemoted
	case g.calm >= calmSlices:
		g.calm = 0
		return g.begin(phaseTrial)
	}
	return g.begin(phaseOn)
}

// Wait is how long Step has time.
func (g *Governor) Wait() time.Duration {
	now := time.Now()
	switch g.phase {
	case phaseTrial:
		return min(learnSoon, g.strata.learnEvery(now))
	case phaseOn, phaseOff:
		look := g.look()
		if g.gauge.Counter.Counting() {
			look = min(look, progress.NodeEvery)
		}
		if g.strata.young(now) {
			look = g.strata.every
		}
		return max(time.Millisecond, min(time.Until(g.until), look))
	case phaseFull:
		if g.account.budget > 0 {
			return g.strata.learnEvery(now)
		}
		return 250 * time.Millisecond
	}
	if g.whole != nil || !g.probes.AnySliced() {
		return idleTick // there is nothing that the job could begin to use
	}
	return 50 * time.Millisecond
}

// idleTick is how often the manager looks after processes that give the Governor
// nothing to do.
const idleTick = time.Second

// judgeTrial ends the trial when it has seen enough, and decides whether the
// detail groups can stay.
func (g *Governor) judgeTrial(now time.Time) error {
	if err := g.extend(0); err != nil {
		return err
	}
	m := g.mark()
	if now.Before(g.until) && !g.strata.wentOn() && (m.Steps < g.on.Steps+2*minSliceSteps || m.At.Sub(g.on.At) < minSlice) {
		return nil
	}
	rate := g.rate(m)
	if g.awaitsStep(m, rate) || g.awaitsStratum() || awaitsGap(g.slicer, m, rate) {
		return nil
	}
	if rate > g.account.allowance()*0.8 && !g.account.solvent(rate, m.At.Sub(g.checked.At), m.At) {
		return g.end()
	}
	g.account.charge(rate-g.anchors.share()-g.job.SampleShare(), m.At.Sub(g.checked.At), m.At)
	g.phase, g.checked = phaseFull, m
	g.before = g.probes.Hits(g.attached)
	return nil
}

// Finish ends the present slice.
func (g *Governor) Finish() error {
	defer g.reference.close()
	switch g.phase {
	case phaseTrial, phaseOn:
		return g.takeOut()
	case phaseFull:
		if g.account.budget > 0 {
			return g.takeOut()
		}
	case phaseOff:
		return nil // it is over already
	}
	return g.stop()
}

// FinishWeights is called once every record has been read.
func (g *Governor) FinishWeights() {
	if g.account.budget > 0 {
		m := g.mark()
		g.ledger.Settle(m.At, m.At.UnixNano(), g.attached)
	}
}

// demote takes the probes of some groups out, makes detail of them, and begins a new
// stretch: what was recorded so far stands for itself. It reports whether there were any.
func (g *Governor) demote(names []string) (demoted bool, err error) {
	if len(names) == 0 {
		return false, nil
	}
	if err := g.switches.SetDetail(false); err != nil {
		return false, fmt.Errorf("slicing an anchor group: %w", err)
	}
	steps := g.probes.Steps()
	if err := g.probes.Demote(names, g.epoch+1); err != nil {
		return false, err
	}
	g.epoch++
	if err := g.switches.SetAnchorEpoch(g.epoch); err != nil {
		return false, fmt.Errorf("slicing an anchor group: %w", err)
	}
	g.probes.SweepScopes()
	if g.whole == nil { // else no slice has to be weighed
		if err := g.reference.keepCounting(steps, names, time.Since(g.begun)); err != nil {
			return false, err
		}
	}
	if len(steps) > 0 && len(g.probes.Steps()) == 0 {
		// They are not seen any more: what was before is shared out by them.
		g.ledger.Restart(time.Now(), g.attached)
	}
	g.ledger.Sliced(names, g.mark().At)
	g.anchors.begin(time.Now())
	return true, nil
}
