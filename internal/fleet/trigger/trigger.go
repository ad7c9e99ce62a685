// Package trigger decides from the steps of a worker when it has become slow or hangs.
// It is arithmetic over times that are handed to it: it reads no clock.
//
// The two rules and their constants are PerfTracker's.
package trigger

import (
	"slices"
	"time"
)

// Constants are the rules' numbers.
type Constants struct {
	Steps   int           // whose mean counts
	Slower  float64       // than the best mean by this factor is slow
	Recent  time.Duration // how long the best mean counts
	Blocked float64       // without an anchor for so many mean steps
	Least   time.Duration // and at least for so long

	// Repeats of a sequence of calls make it a step, and Patience calls without one have it learnt anew
	// (internal/model/steps).
	Repeats, Patience int
}

// Published are the numbers of the method; Recent and Least are this project's.
var Published = Constants{Steps: 50, Slower: 1.05, Recent: 24 * time.Hour, Blocked: 5, Least: time.Second, Repeats: 10, Patience: 200}

// Kind says what has happened.
type Kind string

// The kinds.
const (
	Slow    Kind = "slow"
	Hanging Kind = "blocked"
)

// Trigger is a degradation.
type Trigger struct {
	Kind Kind
	AtNS int64
	// MeanNS is the mean of the last steps, BestNS the best such mean of the last day.
	MeanNS, BestNS float64
	// IdleNS is how long nothing has happened, of a hanging worker.
	IdleNS int64
}

// Watch is one worker's history. The zero value is not usable: make one with New.
type Watch struct {
	c       Constants
	periods []int64 // the last steps', a ring
	next    int
	full    bool
	sum     int64
	hours   map[int64]float64 // best mean of each hour
	last    int64             // the last anchor
	open    bool              // a step has begun and not ended
	between int64             // the longest time between two steps so far
	blocked bool              // said already
	slow    bool              // by the last full mean
	hangs   bool              // since it was reported; the next anchor ends it
	quiet   int               // steps until a degradation that lasts is reported again
}

// New makes a watch.
func New(c Constants) *Watch {
	return &Watch{c: c, periods: make([]int64, c.Steps), hours: map[int64]float64{}}
}

// Anchor tells that the loop made one of its calls; complete, that the call closed a
// step.
func (w *Watch) Anchor(atNS int64, complete bool) {
	if !w.open && w.full {
		w.between = max(w.between, atNS-w.last)
	}
	w.last, w.open, w.blocked, w.hangs = max(w.last, atNS), !complete, false, false
}

// Step takes the period of a step that ended at a time, and says whether the worker
// has become slow; of a degradation that lasts, once in as many steps as the mean is of.
// Steps that ended before are compared first, so that the first steps after a pause do not
// make a best mean of themselves.
func (w *Watch) Step(atNS, periodNS int64) *Trigger {
	w.sum += periodNS - w.periods[w.next]
	w.periods[w.next] = periodNS
	w.next++
	if w.next == len(w.periods) {
		w.next, w.full = 0, true
	}
	if !w.full {
		return nil
	}
	mean := float64(w.sum) / float64(len(w.periods))
	best, known := w.best(atNS)
	hour := atNS / int64(time.Hour)
	if b, ok := w.hours[hour]; !ok || mean < b {
		w.hours[hour] = mean
	}
	// One long step is a checkpoint and no degradation: the others must be slow, too.
	longest := slices.Max(w.periods)
	others := float64(w.sum-longest) / float64(len(w.periods)-1)
	w.quiet = max(0, w.quiet-1)
	w.slow = known && mean > w.c.Slower*best && others > w.c.Slower*best
	if w.slow && w.quiet == 0 {
		w.quiet = len(w.periods)
		return &Trigger{Kind: Slow, AtNS: atNS, MeanNS: mean, BestNS: best}
	}
	return nil
}

// best is the best mean of the recent hours; what is older is forgotten.
func (w *Watch) best(atNS int64) (best float64, ok bool) {
	oldest := (atNS - w.c.Recent.Nanoseconds()) / int64(time.Hour)
	for hour, mean := range w.hours {
		if hour < oldest {
			delete(w.hours, hour)
			continue
		}
		if !ok || mean < best {
			best, ok = mean, true
		}
	}
	return best, ok
}

// Check says whether a step has begun and nothing has followed for too long; or, between
// two steps, whether the worker has waited for its peers, or its main thread has stood still,
// for too long: since a time (0: neither is so). Where a step begins in a loop is not
// known, so that a worker may hang between two of them, but much else is done there, too,
// which the others wait for: an evaluation or a checkpoint of one rank. So that is no hang
// where a pause before it was nearly as long. It says so once, until the loop goes on.
func (w *Watch) Check(nowNS, waitsSince int64) *Trigger {
	if !w.open && waitsSince == 0 || !w.full || w.blocked {
		return nil
	}
	mean := float64(w.sum) / float64(len(w.periods))
	idle, limit := nowNS-w.last, max(w.c.Blocked*mean, float64(w.c.Least))
	if !w.open {
		idle, limit = nowNS-max(w.last, waitsSince), max(limit, longerPause*float64(w.between))
	}
	if float64(idle) < limit {
		return nil
	}
	w.blocked, w.hangs = true, true
	return &Trigger{Kind: Hanging, AtNS: nowNS, MeanNS: mean, IdleNS: nowNS - w.last}
}

// longerPause is how much longer than any before a pause between two steps has to be.
const longerPause = 1.5

// Now is what lasts: whether it is slow by its last full mean, and whether it has hung since
// that was reported. A trigger is a moment, which who looks once a minute, or during a Restart,
// would miss.
func (w *Watch) Now() (slow, hanging bool) { return w.slow, w.hangs }

// LastNS is the last anchor, 0 before the first.
func (w *Watch) LastNS() int64 { return w.last }

// Restart forgets the steps whose mean was taken, and keeps the best one: after a
// window the next trigger needs as many new steps.
func (w *Watch) Restart() {
	clear(w.periods)
	w.next, w.full, w.sum, w.open, w.blocked, w.quiet = 0, false, 0, false, false, 0
}

// MeanNS is the mean of the last steps, and whether there were enough of them.
func (w *Watch) MeanNS() (mean float64, ok bool) {
	return float64(w.sum) / float64(len(w.periods)), w.full
}
