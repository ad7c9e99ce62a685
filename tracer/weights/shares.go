package weights

import (
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// shares says what each row of an interval stands for. The reader of the records has
// them, and they do not change any more.
type shares struct {
	on, off   int64
	slices    []event.Slice
	probes    map[uint32]Probe
	processes map[int32]*processShare
}

// processShare is that of one process.
type processShare struct {
	line    *progress.Timeline // nil where its steps are not known
	phases  []namedShare
	unknown *phaseShare
}

type namedShare struct {
	phase string
	share *phaseShare
}

// phaseShare is that of one phase.
type phaseShare struct {
	from    map[string]int64 // by group
	ids     map[string]int64 // likewise
	to      int64
	ratio   float64
	own     map[uint32]ownStretch // of probes whose stretch begins elsewhere
	windows [][2]int64
	whole   [][2]int64 // steps from one mark to the next of the same
	cuts    []cut
}

// weigh is the Weigher of an interval.
func (s *shares) weigh(probe uint32, pid int32, at int64) Share {
	p := s.processes[pid]
	if p == nil {
		return alone
	}
	at = min(max(at, s.on), s.off-1)
	group := s.probes[probe].Group
	if p.unknown != nil {
		return Share{p.unknown.of(probe, group).ratio, p.unknown.ids[group], progress.WindowOf(p.unknown.windows, at)}
	}
	phase, lap := event.PhaseTraining, p.line.LapAt(at)
	if lap < 0 {
		if i := p.line.GapAt(at); i >= 0 {
			phase = p.line.Gaps[i].Phase
		}
	}
	for _, named := range p.phases {
		share := named.share
		id, in := share.ids[group]
		if named.phase != phase || !in {
			continue
		}
		own := share.of(probe, group)
		weight := own.ratio
		if lap >= 0 {
			weight = share.passes(p.line, lap, at, own.from, probe, s)
		}
		return Share{weight, id, progress.WindowOf(share.windows, at)}
	}
	return alone
}

// ownStretch is that of a probe whose function was called for the first time in the
// recording.
type ownStretch struct {
	from  int64
	ratio float64
}

// of is where the stretch of a probe's rows begins, and what one stands for where places
// in a step are not told.
func (p *phaseShare) of(probe uint32, group string) ownStretch {
	if own, ok := p.own[probe]; ok {
		return own
	}
	return ownStretch{p.from[group], p.ratio}
}

// ownStretches finds those that begin elsewhere than the others of their group; ratio is
// what a row stands for from a time on. trained is when the first step began: a function that
// was not known to be called before it, and was when its probe came in, is one of the step's.
// What precedes that, the step's own slow beginning, is no time of another phase.
func (x *sharing) ownStretches(s stratum, share *phaseShare, trained int64, ratio func(from int64) float64) {
	for index, p := range x.out.probes {
		begin := share.from[p.Group]
		from := x.fromOf(s, &p, begin)
		if s.phase != event.PhaseTraining && p.UnusedUntil > 0 && p.UnusedUntil < trained && trained <= p.FirstIn {
			from = max(from, trained)
		}
		from = min(from, max(begin, x.out.on))
		if from == begin {
			continue
		}
		if share.own == nil {
			share.own = map[uint32]ownStretch{}
		}
		share.own[index] = ownStretch{from, max(1, ratio(from))}
	}
}

// passes is how often the process came past a place in its step in the stretch, over how
// often it did in the slice. Where that saw whole steps their rows stand for the stretch,
// and what it saw of others stands for itself: which places those have between two marks
// is known only about, and counted once too often or too seldom they would be half a step.
func (p *phaseShare) passes(t *progress.Timeline, lap int, at, from int64, probe uint32, s *shares) float64 {
	seen := t.Passes(lap, at, min(at, s.on), max(at+1, s.off))
	if seen == 0 {
		return p.ratio
	}
	all := t.Passes(lap, at, min(at, from), max(at+1, p.to))
	for i := range p.cuts {
		if c := &p.cuts[i]; c.probes[probe] {
			all -= t.Passes(lap, at, c.on, c.off)
		}
	}
	if whole := len(p.whole); whole > 0 {
		if progress.WindowOf(p.whole, at) == 0 {
			return 1
		}
		return max(1, float64(all-max(0, seen-whole))/float64(whole))
	}
	return max(1, float64(all)/float64(seen))
}
