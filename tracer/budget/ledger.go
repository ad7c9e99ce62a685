package budget

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
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
	pending []*interval
	began   int64               // when what slices stand for begins
	first   int64               // when the recording began, or began anew
	since   map[string]int64    // from when on a group is in slices, where that is later
	upTo    map[stratum]int64   // up to when slices stand for it
	past    map[stratum]pastGap // what no slice stands for yet, of steps that are not kept
	piece   map[stratum]float64 // how much of the unit is one
	ids     int64
	history []sliceMark // looks at the job, since the oldest slice that waits
	traced  []int       // the processes that there were at the last beginning of a slice
	settled time.Time
}

func newLedger() *ledger {
	return &ledger{since: map[string]int64{}, upTo: map[stratum]int64{}, past: map[stratum]pastGap{}, piece: map[stratum]float64{}}
}

// restart begins anew: what was before is shared out.
func (l *ledger) restart(at int64) {
	l.began, l.first = at, at
	clear(l.upTo)
	clear(l.past)
}

// look notes a moment that the amounts between two others are told by.
func (l *ledger) look(m sliceMark) {
	oldest := m.at.Add(-time.Minute)
	if len(l.pending) > 0 {
		oldest = l.pending[0].on.at.Add(-time.Minute)
	}
	if len(l.history) > 1024 && l.history[len(l.history)/2].at.Before(oldest) {
		l.history = slices.Delete(l.history, 0, len(l.history)/2)
	}
	l.history = append(l.history, m)
}

// markAt is a moment between two looks, on the line between them.
func (l *ledger) markAt(ns int64) sliceMark {
	at := time.Unix(0, ns)
	i, found := slices.BinarySearchFunc(l.history, at, func(m sliceMark, at time.Time) int { return m.at.Compare(at) })
	switch {
	case len(l.history) == 0:
		return sliceMark{at: at}
	case found || i == 0:
		m := l.history[i]
		m.at = at
		return m
	case i == len(l.history):
		m := l.history[i-1]
		m.at = at
		return m
	}
	a, b := l.history[i-1], l.history[i]
	part := share(ns, a.at.UnixNano(), b.at.UnixNano())
	between := func(from, to uint64) uint64 {
		return from + uint64(math.Round(part*float64(max(to, from)-from)))
	}
	return sliceMark{at, between(a.steps, b.steps), between(a.nodes, b.nodes), a.counted && b.counted}
}

// openInterval begins one.
func (g *Governor) openInterval(on sliceMark) {
	g.ledger.traced = g.job.Processes()
	g.ledger.pending = append(g.ledger.pending, &interval{epoch: g.epoch, on: on, attached: slices.Clone(g.attached), before: g.probes.Hits(g.attached), processes: g.job.Processes()})
}

// present is the interval that is recorded now, or was last; nil before the first.
func (l *ledger) present() *interval {
	if len(l.pending) == 0 {
		return nil
	}
	return l.pending[len(l.pending)-1]
}

// settle lets go of the rows of slices of which it is known what they stand for, up to
// end if that is the end of what they can stand for, 0 if not.
func (g *Governor) settle(now time.Time, end int64) {
	l := g.ledger
	if end == 0 && now.Sub(l.settled) < settleAfter/5 {
		return
	}
	l.settled = now
	var lines map[int32]*timeline
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
			if now.Sub(border) < settleAfter || now.Sub(j.off.at) < keepBack || g.keepsAll(now) {
				break
			}
		}
		if lines == nil {
			lines = g.timelines(now, end)
		}
		g.share(j, lines, end)
		l.pending = slices.Delete(l.pending, 0, 1)
	}
	if end != 0 {
		g.tellUnseen(lines, end)
		return
	}
	for pid, t := range lines {
		from := l.from(stratum{pid, event.PhaseTraining})
		l.leave(pid, t, from)
		g.steps.need(pid, from-keptBefore*t.usual)
	}
}

// keepsAll reports whether the recording is so young that its slices wait for its end.
func (g *Governor) keepsAll(now time.Time) bool {
	if now.Sub(g.begun) > keepYoung || g.steps.crowded() {
		return false
	}
	rows := uint64(0)
	for _, i := range g.ledger.pending {
		for _, h := range i.seen {
			rows += h.Recorded
		}
	}
	return rows <= keepRows
}

// timelines are what the processes with known steps did since the oldest border.
func (g *Governor) timelines(now time.Time, end int64) map[int32]*timeline {
	l := g.ledger
	to := now.UnixNano()
	if end != 0 {
		to = end
	}
	lines := map[int32]*timeline{}
	for pid, p := range g.steps.steps() {
		if len(p.steps) < 2 || p.known > l.from(stratum{pid, event.PhaseTraining}) {
			continue // there was no room for all of them: nobody can tell what they were
		}
		from := int64(math.MaxInt64)
		for _, phase := range phases {
			from = min(from, l.from(stratum{pid, phase}))
		}
		lines[pid] = newTimeline(p.steps, p.loads, max(from, p.known), to)
		lines[pid].fold(func(gap gap) bool {
			return slices.ContainsFunc(l.pending, func(i *interval) bool {
				return i.over && min(gap.to, i.off.at.UnixNano())-max(gap.from, i.on.at.UnixNano()) >= int64(leastGap)
			})
		})
	}
	return lines
}

// from is where the stretch of the next slice of a stratum begins.
func (l *ledger) from(s stratum) int64 {
	from := max(l.began, l.upTo[s])
	if s.phase != anyPhase {
		return max(from, l.upTo[stratum{s.pid, anyPhase}])
	}
	for _, phase := range phases {
		from = max(from, l.upTo[stratum{s.pid, phase}])
	}
	return from
}

// pastGap is how much time of a phase there was up to a time, nanoseconds.
type pastGap struct{ ns, to int64 }

// leave adds up what lies between the steps of a process before a time, from which on
// its steps are still needed: a slice may still come that stands for it.
func (l *ledger) leave(pid int32, t *timeline, to int64) {
	for _, phase := range phases[1:] { // all but training
		s := stratum{pid, phase}
		if from := l.from(s); from < to {
			l.past[s] = pastGap{l.spent(s, t, from, to), to}
		}
	}
}

// spent is how much time of a phase lies between two times, what was left included.
func (l *ledger) spent(s stratum, t *timeline, from, to int64) int64 {
	if p := l.past[s]; from < p.to {
		return p.ns + t.spent(s.phase, p.to, to)
	}
	return t.spent(s.phase, from, to)
}

// saw is how much of a phase an interval saw, and whether that is enough to stand for more.
func (i *interval) saw(t *timeline, phase string) (n float64, enough bool) {
	on, off := i.on.at.UnixNano(), i.off.at.UnixNano()
	if phase == event.PhaseTraining {
		n = t.trained(on, off)
		return n, n >= leastSteps
	}
	n = float64(t.spent(phase, on, off))
	return n, n >= float64(leastGap)
}

// share says what an interval stands for and lets its rows go.
func (g *Governor) share(j *interval, lines map[int32]*timeline, end int64) {
	groups := g.groupsOf(j.attached)
	out := &shares{on: j.on.at.UnixNano(), off: j.off.at.UnixNano(), processes: map[int32]*processShare{}, groups: map[uint32]string{}}
	for _, index := range j.attached {
		out.groups[index] = g.probes.At(index).Group
	}
	said := ""
	for _, pid := range j.processes {
		p := &processShare{line: lines[int32(pid)]}
		out.processes[int32(pid)] = p
		if p.line == nil {
			said = g.shareUnknown(j, int32(pid), p, out, groups, end)
			continue
		}
		for _, phase := range phases {
			if text := g.sharePhase(j, stratum{int32(pid), phase}, p, out, groups, end); phase == event.PhaseTraining && text != "" {
				said = text
			}
		}
	}
	before := int64(math.MaxInt64)
	if !j.last {
		before = out.off
	}
	slicesOf := slices.Clone(out.slices)
	g.rows.Release(j.epoch, before, slicesOf, out.weigh, func(means map[uint32]float64) {
		for index, h := range j.seen {
			if mean, ok := means[index]; ok {
				g.thinned[index] += float64(h.Recorded) * (mean - 1)
			}
		}
	})
	if said != "" {
		g.warnSlice(j, out, said)
	}
}

func (g *Governor) groupsOf(attached []uint32) []string {
	groups := map[string]bool{}
	for _, index := range attached {
		groups[g.probes.At(index).Group] = true
	}
	return slices.Sorted(maps.Keys(groups))
}

// border is up to when an interval stands for a phase: the middle of the pause before
// the next one that saw something of it.
func (g *Governor) border(j *interval, t *timeline, phase string, end int64) int64 {
	pending := g.ledger.pending
	next := -1
	for i := 1; i < len(pending) && next < 0; i++ {
		if t == nil {
			if !g.idles(pending[i]) {
				next = i
			}
		} else if pending[i].over {
			if _, enough := pending[i].saw(t, phase); enough {
				next = i
			}
		}
	}
	switch {
	case next < 0 && end != 0:
		return end
	case next < 0: // nobody did: up to where it is known that nobody did
		return pending[len(pending)-1].on.at.UnixNano()
	}
	to, off := pending[next].on.at.UnixNano(), j.off.at.UnixNano()
	middle := off + (to-off)/2
	if t != nil && phase == event.PhaseTraining {
		return t.nearest(middle, off, to)
	}
	return middle
}

// sharePhase shares out a phase of a process whose steps are known.
func (g *Governor) sharePhase(j *interval, s stratum, p *processShare, out *shares, groups []string, end int64) string {
	l, t := g.ledger, p.line
	n, enough := j.saw(t, s.phase)
	if n <= 0 || !enough && !(end != 0 && g.onlyOne(j, s, t)) {
		return "" // its rows stand for themselves
	}
	from, to := l.from(s), g.border(j, t, s.phase, end)
	row := event.Slice{PID: s.pid, BeginNS: out.on, EndNS: out.off, FromNS: from, ToNS: to, Phase: s.phase, Unit: event.UnitSteps, Recorded: n}
	share := &phaseShare{from: map[string]int64{}, ids: map[string]int64{}, to: to, cut: l.cuts(j, t, s.phase, from, to)}
	if s.phase == event.PhaseTraining {
		share.windows = t.windows(out.on, out.off)
		if len(share.windows) == 0 && n >= leastSteps {
			share.windows = [][2]int64{{out.on, out.off}}
		}
	} else {
		row.Unit = event.UnitTime
		share.windows = gapWindows(t, s.phase, out.on, out.off, l.piecesOf(s, unitTime, n))
	}
	row.Steps = int32(len(share.windows))
	for _, group := range groups {
		row.Group, row.FromNS = group, max(from, l.since[group])
		share.from[group] = row.FromNS
		if s.phase == event.PhaseTraining {
			row.Represented = float64(t.steps(row.FromNS, to))
		} else {
			row.Represented = float64(l.spent(s, t, row.FromNS, to))
		}
		row.Represented = max(row.Represented, min(n, 1))
		row.Recorded = min(n, row.Represented)
		share.ratio = max(1, row.Represented/row.Recorded)
		if row.FromNS <= l.began {
			row.FromNS = l.first
		}
		l.ids++
		row.ID = l.ids
		share.ids[group] = row.ID
		out.slices = append(out.slices, row)
	}
	p.phases = append(p.phases, namedShare{s.phase, share})
	l.upTo[s] = to
	delete(l.past, s)
	return progressOfSteps(row, share.ratio)
}

// onlyOne reports whether no other slice stands for a stratum, or will.
func (g *Governor) onlyOne(j *interval, s stratum, t *timeline) bool {
	if g.ledger.upTo[s] != 0 {
		return false
	}
	most, of := 0.0, j
	for _, i := range g.ledger.pending {
		if i.over {
			if n, _ := i.saw(t, s.phase); n > most {
				most, of = n, i
			}
		}
	}
	return of == j
}

// cuts are the slices in a stretch whose rows stand for themselves alone.
func (l *ledger) cuts(j *interval, t *timeline, phase string, from, to int64) (cuts [][2]int64) {
	for _, i := range l.pending {
		on, off := i.on.at.UnixNano(), i.off.at.UnixNano()
		if i == j || !i.over || off <= from || on >= to {
			continue
		}
		if n, enough := i.saw(t, phase); n > 0 && !enough {
			cuts = append(cuts, [2]int64{on, off})
		}
	}
	return cuts
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

// gapWindows are equal parts of what a slice saw of a phase, about so many.
func gapWindows(t *timeline, phase string, on, off int64, count int) (windows [][2]int64) {
	total := t.spent(phase, on, off)
	for _, g := range t.gaps {
		from, to := max(on, g.from), min(off, g.to)
		if g.phase != phase || to <= from {
			continue
		}
		windows = append(windows, cutEvenly(from, to, max(1, int(math.Round(float64(count)*float64(to-from)/float64(total)))))...)
	}
	return windows
}

// cutEvenly are equal parts of a time.
func cutEvenly(on, off int64, count int) (windows [][2]int64) {
	for i := range int64(count) {
		windows = append(windows, [2]int64{on + (off-on)*i/int64(count), on + (off-on)*(i+1)/int64(count)})
	}
	return windows
}

// shareUnknown shares out what a process did whose steps are not known.
func (g *Governor) shareUnknown(j *interval, pid int32, p *processShare, out *shares, groups []string, end int64) string {
	l, s := g.ledger, stratum{pid, anyPhase}
	from, to := l.from(s), int64(0)
	if g.idles(j) {
		s.phase = idlePhase
		from, to = g.idleStretch(j, pid, end)
	} else {
		to = g.border(j, nil, anyPhase, end)
	}
	share := &phaseShare{from: map[string]int64{}, ids: map[string]int64{}, to: to}
	basis := g.basis(j)
	row := event.Slice{PID: pid, BeginNS: out.on, EndNS: out.off, ToNS: to, Phase: basis.phase(), Unit: basis.name(g)}
	for _, group := range groups {
		begin := max(from, l.since[group])
		row.Group, row.FromNS = group, begin
		row.Recorded, row.Represented = g.amounts(j, basis, l.markAt(begin), l.markAt(to))
		row.Represented = max(row.Represented, row.Recorded)
		if share.windows == nil {
			share.windows = cutEvenly(out.on, out.off, l.piecesOf(s, basis, row.Recorded))
		}
		row.Steps = int32(len(share.windows))
		share.ratio, share.from[group] = row.Represented/row.Recorded, begin
		if begin <= l.began {
			row.FromNS = l.first
		}
		l.ids++
		row.ID = l.ids
		share.ids[group] = row.ID
		out.slices = append(out.slices, row)
	}
	p.unknown = share
	l.upTo[s] = to
	return g.progress(basis, row, share.ratio)
}
