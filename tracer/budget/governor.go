package budget

import (
	"fmt"
	"math"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/event"
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
	// weightSteps is the least number of steps in a slice by which all its rows are
	// weighed alike. Of fewer, each place in a step is weighed by itself.
	weightSteps = 8
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
	probes   Probes
	job      Job
	switches Switches
	rows     Rows
	warn     func(event.Warning)
	threads  func() (Threads, error)
	budget   float64 // share of the job's own time; 0 records everything
	whole    *whole  // judges what is recorded where there are no slices; nil: there are
	clock    *jobClock
	cost     HitCost

	phase     phase
	until     time.Time
	epoch     uint32
	begun     time.Time     // when the job was first looked at
	spent     time.Duration // estimated cost to the job since its clock was reset
	slices    int
	stalls    time.Duration // estimated, of all slices
	processes int           // the most that there were at once

	attached  []uint32        // in the present or last slice
	before    map[uint32]Hits // counters when it began
	seen      map[uint32]Hits // what it saw
	on, off   sliceMark       // its bounds
	free      sliceMark       // the end of the slice before
	judged    judgedSlice     // the present or last slice
	onTime    time.Duration   // its length, for planning the next
	counter   *nodeCounter
	reference *reference // what is counted where there are neither steps nor nodes
	nodes     *NodeClock // what tells their number where no probe counts them
	steps     *StepClock // where in its step each process was
	ledger    *ledger
	strata    strata
	checked   sliceMark

	anchors    anchorAccount // of the anchor groups that are not in slices
	correction float64       // of the estimated cost of a hit, by how much longer the steps in slices were than those outside
	calm       int           // slices in a row that cost far less than the budget

	// thinned is for how many calls beyond themselves the rows of each probe stand. It
	// belongs to the goroutine that Rows runs on.
	thinned map[uint32]float64
}

// sliceMark is one moment, in time, in training steps and in autograd nodes.
type sliceMark struct {
	at      time.Time
	steps   uint64
	nodes   uint64
	counted bool // nodes is known
}

// busyProcesses is over how many processes the hits are spread.
func (g *Governor) busyProcesses() int {
	n := max(1, len(g.job.Processes()))
	g.processes = max(g.processes, n)
	return n
}

func (g *Governor) mark() sliceMark {
	m := sliceMark{at: time.Now(), steps: g.probes.PastSteps()}
	for _, index := range g.probes.Steps() {
		if calls, ok := g.probes.Calls(index); ok {
			m.steps += calls
		}
	}
	if g.reference != nil {
		if calls, ok := g.reference.counting.Calls(); ok {
			m.steps = g.reference.base + calls
		}
	}
	g.nodes.tick(m.at)
	g.tickJob(m.at)
	m.nodes, m.counted = g.countNodes(m.at)
	g.ledger.look(m)
	g.strata.look(m.at, m.steps)
	return m
}

// countNodes reads how many autograd nodes the job has made.
func (g *Governor) countNodes(now time.Time) (nodes uint64, known bool) {
	return g.counter.read(now, g.job.Libraries, g.job.Processes())
}

// tickJob looks how much of the time was the job's.
func (g *Governor) tickJob(now time.Time) { g.clock.tick(now, g.job.Processes()) }

// allowance is the budget as a share of the time, as much of it as the job has of
// late.
func (g *Governor) allowance() float64 { return g.budget * g.clock.share }

// leastPause is the shortest.
const leastPause = 5 * time.Millisecond

// paid reports whether the pause is over: the job has had the time that what was spent is
// the budget of. How long that takes goes by how much of the time is the job's, which
// may be another before it is over.
func (g *Governor) paid(now time.Time) bool {
	if over := now.After(g.until); !over && now.Sub(g.clock.at) < repayEvery {
		return false
	} else if g.tickJob(now); over || now.Add(g.clock.until(g.spent, g.budget)).Before(g.until) {
		g.until = now.Add(g.clock.until(g.spent, g.budget) - leastPause)
	}
	return now.After(g.until)
}

// Begin is called once there are processes; Step is called from then on.
func (g *Governor) Begin() error {
	if g.budget > 0 {
		g.counter = newNodeCounter(g.threads)
	}
	if g.budget <= 0 || g.whole != nil {
		g.steps.forget(math.MaxInt64) // no slice is ever weighed by them
	}
	g.begun = g.mark().at
	g.ledger.first = g.begun.UnixNano()
	g.ledger.began = g.ledger.first
	g.clock.reset()
	g.anchors = anchorAccount{at: g.begun, before: g.probes.Hits(g.probes.Anchors())}
	if g.budget <= 0 {
		g.phase = phaseFull
		return g.probes.AttachAll()
	}
	if g.whole != nil {
		g.whole.begin(g)
	}
	g.rows.Hold(true)
	return g.Step()
}

// Step does what is due.
func (g *Governor) Step() error {
	now := time.Now()
	if g.phase == phaseOff && g.counter.due(now) {
		g.mark()
	}
	if g.budget > 0 {
		g.settle(now, 0)
	}
	switch {
	case g.phase == phaseFull:
		return g.checkFull(now)
	case g.phase == phaseTrial:
		return g.judgeTrial(now)
	case g.phase == phaseOn:
		if err := g.extend(0); err != nil || !now.After(g.until) || g.awaitsStratum() {
			return err
		}
		return g.endSlice()
	case g.phase == phaseIdle, g.phase == phaseOff && g.paid(now):
		return g.next()
	case g.phase == phaseOff:
		return g.watchPause(now)
	}
	return nil
}

// watchPause looks after the job between two slices.
func (g *Governor) watchPause(now time.Time) error {
	if g.strata.young(now) && now.Sub(g.strata.looked) >= watchEvery {
		g.mark()
		if g.strata.unseen(now, g.steps.usual()) {
			// On trial: what is not training may be cheap enough to be recorded whole.
			if known, _ := g.probes.Learn(); known > 0 {
				return g.beginSlice(phaseTrial)
			}
		}
	}
	if now.Sub(g.off.at) > anchorWindow && now.Sub(g.anchors.at) > g.look()/2 {
		g.nodes.tick(now)
		g.tickJob(now)
		demoted, err := g.judgeAnchors() // not only at the end of a long pause
		if err != nil || !demoted {
			return err
		}
		// What was in all the time until now gets a slice at once, whatever is left of the
		// pause: on a short run nothing would stand for it else.
		g.onTime = firstDemoted
		if known, _ := g.probes.Learn(); known > 0 {
			return g.beginSlice(phaseOn)
		}
	}
	return nil
}

// next begins a slice, if there is anything to record in it.
func (g *Governor) next() error {
	if g.whole != nil {
		return g.whole.judge(g)
	}
	demoted, err := g.judgeAnchors()
	if err != nil {
		return err
	}
	looked := time.Now()
	if known, _ := g.probes.Learn(); known == 0 {
		g.ledger.began = looked.UnixNano() // until here nothing can have been called
		return nil
	}
	switch {
	case g.phase == phaseIdle && !demoted:
		return g.beginSlice(phaseTrial)
	case demoted:
		g.onTime = firstDemoted
	case g.calm >= calmSlices:
		g.calm = 0
		return g.beginSlice(phaseTrial)
	}
	return g.beginSlice(phaseOn)
}

// Wait is how long Step has time.
func (g *Governor) Wait() time.Duration {
	now := time.Now()
	switch g.phase {
	case phaseTrial:
		return min(learnSoon, g.learnEvery(now))
	case phaseOn, phaseOff:
		look := g.look()
		if g.counter.counting() {
			look = min(look, nodeEvery)
		}
		if g.strata.young(now) {
			look = watchEvery
		}
		return max(time.Millisecond, min(time.Until(g.until), look))
	case phaseFull:
		if g.budget > 0 {
			return g.learnEvery(now)
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

// look is how often the anchor groups are judged in a pause: often while little
// is known of the job, then seldom, since looking takes CPU time as well.
func (g *Governor) look() time.Duration {
	if g.slices <= calmSlices {
		return anchorWindow
	}
	return cpuEvery
}

// beginSlice puts the probes in and, once all are, lets them record.
func (g *Governor) beginSlice(p phase) error {
	g.attached = g.probes.Used()
	if err := g.switches.SetDetail(false); err != nil {
		return fmt.Errorf("beginning a slice: %w", err)
	}
	if err := g.probes.Attach(g.attached); err != nil {
		return err
	}
	g.before = g.probes.Hits(g.attached)
	if err := g.switches.SetDetail(true); err != nil {
		return fmt.Errorf("beginning a slice: %w", err)
	}
	g.on = g.mark()
	g.openInterval(g.on)
	g.phase, g.until = p, g.on.at.Add(maxTrial)
	if p == phaseOn {
		g.until = g.on.at.Add(g.onTime)
	}
	g.checked = g.on
	g.slices++
	return nil
}

// judgeTrial ends the trial when it has seen enough, and decides whether the
// detail groups can stay.
func (g *Governor) judgeTrial(now time.Time) error {
	if err := g.extend(0); err != nil {
		return err
	}
	m := g.mark()
	if now.Before(g.until) && (m.steps < g.on.steps+2*minSliceSteps || m.at.Sub(g.on.at) < minSlice) {
		return nil
	}
	rate := g.rate(m)
	if g.awaitsStep(m, rate) || g.awaitsStratum() {
		return nil
	}
	if rate > g.allowance()*0.8 && !g.solvent(m, rate) {
		return g.endSlice()
	}
	g.charge(m, rate)
	g.phase, g.checked = phaseFull, m
	g.before = g.probes.Hits(g.attached)
	return nil
}

// rate is the share of the job's time that the hits since the slice began have
// cost, and those of what is in all the time, samples included.
func (g *Governor) rate(m sliceMark) float64 {
	elapsed := m.at.Sub(g.on.at) * time.Duration(g.busyProcesses())
	if elapsed <= 0 {
		return 0
	}
	seen := since(g.before, g.probes.Hits(g.attached))
	g.settleAnchors()
	return float64(g.price(seen, elapsed))/float64(elapsed) + g.anchors.share() + g.job.SampleShare()
}

// stopDetail ends what the detail groups record at one moment, before any of
// their probes is gone: a call that is open then has no visible end, and must
// not pass for one that was left by an exception.
func (g *Governor) stopDetail() error {
	g.switches.PrepareRemoval()
	g.epoch++
	if err := g.switches.SetDetail(false); err != nil {
		return fmt.Errorf("ending a slice: %w", err)
	}
	if err := g.switches.SetEpoch(g.epoch); err != nil {
		return fmt.Errorf("ending a slice: %w", err)
	}
	return nil
}

// endSlice takes the probes out and plans the pause that pays for them.
func (g *Governor) endSlice() error {
	if err := g.cutSlice(); err != nil {
		return err
	}
	if g.reference == nil && g.off.steps == g.on.steps && !g.numbered() {
		if err := g.chooseReference(g.off.at.Sub(g.on.at)); err != nil {
			return err
		}
	}
	g.tickJob(time.Now())
	g.until = time.Now().Add(max(g.clock.until(g.spent, g.budget), leastPause))
	return nil
}

// cutSlice takes the probes out, and adds up what they saw.
func (g *Governor) cutSlice() error {
	if err := g.stopDetail(); err != nil {
		return err
	}
	g.free = g.off
	g.off = g.mark()
	inSlice := since(g.before, g.probes.Hits(g.attached))
	g.probes.Detach()
	g.probes.SweepScopes()
	counts := g.probes.Hits(g.attached)
	g.seen = since(g.before, counts)
	g.closeInterval(g.off, counts, true)
	g.account(inSlice)
	g.strata.close(g.ledger.present(), g.off, g.steps.usual())
	g.phase = phaseOff
	return nil
}

// numbered reports whether the slice saw autograd nodes enough to be weighed by, or
// whether the job's steps are known.
func (g *Governor) numbered() bool {
	if nodesCounted(g.on, g.off) || g.steps.longest() > 0 {
		return true
	}
	nodes := uint64(0)
	for index, h := range g.seen {
		if g.probes.At(index).Function.Action == catalog.Sequence {
			nodes += h.Recorded
		}
	}
	return nodes >= weightNodes
}

// account adds up what the slice has cost, and plans the next by it.
func (g *Governor) account(inSlice map[uint32]Hits) {
	processes := time.Duration(g.busyProcesses())
	over := g.off.at.Sub(g.on.at) * processes
	g.correct()
	inside := g.price(inSlice, over) / processes
	g.judged = judgedSlice{g.free, g.on, g.off, g.epoch - 1, inside, g.manySteps(&interval{on: g.on, off: g.off, seen: g.seen})}
	all, stall := g.price(g.seen, over)/processes, g.stall()
	g.settleAnchors()
	g.spent += all + stall
	g.stalls += stall * processes
	g.planNext(inside, stall+all-inside)
	if float64(inside)*float64(processes)/float64(max(over, 1))+g.anchors.share() < g.allowance()/2 {
		g.calm++
	} else {
		g.calm = 0
	}
}

// Finish ends the present slice.
func (g *Governor) Finish() error {
	if g.reference != nil {
		defer g.reference.counting.Close()
	}
	switch g.phase {
	case phaseTrial, phaseOn:
		return g.cutSlice()
	case phaseFull:
		if g.budget > 0 {
			return g.cutSlice()
		}
	case phaseOff:
		return nil // it is over already
	}
	return g.stopDetail()
}

// FinishWeights is called once every record has been read.
func (g *Governor) FinishWeights() {
	if g.budget > 0 {
		m := g.mark()
		g.settle(m.at, m.at.UnixNano())
	}
}
