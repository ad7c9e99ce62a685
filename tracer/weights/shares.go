package weights

import (
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// shares says what each row of an interval stands for. The reader of the records has
// them, and nobody changes them any more.
type shares struct {
	on, off   int64
	slices    []event.Slice
	groups    map[uint32]string // of the probes
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
	windows [][2]int64
	cut     [][2]int64 // what rows of other slices stand for
}

// weigh is the Weigher of an interval.
func (s *shares) weigh(probe uint32, pid int32, at int64) Share {
	p := s.processes[pid]
	if p == nil {
		return alone
	}
	at = min(max(at, s.on), s.off-1)
	group := s.groups[probe]
	if p.unknown != nil {
		return Share{p.unknown.ratio, p.unknown.ids[group], progress.WindowOf(p.unknown.windows, at)}
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
		weight := share.ratio
		if lap >= 0 {
			weight = share.passes(p.line, lap, at, share.from[group], s)
		}
		return Share{weight, id, progress.WindowOf(share.windows, at)}
	}
	return alone
}

// passes is how often the process came past a place in its step in the stretch, over how
// often it did in the slice.
func (p *phaseShare) passes(t *progress.Timeline, lap int, at, from int64, s *shares) float64 {
	seen := t.Passes(lap, at, min(at, s.on), max(at+1, s.off))
	if seen == 0 {
		return p.ratio
	}
	all := t.Passes(lap, at, min(at, from), max(at+1, p.to))
	for _, cut := range p.cut {
		all -= t.Passes(lap, at, cut[0], cut[1])
	}
	return max(1, float64(all)/float64(seen))
}
