package weights

import "github.com/ebpfprof/ebpfprof/tracer/progress"

// stretches are up to when slices stand for what the job did.
type stretches struct {
	began int64               // when what slices stand for begins
	first int64               // when the recording began, or began anew
	since map[string]int64    // from when on a group is in slices, where that is later
	upTo  map[stratum]int64   // up to when slices stand for it
	last  map[stratum]int64   // when the last of them began
	past  map[stratum]pastGap // what no slice stands for yet, of steps that are not kept
	alone []aloneIn           // slices whose rows were let go, in stretches that none stands for yet
}

// restart begins anew.
func (x *stretches) restart(at int64) {
	x.began, x.first = at, at
	clear(x.upTo)
	clear(x.last)
	clear(x.past)
	x.alone = nil
}

// from is where the stretch of the next slice of a stratum begins.
func (x *stretches) from(s stratum) int64 {
	from := max(x.began, x.upTo[s])
	if s.phase != anyPhase {
		return max(from, x.upTo[stratum{s.pid, anyPhase}])
	}
	for _, phase := range phases {
		from = max(from, x.upTo[stratum{s.pid, phase}])
	}
	return from
}

// fromOf is where the stretch of the next slice of a stratum begins for a probe, if it
// begins at from for the others of its group. What calls of it there were before it came
// into a slice, no slice stands for yet: they are no earlier than when it was last known
// that there were none.
func (x *stretches) fromOf(s stratum, p *Probe, from int64) int64 {
	if p.UnusedUntil > 0 && p.FirstIn > x.last[s] {
		from = max(x.began, x.since[p.Group])
	}
	return max(from, p.UnusedUntil)
}

// pastGap is how much time of a phase there was up to a time, nanoseconds.
type pastGap struct{ ns, to int64 }

// leave adds up what lies between the steps of a process before a time, from which on
// its steps are still needed: a slice may still come that stands for it.
func (x *stretches) leave(pid int32, t *progress.Timeline, to int64) {
	for _, phase := range phases[1:] { // all but training
		s := stratum{pid, phase}
		if from := x.from(s); from < to {
			x.past[s] = pastGap{x.spent(s, t, from, to), to}
		}
	}
}

// spent is how much time of a phase lies between two times, what was left included.
func (x *stretches) spent(s stratum, t *progress.Timeline, from, to int64) int64 {
	if p := x.past[s]; from < p.to {
		return p.ns + t.Spent(s.phase, p.to, to)
	}
	return t.Spent(s.phase, from, to)
}
