package weights

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// sharing finds what one interval stands for.
type sharing struct {
	*Ledger
	j      *interval
	end    int64 // of what slices can stand for; 0 where it is not known
	groups []string
	out    *shares
}

// share says what an interval stands for and lets its rows go.
func (l *Ledger) share(j *interval, lines map[int32]*progress.Timeline, end int64) {
	out := &shares{on: j.on.At.UnixNano(), off: j.off.At.UnixNano(), processes: map[int32]*processShare{}, probes: map[uint32]Probe{}}
	for _, index := range j.attached {
		out.probes[index] = l.gauge.probes.Probe(index)
	}
	x := &sharing{Ledger: l, j: j, end: end, groups: groupsOf(l.gauge.probes, j.attached), out: out}
	said := ""
	for _, pid := range j.processes {
		p := &processShare{line: lines[int32(pid)]}
		out.processes[int32(pid)] = p
		if p.line == nil {
			said = x.unknown(int32(pid), p)
			continue
		}
		for _, phase := range phases {
			if text := x.phase(stratum{int32(pid), phase}, p); phase == event.PhaseTraining && text != "" {
				said = text
			}
		}
	}
	before := int64(math.MaxInt64)
	if !j.last {
		before = out.off
	}
	slicesOf := slices.Clone(out.slices)
	l.rows.Weigh(j.epoch, before, slicesOf, out.weigh, func(means map[uint32]float64) {
		for index, calls := range j.seen {
			if mean, ok := means[index]; ok {
				l.thinned[index] += float64(calls) * (mean - 1)
			}
		}
	})
	if said != "" {
		l.warnSlice(j, out, said)
	}
}

// border is up to when the interval stands for a phase: the middle of the pause before
// the next one that saw something of it.
func (x *sharing) border(t *progress.Timeline, phase string) int64 {
	pending := x.pending
	next := -1
	for i := 1; i < len(pending) && next < 0; i++ {
		if t == nil {
			if !x.idles(pending[i]) {
				next = i
			}
		} else if pending[i].over {
			if _, enough := pending[i].saw(t, phase); enough {
				next = i
			}
		}
	}
	switch {
	case next < 0 && x.end != 0:
		return x.end
	case next < 0: // none did: up to where it is known that none did
		return pending[len(pending)-1].on.At.UnixNano()
	}
	to, off := pending[next].on.At.UnixNano(), x.j.off.At.UnixNano()
	middle := off + (to-off)/2
	if t != nil && phase == event.PhaseTraining {
		return t.Nearest(middle, off, to)
	}
	return middle
}

// phase shares out a phase of a process whose steps are known.
func (x *sharing) phase(s stratum, p *processShare) string {
	l, t, j, out := x.Ledger, p.line, x.j, x.out
	n, enough := j.saw(t, s.phase)
	if n <= 0 {
		return ""
	}
	if !enough && !(x.end != 0 && x.onlyOne(s, t)) {
		l.letGo(aloneIn{s, j.cut()})
		return ""
	}
	from, to := l.from(s), x.border(t, s.phase)
	row := event.Slice{PID: s.pid, BeginNS: out.on, EndNS: out.off, FromNS: from, ToNS: to, Phase: s.phase, Unit: event.UnitSteps, Recorded: n}
	share := &phaseShare{from: map[string]int64{}, ids: map[string]int64{}, to: to, cuts: x.cuts(s, t, from, to)}
	if s.phase == event.PhaseTraining {
		share.windows, share.whole = t.Windows(out.on, out.off), progress.Marked(t, out.on, out.off)
		if len(share.windows) == 0 && n >= leastSteps {
			share.windows = [][2]int64{{out.on, out.off}}
		}
	} else {
		row.Unit = event.UnitTime
		share.windows = gapWindows(t, s.phase, out.on, out.off, l.piecesOf(s, unitTime, n))
	}
	row.Steps = int32(len(share.windows))
	for _, group := range x.groups {
		row.Group, row.FromNS = group, max(from, l.since[group])
		share.from[group] = row.FromNS
		if s.phase == event.PhaseTraining {
			row.Represented = float64(t.Steps(row.FromNS, to))
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
	x.ownStretches(s, share, t.Began(), func(from int64) float64 { return float64(l.spent(s, t, from, to)) / n })
	p.phases = append(p.phases, namedShare{s.phase, share})
	l.upTo[s], l.last[s] = to, out.on
	delete(l.past, s)
	return progressOfSteps(row, share.ratio)
}

// onlyOne reports whether no other slice stands for a stratum, or will.
func (x *sharing) onlyOne(s stratum, t *progress.Timeline) bool {
	if x.upTo[s] != 0 {
		return false
	}
	most, of := 0.0, x.j
	for _, i := range x.pending {
		if i.over {
			if n, _ := i.saw(t, s.phase); n > most {
				most, of = n, i
			}
		}
	}
	return of == x.j
}

// gapWindows are equal parts of what a slice saw of a phase, about so many.
func gapWindows(t *progress.Timeline, phase string, on, off int64, count int) (windows [][2]int64) {
	total := t.Spent(phase, on, off)
	for _, g := range t.Gaps {
		from, to := max(on, g.From), min(off, g.To)
		if g.Phase != phase || to <= from {
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

// unknown shares out what a process did whose steps are not known.
func (x *sharing) unknown(pid int32, p *processShare) string {
	l, s, j, out := x.Ledger, stratum{pid, anyPhase}, x.j, x.out
	from, to := l.from(s), int64(0)
	if x.idles(j) {
		s.phase = idlePhase
		from, to = x.idleStretch(pid)
	} else {
		to = x.border(nil, anyPhase)
	}
	share := &phaseShare{from: map[string]int64{}, ids: map[string]int64{}, to: to}
	basis := l.gauge.basis(j)
	row := event.Slice{PID: pid, BeginNS: out.on, EndNS: out.off, ToNS: to, Phase: basis.phase(), Unit: basis.name(l.gauge)}
	for _, group := range x.groups {
		begin := max(from, l.since[group])
		row.Group, row.FromNS = group, begin
		row.Recorded, row.Represented = l.gauge.amounts(j, basis, l.history.markAt(begin), l.history.markAt(to))
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
	x.ownStretches(s, share, math.MaxInt64, func(from int64) float64 {
		recorded, represented := l.gauge.amounts(j, basis, l.history.markAt(from), l.history.markAt(to))
		return represented / recorded
	})
	p.unknown = share
	l.upTo[s], l.last[s] = to, out.on
	return l.gauge.said(basis, row, share.ratio)
}

// warnSlice says that a slice stands for more than itself.
func (l *Ledger) warnSlice(i *interval, s *shares, said string) {
	more, from, to := false, s.on, s.off
	for _, row := range s.slices {
		more = more || row.Represented > row.Recorded*1.0001
		from, to = min(from, row.FromNS), max(to, row.ToNS)
	}
	if !more {
		return
	}
	l.warn(event.Warning{
		TSNS: s.on, Kind: "slice", Source: "detail", Count: int64(len(i.seen)),
		Detail: fmt.Sprintf("%d probes recorded %.1f of %.1f ms, %s", len(i.seen), ms(time.Duration(s.off-s.on)),
			ms(time.Duration(to-from)), said),
	})
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
