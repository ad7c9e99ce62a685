package budget

import (
	"math"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// Which slice stands for what. Between two slices the border lies in the middle of the
// pause; the first slice stands for all that was before it, the last for all behind it.
// So whatever the job did belongs to one slice, by process and phase, and the weights of
// the rows follow.

const (
	// settleAfter is how long after a border it is known what the job did before it: its
	// records have been read.
	settleAfter = 500 * time.Millisecond
	// keptBefore is how many steps are kept before those that a slice may still stand for.
	keptBefore = 4
	// keepBack is how long a slice waits for later ones that may have seen more of a
	// phase, and keepYoung how long all slices of a recording's beginning do: what is no
	// longer than that is shared out at its end. With more than keepRows none waits so long.
	keepBack  = 3 * time.Second
	keepYoung = 30 * time.Second
	keepRows  = 200_000
	// A slice stands for others if it saw a whole step, or leastGap of a phase without
	// steps; else its rows stand for themselves alone.
	leastSteps = 1.0
	leastGap   = 10 * time.Millisecond
	// Where no steps are known, a slice is cut into equal parts: of about pieceTime, or of a
	// quarter of what the first slice saw; no more than mostPieces.
	pieceTime   = 25 * time.Millisecond
	firstPieces = 4
	mostPieces  = 400
	// unseenShare is how much of a process's time may lie in no slice's stretch without
	// that being said: the ends of phases, which are too short for a slice.
	unseenShare = 0.02
)

// interval is a time in which the sliced probes recorded.
type interval struct {
	epoch       uint32
	on, off     sliceMark
	over        bool // off is known
	last        bool // of its epoch
	attached    []uint32
	before      map[uint32]Hits // counters when it began
	processes   []int
	seen        map[uint32]Hits
	cost, stall time.Duration // of its hits, and of putting probes in and out
}

// stratum is a phase of a process. Phases without known steps are one, anyPhase.
type stratum struct {
	pid   int32
	phase string
}

const anyPhase = ""

// phases are those of a process whose steps are known.
var phases = [...]string{event.PhaseTraining, event.PhaseEvaluation, event.PhaseOther}

// Share is what a row stands for, and in which slice and whole step it was recorded.
type Share struct {
	Weight float64
	Slice  int64
	Step   int32
}

// alone is the Share of a row that stands for itself.
var alone = Share{Weight: 1}

// ledger knows the slices that wait for their weights.
type ledger struct {
	*joints
	stretches
	gauge   *gauge
	begun   time.Time // when the job was first looked at
	pending []*interval
	piece   map[stratum]float64 // how much of the unit is one
	ids     int64
	history history
	traced  []int // the processes that there were at the last beginning of a slice
	settled time.Time
	// thinned is for how many calls beyond themselves the rows of each probe stand. It
	// belongs to the goroutine that Rows runs on.
	thinned map[uint32]float64
}

func newLedger(with *joints, by *gauge) *ledger {
	return &ledger{
		joints: with, gauge: by, piece: map[stratum]float64{}, thinned: map[uint32]float64{},
		stretches: stretches{since: map[string]int64{}, upTo: map[stratum]int64{}, past: map[stratum]pastGap{}},
	}
}

// begin has the first slice stand for what the job does from a time on.
func (l *ledger) begin(at time.Time) {
	l.begun = at
	l.restart(at.UnixNano())
}

// look notes a moment that the amounts between two others are told by.
func (l *ledger) look(m sliceMark) {
	oldest := m.at
	if len(l.pending) > 0 {
		oldest = l.pending[0].on.at
	}
	l.history.add(m, oldest.Add(-time.Minute))
}

// open begins an interval.
func (l *ledger) open(on sliceMark, epoch uint32, attached []uint32) {
	l.traced = l.job.Processes()
	l.pending = append(l.pending, &interval{epoch: epoch, on: on, attached: slices.Clone(attached), before: l.probes.Hits(attached), processes: l.job.Processes()})
}

// present is the interval that is recorded now, or was last; nil before the first.
func (l *ledger) present() *interval {
	if len(l.pending) == 0 {
		return nil
	}
	return l.pending[len(l.pending)-1]
}

// settle lets go of the rows of slices of which it is known what they stand for, up to
// end if that is the end of what they can stand for, 0 if not. Of attached it is told
// what no slice saw.
func (l *ledger) settle(now time.Time, end int64, attached []uint32) {
	if end == 0 && now.Sub(l.settled) < settleAfter/5 {
		return
	}
	l.settled = now
	var lines map[int32]*progress.Timeline
	for len(l.pending) > 0 {
		j := l.pending[0]
		if !j.over {
			break
		}
		if end == 0 {
			if len(l.pending) < 2 {
				break
			}
			next := l.pending[1]
			border := j.off.at.Add(next.on.at.Sub(j.off.at) / 2)
			if now.Sub(border) < settleAfter || now.Sub(j.off.at) < keepBack || l.keepsAll(now) {
				break
			}
		}
		if lines == nil {
			lines = l.timelines(now, end)
		}
		l.share(j, lines, end)
		l.pending = slices.Delete(l.pending, 0, 1)
	}
	if end != 0 {
		l.tellUnseen(lines, end, l.groupsOf(attached))
		return
	}
	for pid, t := range lines {
		from := l.from(stratum{pid, event.PhaseTraining})
		l.leave(pid, t, from)
		l.gauge.steps.Need(pid, from-keptBefore*t.Usual)
	}
}

// keepsAll reports whether the recording is so young that its slices wait for its end.
func (l *ledger) keepsAll(now time.Time) bool {
	if now.Sub(l.begun) > keepYoung || l.gauge.steps.Crowded() {
		return false
	}
	rows := uint64(0)
	for _, i := range l.pending {
		for _, h := range i.seen {
			rows += h.Recorded
		}
	}
	return rows <= keepRows
}

// timelines are what the processes with known steps did since the oldest border.
func (l *ledger) timelines(now time.Time, end int64) map[int32]*progress.Timeline {
	to := now.UnixNano()
	if end != 0 {
		to = end
	}
	lines := map[int32]*progress.Timeline{}
	for pid, p := range l.gauge.steps.Steps() {
		if !p.Since(l.from(stratum{pid, event.PhaseTraining})) {
			continue // there was no room for all of them: nobody can tell what they were
		}
		from := int64(math.MaxInt64)
		for _, phase := range phases {
			from = min(from, l.from(stratum{pid, phase}))
		}
		lines[pid] = p.Timeline(from, to)
		lines[pid].Fold(func(gap progress.Gap) bool {
			return slices.ContainsFunc(l.pending, func(i *interval) bool {
				return i.over && min(gap.To, i.off.at.UnixNano())-max(gap.From, i.on.at.UnixNano()) >= int64(leastGap)
			})
		})
	}
	return lines
}

// saw is how much of a phase an interval saw, and whether that is enough to stand for more.
func (i *interval) saw(t *progress.Timeline, phase string) (n float64, enough bool) {
	on, off := i.on.at.UnixNano(), i.off.at.UnixNano()
	if phase == event.PhaseTraining {
		n = t.Trained(on, off)
		return n, n >= leastSteps
	}
	n = float64(t.Spent(phase, on, off))
	return n, n >= float64(leastGap)
}

// piecesOf is into how many parts what a slice saw is cut.
func (l *ledger) piecesOf(s stratum, u unit, n float64) int {
	size := float64(pieceTime)
	if u != unitTime {
		if l.piece[s] == 0 {
			l.piece[s] = n / firstPieces
		}
		size = l.piece[s]
	}
	return int(min(mostPieces, max(1, math.Round(n/size))))
}
