package budget

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/progress"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// judgedSlice is what a slice's hits were thought to cost, and the marks that
// tell what they did.
type judgedSlice struct {
	free     weights.Mark // the end of the slice before
	on, off  weights.Mark
	epoch    uint32
	estimate time.Duration
	many     bool // steps, so that those which it cut do not matter
}

// slice is the present slice, or the last one.
type slice struct {
	phase    phase
	until    time.Time       // when it ends, or the pause behind it
	attached []uint32        // the probes in it
	before   map[uint32]Hits // counters when it began
	seen     map[uint32]Hits // what it saw
	on, off  weights.Mark    // its bounds
	interval interval        // the present part of it
}

// slicer puts the probes of slices in, takes them out, and knows what that has cost.
type slicer struct {
	*joints
	slice
	account   *account
	gauge     *weights.Gauge
	ledger    *weights.Ledger
	reference *reference
	anchors   *anchors
	strata    strata
	epoch     uint32
	free      weights.Mark  // the end of the slice before
	judged    judgedSlice   // the present or last slice
	length    time.Duration // of the next
	checked   weights.Mark  // the last look at a job that is recorded whole
	count     int           // slices so far
	calm      int           // slices in a row that cost far less than the budget
}

// mark is now.
func (s *slicer) mark() weights.Mark {
	m := s.gauge.Mark()
	s.account.tick(m.At)
	s.ledger.Look(m)
	s.strata.look(m.At, m.Steps)
	return m
}

// look is how often the job's clocks are read in a pause: often while little is known of
// the job, then seldom, since looking takes CPU time as well.
func (s *slicer) look() time.Duration {
	if s.count <= calmSlices && s.account.clock.Own < calmAfter {
		return anchorWindow
	}
	return progress.CPUEvery
}

// calmAfter is how much of its own time a job has had that is known well enough, however few
// slices it had.
const calmAfter = time.Minute

// judgeAfter is after how long the anchor groups are judged again in a pause. What a job
// that has done nothing for the first time lately calls more often from now on costs it no
// more: what is spent until it is seen makes the next pauses longer.
func judgeAfter(s *slicer, now time.Time) time.Duration {
	if look := s.look(); look < progress.CPUEvery || s.strata.young(now) {
		return look / 2 // at each of these looks
	}
	return judgeSeldom
}

// judgeSeldom is of a job that is watched for long: to read the counts of all its probes
// takes half a millisecond.
const judgeSeldom = 2 * time.Second

// begin puts the probes in and, once all are, lets them record.
func (s *slicer) begin(p phase) error {
	s.attached = s.probes.InUse()
	if err := s.switches.SetDetail(false); err != nil {
		return fmt.Errorf("beginning a slice: %w", err)
	}
	if err := s.probes.Attach(s.attached); err != nil {
		return err
	}
	s.before = s.probes.Hits(s.attached)
	if err := s.switches.SetDetail(true); err != nil {
		return fmt.Errorf("beginning a slice: %w", err)
	}
	s.on = s.mark()
	s.openInterval(s.on)
	s.phase, s.until = p, s.on.At.Add(maxTrial)
	if p == phaseOn {
		s.until = s.on.At.Add(s.length)
	}
	s.checked = s.on
	s.count++
	return nil
}

// rate is the share of the job's time that the hits since the slice began have
// cost, and those of what is in all the time, samples included.
func (s *slicer) rate(m weights.Mark) float64 {
	elapsed := m.At.Sub(s.on.At) * time.Duration(s.account.busyProcesses())
	if elapsed <= 0 {
		return 0
	}
	seen := since(s.before, s.probes.Hits(s.attached))
	s.anchors.settle()
	return float64(s.account.price(seen, elapsed))/float64(elapsed) + s.anchors.share() + s.job.SampleShare()
}

// stop ends what the detail groups record at one moment, before any of
// their probes is gone: a call that is open then has no visible end, and must
// not pass for one that was left by an exception.
func (s *slicer) stop() error {
	s.switches.PrepareRemoval()
	s.epoch++
	if err := s.switches.SetDetail(false); err != nil {
		return fmt.Errorf("ending a slice: %w", err)
	}
	if err := s.switches.SetEpoch(s.epoch); err != nil {
		return fmt.Errorf("ending a slice: %w", err)
	}
	return nil
}

// end takes the probes out and plans the pause that pays for them.
func (s *slicer) end() error {
	if err := s.takeOut(); err != nil {
		return err
	}
	if !s.reference.counts() && s.off.Steps == s.on.Steps && !s.gauge.Numbered(s.on, s.off, recorded(s.seen)) {
		calls, err := s.reference.choose(s.seen, s.off.At.Sub(s.on.At))
		if err != nil {
			return err
		}
		if calls > 0 {
			s.off.Steps = calls
		}
	}
	s.account.tick(time.Now())
	s.until = time.Now().Add(max(s.account.untilPaid(), leastPause))
	return nil
}

// takeOut takes the probes out, and adds up what they saw.
func (s *slicer) takeOut() error {
	if err := s.stop(); err != nil {
		return err
	}
	s.free = s.off
	s.off = s.mark()
	inSlice := since(s.before, s.probes.Hits(s.attached))
	s.probes.Detach()
	s.probes.SweepScopes()
	counts := s.probes.Hits(s.attached)
	s.seen = since(s.before, counts)
	s.closeInterval(s.off, counts, true)
	s.tally(inSlice)
	s.strata.close(s.interval.on, s.off, s.gauge.Steps.Usual())
	s.phase = phaseOff
	return nil
}

// tally adds up what the slice has cost, and plans the next by it.
func (s *slicer) tally(inSlice map[uint32]Hits) {
	processes := time.Duration(s.account.busyProcesses())
	over := s.off.At.Sub(s.on.At) * processes
	s.judged.correct(s.account, s.gauge)
	inside := s.account.price(inSlice, over) / processes
	s.judged = judgedSlice{s.free, s.on, s.off, s.epoch - 1, inside, s.gauge.ManySteps(s.on, s.off, recorded(s.seen))}
	all, stall := s.account.price(s.seen, over)/processes, s.account.stall(s.attached)
	s.anchors.settle()
	s.account.spent += all + stall
	s.account.stalls += stall * processes
	s.planNext(inside, stall+all-inside)
	if float64(inside)*float64(processes)/float64(max(over, 1))+s.anchors.share() < s.account.allowance()/2 {
		s.calm++
	} else {
		s.calm = 0
	}
}

// correct learns how far the estimate of a slice's hits is off, from how far the
// job came in it and between it and the slice before: what the job really lost.
// It is called at the end of the slice after it, when all its records are read.
func (j *judgedSlice) correct(a *account, g *weights.Gauge) {
	if j.estimate <= 0 || j.free.At.IsZero() || !j.on.At.After(j.free.At) || !j.many {
		return
	}
	if lost, ok := g.Lost(j.free, j.on, j.off, j.epoch); ok {
		a.correct(lost, j.estimate)
	}
}
