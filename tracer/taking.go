package tracer

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probes"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// What is taken of a call beside that it was made: its stack, the Python line behind it,
// the shapes of its arguments. The level says of which calls; what that has cost so far,
// the budget asks.

// taking decides that.
type taking struct {
	options *Options
	stacks  bool // there are programs that walk
	kernel  *kernel.Programs
	lines   func() [int(bpf.CallLineSourceLINE_SOURCES)]uint64 // rows by whose line they have
	warn    func(Warning)
}

// prepare says what the probes of a file take.
func (t *taking) prepare(plan *plan.Plan, found *probes.Found) {
	t.takeStacks(plan, found)
	t.takeShapes(plan, found)
}

// stackPrice is what taking a call's stack costs the job, nanoseconds: forty
// frames of both kinds on the design's machine.
const stackPrice = 15_000

// memoisedPrice is that where the kernel has it memoised, and typicalStacks how
// many calls tell what share of them is memoised.
const (
	memoisedPrice = 1_000
	typicalStacks = 256
)

// stackCost is what a call's stack has cost on average so far, nanoseconds.
func (t *taking) stackCost() float64 {
	totals, err := t.kernel.Memo.Totals(0)
	if err != nil {
		return stackPrice
	}
	return stackCostOf(&totals)
}

func stackCostOf(m *kernel.MemoTotals) float64 {
	calls := m.Found + m.Walked
	if calls < typicalStacks {
		return stackPrice
	}
	return float64(m.Found*memoisedPrice+(m.Walked+m.Verified)*stackPrice) / float64(calls)
}

// wantsStack reports whether a level takes the stack of a function's calls:
// what takes memory from a driver, or finds none, is rare, and explains itself at
// any; the few calls that explain a step at window, every operator at deep.
func wantsStack(level Level, f *spec.Function) bool {
	switch f.Action {
	case spec.Span, spec.ScopeBegin:
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
// wants it.
func (t *taking) takeStacks(plan *plan.Plan, found *probes.Found) {
	if !t.stacks {
		return
	}
	for i := range plan.Probes {
		switch p := &plan.Probes[i]; {
		case found.Stackless(p.Group.Name):
		case wantsStack(t.options.Level, p.Function):
			p.TakeStack()
		case wantsLine(t.options.Level, p.Function):
			p.TakeLine()
		}
	}
}

// sampleShare estimates what sampling takes of a thread's time.
func (t *taking) sampleShare() float64 {
	if !t.stacks {
		return 0
	}
	return float64(t.options.Frequency) * stackPrice / 1e9
}

// The Python line behind every call: the kernel takes the Python frames of outermost
// calls alone and hands their name on to what happens in them (bpf/line.h).

// wantsLine reports whether a level asks for the Python code behind a function's
// calls: whatever becomes a row, or tells another row's.
func wantsLine(level Level, f *spec.Function) bool {
	switch f.Action {
	case spec.Span, spec.Sequence, spec.Instant:
		return level != LevelAnchor
	case spec.Event, spec.Urgent, spec.Timed:
		return level != LevelAnchor && f.Memory != nil
	}
	return false
}

// What taking the Python frames of an outermost call costs, nanoseconds, where they were
// memoised and where they were walked; and a call on average before much is known.
const (
	memoisedLinePrice = 800
	walkedLinePrice   = 5_000
	usualLinePrice    = 400
)

// lineCost is what the line behind a call has cost on average so far, nanoseconds: most
// calls inherit theirs.
func (t *taking) lineCost() float64 {
	totals, err := t.kernel.Memo.Totals(bpf.CallMemoCountMEMO_LINES)
	if err != nil {
		return usualLinePrice
	}
	rows := uint64(0)
	for _, n := range t.lines() {
		rows += n
	}
	return lineCostOf(&totals, rows)
}

func lineCostOf(m *kernel.MemoTotals, rows uint64) float64 {
	if rows < typicalStacks {
		return usualLinePrice
	}
	return float64(m.Found*memoisedLinePrice+(m.Walked+m.Verified)*walkedLinePrice) / float64(rows)
}

// The shapes of what operators are called with: where the arguments are is planned with
// the sites, where a tensor has its sizes is known with the process.

// takeShapes has the kernel read the shapes of a file's operators, if it is known where
// the process's version of PyTorch has them.
func (t *taking) takeShapes(plan *plan.Plan, found *probes.Found) {
	if t.options.NoShapes {
		return
	}
	shaped := 0
	for i := range plan.Probes {
		if plan.Probes[i].Shapes != nil {
			shaped++
		}
	}
	if shaped == 0 {
		return
	}
	version := ""
	for _, f := range found.Process.Frameworks(append([]*process.Library{found.Library}, found.Libraries...)) {
		if f.Name == "pytorch" {
			version = f.Version
		}
	}
	layout, ok := tensor.LayoutOf(version)
	if !ok {
		t.warn(Warning{
			TSNS: time.Now().UnixNano(), Kind: "shapes", Source: found.Library.Path, Count: int64(shaped),
			Detail: fmt.Sprintf("where PyTorch %q keeps the sizes of its tensors is not in the tracer's table: no shapes", version),
		})
		return
	}
	for i := range plan.Probes {
		p := &plan.Probes[i]
		if p.Shapes != nil {
			p.TakeShapes(&layout)
		}
	}
}
