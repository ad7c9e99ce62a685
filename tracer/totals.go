package tracer

import (
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// Totals is what the decoder has seen so far.
type Totals struct {
	Spans, Memory, Flows uint64
	Samples              uint64
	Stacks               stacks.Totals
	Memo                 kernel.MemoTotals // of the spans' stacks
	Counters             uint64
	Lines                LineTotals
	PeakLiveBytes        int64 // of host tensors whose allocation was seen, all processes
	Operators            map[string]*OperatorTotal
	// InSlices: rows were written that stand for calls which no row was written of.
	InSlices bool
}

// OperatorTotal sums the spans of one name.
type OperatorTotal struct {
	Layer      string
	Count      float64 // weighted
	Timed      float64 // of Count, those whose end was seen
	DurationNS float64 // weighted, of those
	Threw      uint64
}

// otherNames is the line of the sums for those that come when there are too many: a
// job may call its scopes step 1, step 2, and so on. The rows have their own names.
const otherNames = "(other names)"

// total keeps the sums for the summary.
func (d *decoder) total(s *Span) {
	d.totals.Spans++
}

// sum adds a span of known weight to its name's total.
func (d *decoder) sum(s *Span) { d.add(d.operator(s.Call), s) }

func (d *decoder) operator(c *Call) *OperatorTotal {
	t, ok := d.totals.Operators[c.Name]
	if ok {
		return t
	}
	name, layer := c.Name, c.Layer
	if len(d.totals.Operators) >= maxSummaryNames {
		d.unsummed++
		if t, ok = d.totals.Operators[otherNames]; ok {
			return t
		}
		name, layer = otherNames, ""
	}
	t = &OperatorTotal{Layer: layer}
	d.totals.Operators[name] = t
	return t
}

// probeTotal is the total of the spans that keep a probe's name.
type probeTotal struct {
	of    *probetable.Probe // its place may be another's by now
	total *OperatorTotal
}

// totalOf is operator, cached by probe while its spans keep its name.
func (d *decoder) totalOf(s *Span, p *probetable.Probe) *OperatorTotal {
	if s.Call != p.Planned.Call {
		return d.operator(s.Call)
	}
	for int(p.Index) >= len(d.probeTotals) {
		d.probeTotals = append(d.probeTotals, probeTotal{})
	}
	cached := &d.probeTotals[p.Index]
	if cached.of != p {
		*cached = probeTotal{p, d.operator(s.Call)}
	}
	return cached.total
}

func (d *decoder) add(t *OperatorTotal, s *Span) {
	t.Count += s.Weight
	if s.DurationNS >= 0 {
		t.Timed += s.Weight
		t.DurationNS += s.Weight * float64(s.DurationNS)
	}
	if s.Status == StatusThrew {
		t.Threw++
	}
}
