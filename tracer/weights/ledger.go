package weights

import (
	"maps"
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
	// A slice stands for others if it saw a whole step, each place of it, or LeastGap of a
	// phase without steps; else its rows stand for themselves alone.
	leastSteps = 1.0
	LeastGap   = 10 * time.Millisecond
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
	on, off     Mark
	over        bool // off is known
	last        bool // of its epoch
	attached    []uint32
	processes   []int
	seen        map[uint32]uint64 // recorded calls, by probe
	cost, stall time.Duration     // of its hits, and of putting probes in and out
}

// stratum is a phase of a process. Phases without known steps are one, anyPhase.
type stratum struct {
	pid   int32
	phase string
}

const anyPhase = ""

// phases are those of a process whose steps are known.
var phases = [...]string{event.PhaseTraining, event.PhaseEvaluation, event.PhaseOther}

// Ledger knows the slices that wait for their weights.
type Ledger struct {
	stretches
	gauge   *Gauge
	rows    Rows
	warn    func(event.Warning)
	begun   time.Time // when the job was first looked at
	pending []*interval
	piece   map[stratum]float64 // how much of the unit is one
	ids     int64
	history history
	latest  waiting // what waits for a later slice of steps
	traced  []int   // the processes that there were at the last beginning of a slice
	settled time.Time
	thinned Thinned
}

// Thinned is for how many calls beyond themselves the rows of each probe stand, by the
// probe's index. It belongs to the goroutine that Rows runs on.
type Thinned map[uint32]float64

// NewLedger makes one without slices, which notes in thinned what rows stand for.
func NewLedger(by *Gauge, rows Rows, thinned Thinned, warn func(event.Warning)) *Ledger {
	return &Ledger{
		gauge: by, rows: rows, warn: warn, piece: map[stratum]float64{}, thinned: thinned,
		stretches: stretches{since: map[string]int64{}, upTo: map[stratum]int64{}, last: map[stratum]int64{}, past: map[stratum]pastGap{}},
	}
}

// Begin has the first slice stand for what the job does from a time on.
func (l *Ledger) Begin(at time.Time) {
	l.begun = at
	l.restart(at.UnixNano())
}

// Unused says that until a time there was nothing that a slice could have recorded.
func (l *Ledger) Unused(until time.Time) { l.began = until.UnixNano() }

// Sliced says that groups are in slices from a time on only.
func (l *Ledger) Sliced(groups []string, from time.Time) {
	for _, name := range groups {
		l.since[name] = from.UnixNano()
	}
}

// Look notes a moment by which the amounts between two others are shared out.
func (l *Ledger) Look(m Mark) {
	oldest := m.At
	if len(l.pending) > 0 {
		oldest = l.pending[0].on.At
	}
	l.history.add(m, oldest.Add(-time.Minute))
}

// Open begins an interval, in which some probes record.
func (l *Ledger) Open(on Mark, epoch uint32, attached []uint32) {
	l.traced = l.gauge.job.Processes()
	l.pending = append(l.pending, &interval{epoch: epoch, on: on, attached: slices.Clone(attached), processes: l.traced})
}

// Seen is what was recorded in an interval, and what that has cost each process.
type Seen struct {
	Calls map[uint32]uint64 // by probe
	Hits  time.Duration
	Stall time.Duration // of putting probes in and out
	Last  bool          // no other interval of its epoch follows
}

// Close ends the interval that is open.
func (l *Ledger) Close(off Mark, seen Seen) {
	i := l.pending[len(l.pending)-1]
	i.off, i.over, i.last = off, true, seen.Last
	i.seen, i.cost, i.stall = seen.Calls, seen.Hits, seen.Stall
	i.processes = unite(i.processes, l.gauge.job.Processes())
}

// Restart shares out what was up to a time, and begins anew there. Of attached it is told
// what no slice saw.
func (l *Ledger) Restart(at time.Time, attached []uint32) {
	l.Settle(at, at.UnixNano(), attached)
	l.restart(at.UnixNano())
	l.gauge.Steps.Forget(at.UnixNano())
}

// groupsOf are the groups of some probes, sorted.
func groupsOf(in Probes, probes []uint32) []string {
	groups := map[string]bool{}
	for _, index := range probes {
		groups[in.Probe(index).Group] = true
	}
	return slices.Sorted(maps.Keys(groups))
}

// unite is the union of two lists.
func unite(a, b []int) []int {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Settle lets go of the rows of slices of which it is known what they stand for, up to
// end if that is the end of what they can stand for, 0 if not. Of attached it is told
// what no slice saw.
func (l *Ledger) Settle(now time.Time, end int64, attached []uint32) {
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
			border := j.off.At.Add(next.on.At.Sub(j.off.At) / 2)
			if now.Sub(border) < settleAfter || now.Sub(j.off.At) < keepBack || l.keepsAll(now) {
				break
			}
		}
		if lines == nil {
			if end == 0 && l.latest.still(l, now) {
				break
			}
			lines = l.timelines(now, end)
		}
		if end == 0 && l.latest.waits(l, now, lines) {
			break
		}
		l.share(j, lines, end)
		l.pending = slices.Delete(l.pending, 0, 1)
	}
	if end != 0 {
		l.tellUnseen(lines, end, groupsOf(l.gauge.probes, attached))
		return
	}
	for pid, t := range lines {
		from := l.from(stratum{pid, event.PhaseTraining})
		l.leave(pid, t, from)
		l.gauge.Steps.Need(pid, from-keptBefore*t.Usual)
	}
}

// keepsAll reports whether the recording is so young that its slices wait for its end.
func (l *Ledger) keepsAll(now time.Time) bool {
	if now.Sub(l.begun) > keepYoung || l.gauge.Steps.Crowded() {
		return false
	}
	return fewRows(l.pending)
}

// timelines are what the processes with known steps did since the oldest border.
func (l *Ledger) timelines(now time.Time, end int64) map[int32]*progress.Timeline {
	to := now.UnixNano()
	if end != 0 {
		to = end
	}
	lines := map[int32]*progress.Timeline{}
	for pid, p := range l.gauge.Steps.Steps() {
		if !p.Since(l.from(stratum{pid, event.PhaseTraining})) {
			continue // there was no room for all of them: what they were is lost
		}
		from := int64(math.MaxInt64)
		for _, phase := range phases {
			from = min(from, l.from(stratum{pid, phase}))
		}
		lines[pid] = p.Timeline(from, to)
		lines[pid].Fold(func(gap progress.Gap) bool {
			return slices.ContainsFunc(l.pending, func(i *interval) bool {
				return i.over && min(gap.To, i.off.At.UnixNano())-max(gap.From, i.on.At.UnixNano()) >= int64(LeastGap)
			})
		})
	}
	return lines
}

// saw is how much of a phase an interval saw, and whether that is enough to stand for more.
func (i *interval) saw(t *progress.Timeline, phase string) (n float64, enough bool) {
	on, off := i.on.At.UnixNano(), i.off.At.UnixNano()
	if phase == event.PhaseTraining {
		n = t.Trained(on, off)
		return n, n >= leastSteps && progress.Covers(t, on, off)
	}
	n = float64(t.Spent(phase, on, off))
	return n, n >= float64(LeastGap)
}

// piecesOf is into how many parts what a slice saw is cut.
func (l *Ledger) piecesOf(s stratum, u unit, n float64) int {
	size := float64(pieceTime)
	if u != unitTime {
		if l.piece[s] == 0 {
			l.piece[s] = n / firstPieces
		}
		size = l.piece[s]
	}
	return int(min(mostPieces, max(1, math.Round(n/size))))
}
