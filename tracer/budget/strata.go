package budget

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/progress"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// A slice says nothing about a phase that it did not see. So while little of a job is
// known, the Governor looks often whether it has begun something new: to train, or to do
// something else between two steps. The first of each gets a slice at once, of two steps
// at the least, even where that is more than the budget.

const (
	// youngFor is how long after its last first a job is looked at often.
	youngFor = 20 * time.Second
	// watchEvery is how often a young job is looked at in a pause, watchPatiently by who
	// watches it for long: what a second of such a job is like is no great matter.
	watchEvery     = 10 * time.Millisecond
	watchPatiently = 100 * time.Millisecond
	// Functions that the job has begun to use are looked for every learnSoon while there
	// are new ones, every learnYoung while the job is young, and else every CheckEvery.
	learnSoon  = 4 * time.Millisecond
	learnYoung = 20 * time.Millisecond
	freshFor   = time.Second
	// firstSteps is how many whole steps the first slice of them sees.
	firstSteps = 2
	// otherAfter is after how many usual steps without a new one the job does something
	// else.
	otherAfter = 1.6
)

// strata are what the Governor knows of the phases of a job.
type strata struct {
	every   time.Duration // in a pause a young job is looked at
	steps   uint64        // at the last look
	stepAt  time.Time     // when the last step was seen to begin
	first   time.Time     // when the first was
	looked  time.Time
	learnt  time.Time     // when functions were looked for
	fresh   time.Time     // when one was found that is new
	trained uint64        // most steps that a slice has seen
	other   time.Time     // until when a slice saw something that is no training, behind stepAt
	gaps    int           // slices that began for what lies between steps
	again   int           // likewise, for what went on behind such a slice
	granted bool          // a slice began, or went on, though the budget had no room for it
	stalls  int           // slices that began for what lies between steps, and it was a stall of one
	resumed time.Duration // how long after the step before the next one began, in such a slice
	between uint64        // the step behind which the present slice began for what lies between steps; 0: it did not
}

// grantedGaps is for how many times between steps a slice begins out of turn, forgivenStalls
// how many stalls of a step, which look like that, are not counted; mostStall is how much
// longer than two steps one is at the most.
const (
	grantedGaps    = 2
	forgivenStalls = 2
	mostStall      = 60 * time.Millisecond
)

// What lies between steps may be several things: a job evaluates, and then it ends. So it is
// looked at again, up to grantedAgain times, when it has gone on for againAfter, or for half
// as long as until the slice before ended.
const (
	grantedAgain = 4
	againAfter   = 100 * time.Millisecond
	// Such a slice goes on until the next step begins, or the job ends, for gapMost or while
	// its hits have cost the job no more than gapCost, if the budget has room for that: an
	// evaluation that is over calls nothing more, and no other slice may see that.
	gapMost = time.Second
	gapCost = 25 * time.Millisecond
)

// look notes how many steps there were.
func (s *strata) look(now time.Time, steps uint64) {
	s.looked = now
	if steps > s.steps {
		if s.first.IsZero() {
			s.first = now
		}
		if s.between > 0 && s.between == s.steps {
			s.resumed = now.Sub(s.stepAt)
		}
		s.stepAt = now
	}
	s.steps = steps
}

// young reports whether the job has done something for the first time lately.
func (s *strata) young(now time.Time) bool {
	return now.Sub(s.fresh) < youngFor || !s.first.IsZero() && now.Sub(s.first) < youngFor
}

// unseen reports whether the job does, in a pause, what no slice has seen.
func (s *strata) unseen(now time.Time, usual time.Duration) bool {
	if s.steps == 0 {
		return false
	}
	if s.trained < firstSteps {
		s.granted = true
		return true
	}
	switch {
	case usual <= 0 || now.Sub(s.stepAt) < max(time.Duration(otherAfter*float64(usual)), time.Duration(progress.LeastStall)):
		return false
	case s.other.After(s.stepAt):
		if s.again >= grantedAgain || now.Sub(s.other) < max(againAfter, s.other.Sub(s.stepAt)/2) {
			return false
		}
		s.again++
	case s.gaps >= grantedGaps:
		return false
	default:
		s.gaps++
	}
	s.granted, s.between = true, s.steps
	return true
}

// wentOn reports whether the steps went on in a slice that began for what lies between two
// of them: it has seen what it is for.
func (s *strata) wentOn() bool { return s.resumed > 0 && s.trained >= firstSteps }

// awaitsGap reports whether the present slice began for what lies between two steps and
// should see the end of that.
func awaitsGap(s *slicer, m weights.Mark, rate float64) bool {
	length := m.At.Sub(s.on.At)
	cost := time.Duration(rate * float64(length))
	return s.strata.between > 0 && s.strata.between == s.strata.steps && length < gapMost && cost < gapCost && s.account.hasRoom(cost)
}

// close notes what a slice has seen.
func (s *strata) close(on, off weights.Mark, usual time.Duration) {
	if s.resumed > 0 && s.resumed < usual*2+mostStall && s.stalls < forgivenStalls && s.gaps > 0 {
		s.stalls++
		s.gaps--
	}
	s.between, s.resumed = 0, 0
	if off.Steps > on.Steps {
		s.trained = max(s.trained, off.Steps-on.Steps-1)
	}
	if off.At.Sub(s.stepAt) > time.Duration(otherAfter*float64(usual))+weights.LeastGap {
		s.other = off.At
	}
}

// awaitsStratum reports whether the present slice should go on: it has begun to see
// steps and has not seen two whole ones, or no slice has.
func (s *slicer) awaitsStratum() bool {
	i, job := &s.interval, &s.strata
	if i.on.At.IsZero() || job.steps == 0 || len(s.probes.Steps()) == 0 {
		return false
	}
	began, length := job.steps-min(job.steps, i.on.Steps), job.looked.Sub(i.on.At)
	switch {
	case began > firstSteps:
		job.trained = max(job.trained, firstSteps)
		return false
	case began == 0 && job.trained >= firstSteps, job.wentOn():
		return false
	case length >= maxWhole:
		job.trained = firstSteps // or it never will be
		return false
	}
	if seen := since(i.before, s.probes.Hits(s.attached)); s.account.price(seen, length) >= wholeCost {
		job.trained = firstSteps
		return false
	}
	job.granted = true
	return true
}

// learnEvery is how often to look for functions that the job has begun to use.
func (s *strata) learnEvery(now time.Time) time.Duration {
	switch {
	case now.Sub(s.fresh) < freshFor, !s.first.IsZero() && now.Sub(s.first) < freshFor:
		return learnSoon
	case s.young(now):
		return learnYoung
	}
	return CheckEvery / 4
}
