package budget

import (
	"math"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// What the probes cost the job, as far as counted hits show it.

// HitCost is what one hit costs the job, nanoseconds, by site.Cost.
type HitCost struct {
	Warm [3]float64 // in a loop of nothing else
	Cold float64    // how much more when the job has used the caches in between
}

const (
	// inPlace is how much more expensive a hit is in a real job than in the calibration
	// loop: the record has to be written, and more maps are looked up than the
	// program that counts does (0.9 against 0.55 µs on the design's machine).
	inPlace = 1.8
	// inPlaceCold is that for what cold caches cost: the job has also replaced
	// what the CPU had learnt of the kernel's code (the dozen hits in a step of
	// 0.53 ms took 3.4 µs each, where the loop says 1.2).
	inPlaceCold = 3.0
	// stallPerSite is how long one site stalls the job, going in and coming out
	// together, and stallPerSlice what comes on top of it once (docs/overhead-appendix.md).
	stallPerSite  = 5 * time.Microsecond
	stallPerSlice = 4 * time.Millisecond

	// budgetShare is the share of the budget that the account may fill. The rest is for
	// what it does not see: reading and writing the records on the other thread
	// of the job's core, caches that a sample leaves cold (a usual step between
	// the slices is 1 to 2.5 % longer at the level window, docs/overhead-appendix.md).
	budgetShare = 0.5
	// leastShare is what of it the account has at the least, whatever the rest of the recording takes,
	// and leastSlices what of it slices have beside what is recorded all the time.
	leastShare  = 0.25
	leastSlices = 0.1

	// correctBy is how much of a slice's surprise is believed, as an exponent: where steps vary
	// by far more than the probes take, a slice is a surprise in either direction as often, and
	// the correction stays where it is. mostCorrection is how far the estimates may be
	// corrected in all.
	correctBy      = 0.3
	mostCorrection = 3.0

	// A hit that comes soonAfter the one before it finds the caches warm; lateAfter
	// it, the job has filled them with its own.
	soonAfter = 3 * time.Microsecond
	lateAfter = 30 * time.Microsecond
)

// account is what the probes have cost the job, and how much of that its budget has
// room for.
type account struct {
	*joints
	budget     float64 // share of the job's own time that probes may take; 0 records everything
	whole      float64 // that all of the recording may take
	cost       HitCost
	clock      *progress.JobClock
	correction float64       // of the estimated cost of a hit, by how much longer the steps in slices were than those outside
	spent      time.Duration // estimated cost to the job since its clock was reset
	stalls     time.Duration // estimated, of all slices
	processes  int           // the most that there were at once
}

// busyProcesses is over how many processes the hits are spread.
func (a *account) busyProcesses() int {
	n := max(1, len(a.job.Processes()))
	a.processes = max(a.processes, n)
	return n
}

// tick looks how much of the time was the job's.
func (a *account) tick(now time.Time) { a.clock.Tick(now, a.job.Processes()) }

// allowance is the budget as a share of the time, as much of it as the job has had
// lately.
func (a *account) allowance() float64 { return a.budget * a.clock.Share }

// beside leaves the probes what the rest of the recording has not taken, as a share of the job's time
// since the beginning: what probes have spent is a sum since then as well, so that the sum of both
// keeps the budget. anchors is what those take that are in all the time: they stay, and slices with
// them.
func (a *account) beside(rest, anchors float64) {
	if a.whole > 0 {
		least := max(leastShare*a.whole, anchors+leastSlices*a.whole)
		a.budget = min(budgetShare*a.whole, max(least, a.whole-rest))
	}
}

// part is what the probes have where the rest takes little, as allowance has it: what goes for good
// goes by that.
func (a *account) part() float64 { return budgetShare * a.whole * a.clock.Share }

// share is what the probes have taken of the job's time.
func (a *account) share() float64 {
	if a.clock.Own <= 0 {
		return 0
	}
	return float64(a.spent) / float64(a.clock.Own)
}

// untilPaid is how long it takes until the job has had the time that what was spent is
// the budget of.
func (a *account) untilPaid() time.Duration { return a.clock.Until(a.spent, a.budget) }

const (
	// leastPause is the shortest.
	leastPause = 5 * time.Millisecond
	// repayEvery is how often a pause looks at what of it was the job's.
	repayEvery = 250 * time.Millisecond
)

// paid reports whether a pause is over that was planned up to a time: the job has had
// the time that what was spent is the budget of. How long that takes goes by how much of
// the time is the job's, which may be another before it is over; then the plan changes.
func (a *account) paid(now time.Time, until *time.Time) bool {
	if over := now.After(*until); !over && now.Sub(a.clock.At) < repayEvery {
		return false
	} else if a.tick(now); over || now.Add(a.untilPaid()).Before(*until) {
		*until = now.Add(a.untilPaid() - leastPause)
	}
	return now.After(*until)
}

// pace is how cold the caches are at a hit, from 0 to 1, when so many come in a
// time.
func pace(seen map[uint32]Hits, over time.Duration) float64 {
	traps := uint64(0)
	for _, h := range seen {
		traps += h.Traps
	}
	if traps == 0 {
		return 1
	}
	gap := over / time.Duration(traps)
	return min(1, max(0, float64(gap-soonAfter)/float64(lateAfter-soonAfter)))
}

// priceOf estimates what the hits of one probe have cost the job, nanoseconds.
func (a *account) priceOf(p Probe, h Hits, cold float64, taking TakingCost) float64 {
	price := float64(h.Traps) * (a.cost.Warm[p.Worst]*inPlace + a.cost.Cold*cold*inPlaceCold)
	price += float64(h.Recorded) * p.Reads
	switch {
	case p.Stack:
		price += float64(h.Recorded) * taking.Stack
	case p.Line:
		price += float64(h.Recorded) * taking.Line
	}
	return price
}

// price estimates what hits in a time of the job have cost it.
func (a *account) price(seen map[uint32]Hits, over time.Duration) time.Duration {
	total, cold, taking := 0.0, pace(seen, over), a.job.TakingCost()
	for index, h := range seen {
		total += a.priceOf(a.probes.At(index), h, cold, taking)
	}
	return time.Duration(total * a.correction)
}

// stall estimates what putting probes in and taking them out costs.
func (a *account) stall(attached []uint32) time.Duration {
	return stallPerSlice + time.Duration(a.probes.Sites(attached))*stallPerSite
}

// countingHit is what a hit costs where it is only counted: the program that
// does it is the one that the calibration measured.
func (a *account) countingHit(p Probe) float64 {
	return a.cost.Warm[p.Entry] + a.cost.Cold
}

// charge puts in what a job that is recorded whole has cost, at a rate for some time, and
// keeps it from saving up for long.
func (a *account) charge(rate float64, over time.Duration, now time.Time) {
	a.spent += time.Duration(rate * float64(over))
	a.tick(now)
	most := time.Duration(a.budget * float64(creditOf))
	if owed := time.Duration(a.budget * float64(a.clock.Own)); owed-a.spent > most {
		a.spent = owed - most
	}
}

// solvent reports whether what was saved up pays for what a job costs that is recorded
// whole for the moment, at a rate for some time, though it costs more than the budget.
func (a *account) solvent(rate float64, over time.Duration, now time.Time) bool {
	a.tick(now)
	due := time.Duration(rate * float64(over))
	return a.spent+due+2*stallPerSlice < time.Duration(a.budget*float64(a.clock.Own))
}

// hasRoom reports whether the whole budget has room for a cost, what the account does not
// see left aside.
func (a *account) hasRoom(cost time.Duration) bool {
	return float64(a.spent+cost) < a.whole*float64(a.clock.Own)
}

// correct learns how far the estimate of a slice's hits is off, from what the job really
// lost. One slice is a noisy witness: a share of its word, and not for ever.
func (a *account) correct(lost, estimate time.Duration) {
	ratio := min(2, max(0.5, float64(lost)/float64(estimate)))
	a.correction = min(mostCorrection, max(1/mostCorrection, a.correction*math.Pow(ratio, correctBy)))
}

// since is what counters have grown by.
func since(before, now map[uint32]Hits) map[uint32]Hits {
	grown := make(map[uint32]Hits, len(now))
	for index, h := range now {
		b := before[index]
		// Less than before has who came into the place of another.
		grown[index] = Hits{h.Recorded - min(b.Recorded, h.Recorded), h.Traps - min(b.Traps, h.Traps)}
	}
	return grown
}
