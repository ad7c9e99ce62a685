package tracer

import (
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
)

// stackPrice is what taking a call's stack costs the job, nanoseconds: forty
// frames of both kinds on the design's machine.
const stackPrice = 15_000

// rememberedPrice is that where the kernel remembered it, and typicalStacks how
// many calls tell what share of them it remembers.
const (
	rememberedPrice = 1_000
	typicalStacks   = 256
)

// stackCost is what a call's stack has cost on average so far, nanoseconds.
func (s *Session) stackCost() float64 {
	if s.kernel == nil {
		return stackPrice
	}
	t, err := s.kernel.Memo.Totals(0)
	if err != nil {
		return stackPrice
	}
	return stackCostOf(&t)
}

func stackCostOf(m *kernel.MemoTotals) float64 {
	calls := m.Found + m.Walked
	if calls < typicalStacks {
		return stackPrice
	}
	return float64(m.Found*rememberedPrice+(m.Walked+m.Verified)*stackPrice) / float64(calls)
}

// wantsStack reports whether a level takes the stack of a function's calls:
// what takes memory from a driver, or finds none, is rare, and explains itself at
// any; the few calls that explain a step at window, every operator at deep.
func wantsStack(level Level, f *catalog.Function) bool {
	switch f.Action {
	case catalog.Span, catalog.ScopeBegin:
	default:
		return f.Memory != nil && f.Memory.Action == event.ActionOutOfMemory
	}
	switch {
	case f.Layer == "runtime" && f.Category == "alloc":
		return true
	case level == LevelAnchor:
		return false
	case f.Layer == "scope", f.Layer == "collective", f.Category == "launch":
		return true
	}
	return level == LevelDeep && f.Layer == "op"
}

// takeStacks has the calls of a file's probes take their stack where the level
// wants it. It comes before the probes get their places in the table: from then on
// the flags of their specs are the manager's, and the decoder reads none of them.
func (s *Session) takeStacks(plan *plan.Plan) {
	if s.walks == nil {
		return
	}
	for i := range plan.Probes {
		switch p := &plan.Probes[i]; {
		case s.chosen.stackless[p.Group.Name]:
		case wantsStack(s.options.Level, p.Function):
			p.TakeStack()
		case wantsLine(s.options.Level, p.Function):
			p.TakeLine()
		}
	}
}

// rawStackOf takes the kernel's name of a call's stack off its values: it is
// behind the captures, and of a scope there is nothing else. 0 where none was
// taken.
func rawStackOf(p *probetable.Probe, r *callRecord) (raw uint64) {
	if !p.Stack || len(r.args) == 0 {
		return 0
	}
	at := len(p.Planned.Function.Values)
	if p.Planned.Function.Action == catalog.ScopeBegin {
		at = 0
	}
	if at >= len(r.args) {
		return 0
	}
	raw, r.args = r.args[at], r.args[:at]
	return raw
}

// sampleShare estimates what sampling takes of a thread's time.
func (s *Session) sampleShare() float64 {
	if s.sampler == nil {
		return 0
	}
	return float64(s.options.Frequency) * stackPrice / 1e9
}
