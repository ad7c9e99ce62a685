package rows

import (
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// Totals is what was decoded so far.
type Totals struct {
	Spans, Memory, Flows uint64
	Samples, IO          uint64
	Stacks               stacks.Totals
	Memo                 kernel.MemoTotals // of the spans' stacks
	Counters             uint64
	Lines                LineTotals
	PeakLiveBytes        int64 // of host tensors whose allocation was seen, all processes
	Operators            map[string]*OperatorTotal
	// Short are the processes that ended before they were looked at.
	Short ShortTotal
	// InSlices: rows were written that stand for calls which no row was written of.
	InSlices bool
}

// ShortTotal sums them.
type ShortTotal struct {
	Count, WallNS, CPUNS int64
	Commands             int
	names                map[string]bool // of the commands, as many as the kernel's table has
}

// Short adds such rows up.
func (t *Sums) Short(rows []event.ShortProcess) {
	s := &t.Totals.Short
	if s.names == nil {
		s.names = map[string]bool{}
	}
	for i := range rows {
		s.Count, s.WallNS, s.CPUNS = s.Count+rows[i].Count, s.WallNS+rows[i].WallNS, s.CPUNS+rows[i].CPUNS
		s.names[rows[i].Command] = true
	}
	s.Commands = len(s.names)
}

// OperatorTotal sums the spans of one name.
type OperatorTotal struct {
	Layer      string
	Count      float64 // weighted
	Timed      float64 // of Count, those whose end was seen
	DurationNS float64 // weighted, of those
	Threw      uint64
}

const (
	// MaxSummaryNames have a line of their own in the sums.
	MaxSummaryNames = 1 << 14
	// otherNames is the line of those that come when there are too many: a job may call
	// its scopes step 1, step 2, and so on. The rows have their own names.
	otherNames = "(other names)"
)

// Sums adds the rows up for the summary.
type Sums struct {
	Totals Totals
	// Unnamed are the calls that have no line of their own.
	Unnamed uint64
	byProbe []probeTotal // by index
}

// probeTotal is the total of the spans that keep a probe's name.
type probeTotal struct {
	of    *probetable.Probe // its place may be another's by now
	total *OperatorTotal
}

// Add adds a span of known weight to its name's total.
func (t *Sums) Add(s *event.Span) {
	if !s.IsAround() {
		t.operator(s.Call).add(s)
	}
}

// AddOf is Add for a span of a probe, quicker where it keeps the probe's name.
func (t *Sums) AddOf(p *probetable.Probe, s *event.Span) {
	if s.Call != p.Planned.Call {
		t.Add(s)
		return
	}
	if int(p.Index) >= len(t.byProbe) || t.byProbe[p.Index].of != p {
		t.cache(p)
	}
	t.byProbe[p.Index].total.add(s)
}

// cache looks for the total of a probe's name once.
func (t *Sums) cache(p *probetable.Probe) {
	for int(p.Index) >= len(t.byProbe) {
		t.byProbe = append(t.byProbe, probeTotal{})
	}
	t.byProbe[p.Index] = probeTotal{p, t.operator(p.Planned.Call)}
}

func (t *Sums) operator(c *event.Call) *OperatorTotal {
	o, ok := t.Totals.Operators[c.Name]
	if ok {
		return o
	}
	name, layer := c.Name, c.Layer
	if len(t.Totals.Operators) >= MaxSummaryNames {
		t.Unnamed++
		if o, ok = t.Totals.Operators[otherNames]; ok {
			return o
		}
		name, layer = otherNames, ""
	}
	o = &OperatorTotal{Layer: layer}
	t.Totals.Operators[name] = o
	return o
}

func (o *OperatorTotal) add(s *event.Span) {
	o.Count += s.Weight
	if s.DurationNS >= 0 {
		o.Timed += s.Weight
		o.DurationNS += s.Weight * float64(s.DurationNS)
	}
	if s.Status == event.StatusThrew {
		o.Threw++
	}
}
