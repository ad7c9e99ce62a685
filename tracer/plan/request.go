package plan

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/demangle"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// What is asked of a probe beside its site, once it is planned.

// TakeStack has the calls of a probe take their stack. Without room for one
// value more, they do not.
func (p *Probe) TakeStack() {
	if int(p.Spec.Captures) < len(p.Spec.Capture) {
		p.Spec.Flags |= uint16(bpf.CallSpecFlagSPEC_STACK)
	}
	// From one place in the framework many kernels are launched, by many callers.
	if values := p.Function.Values; p.Function.Category == "launch" && len(values) > 0 && values[0].Field == spec.FieldKernel {
		p.Spec.Flags |= uint16(bpf.CallSpecFlagSPEC_STACK_BY_VALUE)
	}
}

// LeaveStack has them take none any more.
func (p *Probe) LeaveStack() { p.Spec.Flags &^= uint16(bpf.CallSpecFlagSPEC_STACK) }

func (p *Probe) TakesStack() bool {
	return p.Spec.Flags&uint16(bpf.CallSpecFlagSPEC_STACK) != 0
}

// TakeLine has the calls of a probe take the Python frames behind them, where they
// are the outermost.
func (p *Probe) TakeLine() {
	p.Spec.Flags |= uint16(bpf.CallSpecFlagSPEC_LINE)
	values := p.Function.Values
	if p.Function.Action == spec.Span && len(values) > 2 && values[1].Field == spec.FieldSequence &&
		values[2].Field == spec.FieldForwardThread {
		p.Spec.Flags |= uint16(bpf.CallSpecFlagSPEC_BACKWARD)
	}
}

func (p *Probe) TakesLine() bool {
	return p.Spec.Flags&uint16(bpf.CallSpecFlagSPEC_LINE) != 0
}

// CostliestSite is the class of the most expensive of the probe's sites.
func (p *Probe) CostliestSite() site.Cost {
	cost := p.Entry.Cost
	for _, e := range p.Exits {
		cost = max(cost, e.Cost)
	}
	return cost
}

// Kind says which ends the probe sees.
func (p *Probe) Kind() string {
	switch {
	case p.Return:
		return "entry+return"
	case len(p.Exits) > 0:
		return "entry+exit"
	}
	return "entry"
}

// Keep leaves only the probes whose calls are to be recorded.
func (p *Plan) Keep(f *filter.Filter) {
	p.Probes = slices.DeleteFunc(p.Probes, func(probe Probe) bool {
		names := []string{probe.Call.Name, probe.Symbol}
		if f.BySymbol() {
			names = append(names, demangle.Short(probe.Symbol))
		}
		return !f.Call(probe.Function, names...)
	})
}

// DropReturns plans as if nothing could have a return probe, and reports whether
// anything had one.
func (p *Plan) DropReturns() (any bool) {
	for i := range p.Probes {
		if probe := &p.Probes[i]; probe.Return {
			probe.Return, probe.ExitErr, any = false, ErrNoReturns, true
			probe.Spec.Flags &^= uint16(bpf.CallSpecFlagSPEC_HAS_RETURN)
			if probe.Function.Action == spec.Timed {
				probe.Spec.Action = uint8(bpf.CallActionACTION_EVENT)
			}
		}
	}
	return any
}
