package tracer

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
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
	checkEvery   = time.Second
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

// governor keeps what the probes cost the job within the budget. It belongs to
// the manager's goroutine.
type governor struct {
	session *Session
	budget  float64 // share of the job's own time; 0 records everything
	clock   *jobClock
	cost    hitCost

	phase  phase
	until  time.Time
	epoch  uint32
	begun  time.Time     // when the job was first looked at
	spent  time.Duration // estimated cost to the job since its clock was reset
	slices int
	ended  bool // a slice is over whose stretch has not been closed

	attached map[*tracedFile][]int // in the present or last slice
	before   map[uint32]hits       // counters when it began
	seen     map[uint32]hits       // what it saw
	on, off  sliceMark             // its bounds
	free     sliceMark             // the end of the slice before
	judged   judgedSlice           // the present or last slice
	onTime   time.Duration         // its length, for planning the next
	// cycleStart is where the calls begin that the present slice stands for.
	cycleStart sliceMark
	counter    *nodeCounter
	reference  *reference // what is counted where there are neither steps nor nodes
	nodes      *nodeClock // what tells their number where no probe counts them
	steps      *stepClock // where in its step each process was
	last       *stretch   // the slice before, whose rows wait for their weight
	checked    sliceMark

	demoted map[string]bool // anchor groups that are in slices
	anchors anchorAccount   // of those that are not
	dearer  float64         // than estimated the hits were, by the steps in slices and out of them
	calm    int             // slices in a row that cost far less than the budget
}

// hits are the counters of one probe.
type hits struct {
	recorded uint64 // calls
	traps    uint64 // what the job paid for, recorded or not
}

// sliceMark is one moment, in time, in training steps and in autograd nodes.
type sliceMark struct {
	at      time.Time
	steps   uint64
	nodes   uint64
	counted bool // nodes is known
}

func newGovernor(s *Session, budget float64, cost hitCost) *governor {
	return &governor{session: s, nodes: s.decoder.nodes, steps: s.decoder.steps, budget: budgetShare * budget, clock: newJobClock(), cost: cost, epoch: 1, dearer: 1, demoted: map[string]bool{}}
}

// tier is when a group's probes are in.
func (g *governor) tier(group *catalog.Group) catalog.Tier {
	if g.demoted[group.Name] {
		return catalog.Detail
	}
	return group.Tier
}

func (g *governor) mark() sliceMark {
	m := sliceMark{at: time.Now()}
	for _, p := range g.session.steps {
		if c, err := g.session.kernel.count(p.index); err == nil {
			m.steps += c.Entries
		}
	}
	if g.reference != nil {
		if c, err := g.session.kernel.count(referenceSpec); err == nil {
			m.steps = g.reference.base + c.Entries
		}
	}
	g.nodes.tick(m.at)
	g.tickJob(m.at)
	m.nodes, m.counted = g.countNodes(m.at)
	return m
}

// countNodes reads how many autograd nodes the job has made.
func (g *governor) countNodes(now time.Time) (nodes uint64, known bool) {
	return g.counter.read(now, g.session.files, g.session.frameworkProcesses())
}

// tickJob looks how much of the time was the job's.
func (g *governor) tickJob(now time.Time) { g.clock.tick(now, g.session.frameworkProcesses()) }

// allowance is the budget as a share of the time, as much of it as the job has of
// late.
func (g *governor) allowance() float64 { return g.budget * g.clock.share }

// pause is how long nothing may be spent until the budget has room again.
func (g *governor) pause() time.Duration {
	return time.Duration((float64(g.spent)/g.budget - float64(g.clock.own)) / g.clock.share)
}

// begin is called once there are processes; step is called from then on.
func (g *governor) begin() error {
	if g.budget > 0 {
		g.counter = newNodeCounter()
	}
	g.cycleStart = g.mark()
	g.begun = g.cycleStart.at
	g.clock.reset()
	g.anchors = anchorAccount{at: g.begun, before: g.session.hitsOf(g.session.anchorProbes())}
	if g.budget <= 0 {
		g.phase = phaseFull
		return g.session.attachDetail(nil)
	}
	return g.step()
}

// step does what is due.
func (g *governor) step() error {
	now := time.Now()
	if g.phase == phaseOff && g.counter.due(now) {
		g.countNodes(now)
	}
	switch {
	case g.phase == phaseFull:
		return g.checkFull(now)
	case g.phase == phaseTrial:
		return g.judgeTrial(now)
	case g.phase == phaseOn && now.After(g.until):
		return g.endSlice()
	case g.phase == phaseIdle, g.phase == phaseOff && now.After(g.until):
		return g.next()
	case g.phase == phaseOff && now.Sub(g.off.at) > anchorWindow && now.Sub(g.anchors.at) > g.look()/2:
		g.nodes.tick(now)
		g.tickJob(now)
		_, err := g.judgeAnchors() // not only at the end of a long pause
		return err
	}
	return nil
}

// next begins a slice, if there is anything to record in it.
func (g *governor) next() error {
	demoted, err := g.judgeAnchors()
	if err != nil || g.session.learnUsed() == 0 {
		return err
	}
	g.session.decoder.slicing.Store(true)
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

// wait is how long step has time.
func (g *governor) wait() time.Duration {
	switch g.phase {
	case phaseTrial:
		return 5 * time.Millisecond
	case phaseOn, phaseOff:
		look := g.look()
		if g.counter.counting() {
			look = min(look, nodeEvery)
		}
		return max(time.Millisecond, min(time.Until(g.until), look))
	case phaseFull:
		return 250 * time.Millisecond
	}
	if !g.session.anyUsable(catalog.Detail) {
		return idleTick // there is nothing that the job could begin to use
	}
	return 50 * time.Millisecond
}

// idleTick is how often the manager looks after processes that give the governor
// nothing to do.
const idleTick = time.Second

// look is how often the anchor groups are judged in a pause: often while little
// is known of the job, then seldom, since looking takes CPU time as well.
func (g *governor) look() time.Duration {
	if g.slices <= calmSlices {
		return anchorWindow
	}
	return cpuEvery
}

// beginSlice puts the probes in and, once all are, lets them record.
func (g *governor) beginSlice(p phase) error {
	g.attached = g.session.usedDetail()
	if err := g.session.kernel.setDetail(false); err != nil {
		return fmt.Errorf("beginning a slice: %w", err)
	}
	if err := g.session.attachDetail(g.attached); err != nil {
		return err
	}
	if g.ended {
		now := g.mark()
		g.release(g.cycleStart)
		g.closeStretch(now)
	}
	g.before = g.session.hitsOf(g.attached)
	if err := g.session.kernel.setDetail(true); err != nil {
		return fmt.Errorf("beginning a slice: %w", err)
	}
	g.on = g.mark()
	g.ended = false
	g.phase, g.until = p, g.on.at.Add(maxTrial)
	if p == phaseOn {
		g.until = g.on.at.Add(g.onTime)
	}
	g.slices++
	return nil
}

// judgeTrial ends the trial when it has seen enough, and decides whether the
// detail groups can stay.
func (g *governor) judgeTrial(now time.Time) error {
	m := g.mark()
	if now.Before(g.until) && (m.steps < g.on.steps+2*minSliceSteps || m.at.Sub(g.on.at) < minSlice) {
		return nil
	}
	rate := g.rate(m)
	if g.awaitsStep(m, rate) {
		return nil
	}
	if rate > g.allowance()*0.8 {
		return g.endSlice()
	}
	g.release(g.on)
	g.session.decoder.slicing.Store(false)
	epoch := g.epoch
	g.session.do(func(d *decoder) { d.releaseAsIs(epoch) })
	g.phase, g.checked = phaseFull, m
	g.before = g.session.hitsOf(g.attached)
	return nil
}

// rate is the share of the job's time that the hits since the slice began have
// cost, and those of what is in all the time, samples included.
func (g *governor) rate(m sliceMark) float64 {
	elapsed := m.at.Sub(g.on.at) * time.Duration(g.session.busyProcesses())
	if elapsed <= 0 {
		return 0
	}
	seen := since(g.before, g.session.hitsOf(g.attached))
	g.settleAnchors()
	return float64(g.price(seen, elapsed))/float64(elapsed) + g.anchors.share() + g.session.sampleShare()
}

// since is what counters have grown by.
func since(before, now map[uint32]hits) map[uint32]hits {
	grown := make(map[uint32]hits, len(now))
	for index, h := range now {
		b := before[index]
		grown[index] = hits{h.recorded - b.recorded, h.traps - b.traps}
	}
	return grown
}

// stopDetail ends what the detail groups record at one moment, before any of
// their probes is gone: a call that is open then has no visible end, and must
// not pass for one that was left by an exception.
func (g *governor) stopDetail() error {
	g.session.kernel.hasten()
	g.epoch++
	if err := g.session.kernel.setDetail(false); err != nil {
		return fmt.Errorf("ending a slice: %w", err)
	}
	if err := g.session.kernel.setEpoch(g.epoch); err != nil {
		return fmt.Errorf("ending a slice: %w", err)
	}
	return nil
}

// endSlice takes the probes out and plans the pause that pays for them.
func (g *governor) endSlice() error {
	if err := g.cutSlice(); err != nil {
		return err
	}
	if g.reference == nil && g.off.steps == g.on.steps && !g.numbered() {
		if err := g.chooseReference(g.off.at.Sub(g.on.at)); err != nil {
			return err
		}
	}
	g.tickJob(time.Now())
	g.until = time.Now().Add(max(g.pause(), 5*time.Millisecond))
	return nil
}

// cutSlice takes the probes out, and adds up what they saw.
func (g *governor) cutSlice() error {
	if err := g.stopDetail(); err != nil {
		return err
	}
	g.free = g.off
	g.off = g.mark()
	inSlice := since(g.before, g.session.hitsOf(g.attached))
	g.session.detachDetail()
	g.session.sweepScopes()
	g.seen = since(g.before, g.session.hitsOf(g.attached))
	g.ended = true
	if g.telling() {
		for index, h := range g.seen {
			g.session.probes.at(index).idle = h.recorded == 0
		}
	}
	g.account(inSlice)
	g.phase = phaseOff
	return nil
}

// numbered reports whether the slice saw autograd nodes enough to be weighed by, or
// whether the job's steps are known.
func (g *governor) numbered() bool {
	if nodesCounted(g.on, g.off) || g.steps.longest() > 0 {
		return true
	}
	nodes := uint64(0)
	for index, h := range g.seen {
		if g.session.probes.at(index).planned.Function.Action == catalog.Sequence {
			nodes += h.recorded
		}
	}
	return nodes >= weightNodes
}

// account adds up what the slice has cost, and plans the next by it.
func (g *governor) account(inSlice map[uint32]hits) {
	processes := time.Duration(g.session.busyProcesses())
	over := g.off.at.Sub(g.on.at) * processes
	g.correct()
	inside := g.price(inSlice, over) / processes
	g.judged = judgedSlice{g.free, g.on, g.off, g.epoch - 1, inside, g.manySteps(g.present())}
	all, stall := g.price(g.seen, over)/processes, g.stall()
	g.settleAnchors()
	g.spent += all + stall
	g.planNext(inside, stall+all-inside)
	if float64(inside)*float64(processes)/float64(max(over, 1))+g.anchors.share() < g.allowance()/2 {
		g.calm++
	} else {
		g.calm = 0
	}
}

// checkFull goes back to slices when a job that was cheap to record is not any
// more, and puts in what the job has begun to use.
func (g *governor) checkFull(now time.Time) error {
	if g.budget <= 0 || now.Sub(g.checked.at) < checkEvery {
		return nil
	}
	g.on = g.checked
	m := g.mark()
	rate := g.rate(m)
	if rate <= g.allowance() {
		g.checked = m
		room := time.Duration((g.allowance() - rate) * float64(checkEvery) * float64(g.session.busyProcesses()))
		if err := g.session.attachMore(g, room); err != nil {
			return err
		}
		g.before = g.session.hitsOf(g.attached)
		return nil
	}
	// From here on in slices. The rows so far stand for themselves alone, those
	// that are still on their way included.
	g.session.decoder.slicing.Store(true)
	g.clock.reset()
	g.spent = 0
	if err := g.endSlice(); err != nil {
		return err
	}
	epoch := g.epoch - 1
	g.session.do(func(d *decoder) { d.releaseAsIs(epoch) })
	g.ended, g.cycleStart = false, g.mark()
	for _, p := range g.session.probes.all() {
		p.covered = g.cycleStart
	}
	return nil
}

// finish ends the present slice.
func (g *governor) finish() error {
	if g.reference != nil {
		defer g.reference.close()
	}
	switch g.phase {
	case phaseTrial, phaseOn:
		return g.cutSlice()
	case phaseOff:
		return nil // it is over already
	}
	return g.stopDetail()
}
