package tracer

import (
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// What the budget decides over, and by what it is carried out.

func newGovernor(s *Session, cost budget.HitCost, slices bool) *budget.Governor {
	return budget.New(budget.Config{
		Budget: s.options.Budget, NoSlices: !slices, Cost: cost, Probes: governedProbes{s}, Job: governedJob{s}, Switches: switches{s.kernel}, Rows: heldRows{s},
		Nodes: s.decoder.nodes, Steps: s.decoder.steps,
		Threads: func() (budget.Threads, error) { return kernel.NewTaskList() }, Warn: s.warn,
	})
}

// governedProbes are the probes by their indices.
type governedProbes struct{ s *Session }

func (g governedProbes) At(index uint32) budget.Probe {
	p := g.s.probes.at(index)
	return budget.Probe{
		Index: p.Index, Name: p.Planned.Call.Name, Group: p.Planned.Group.Name, Function: p.Planned.Function,
		Entry: p.Planned.Entry.Cost, Worst: p.Planned.CostliestSite(), Stack: p.Planned.TakesStack(), Line: p.Planned.TakesLine(),
		Reads: p.Planned.ShapesPrice(), Launches: p.Planned.Group.Launches,
	}
}

func (g governedProbes) of(tier catalog.Tier) (indices []uint32) {
	for _, f := range g.s.files {
		for _, i := range g.s.usable(f, tier) {
			indices = append(indices, f.base+uint32(i))
		}
	}
	return indices
}

func (g governedProbes) Anchors() []uint32 { return g.of(catalog.Anchor) }
func (g governedProbes) Sliced() []uint32  { return g.of(catalog.Detail) }
func (g governedProbes) AnySliced() bool   { return g.s.anyUsable(catalog.Detail) }

func (g governedProbes) Steps() []uint32 {
	indices := make([]uint32, len(g.s.steps))
	for i, p := range g.s.steps {
		indices[i] = p.Index
	}
	return indices
}

func (g governedProbes) Hits(probes []uint32) map[uint32]budget.Hits {
	counts := make(map[uint32]budget.Hits, len(probes))
	for _, index := range probes {
		if c, err := g.s.counted(index); err == nil {
			counts[index] = budget.Hits{Recorded: max(c.Entries, c.Exits), Traps: c.Entries + c.Exits + c.Passed}
		}
	}
	return counts
}

func (g governedProbes) Calls(index uint32) (uint64, bool) {
	c, err := g.s.counted(index)
	return c.Entries, err == nil
}

func (g governedProbes) PastSteps() uint64 { return g.s.pastSteps }

func (g governedProbes) Learn() (known int, fresh []uint32)         { return g.s.learnUsed() }
func (g governedProbes) Used() []uint32                             { return g.s.usedDetail() }
func (g governedProbes) Attach(probes []uint32) error               { return g.s.attachDetail(probes) }
func (g governedProbes) AttachAll() error                           { return g.s.attachDetail(g.Sliced()) }
func (g governedProbes) Detach()                                    { g.s.detachDetail() }
func (g governedProbes) SweepScopes()                               { g.s.sweepScopes() }
func (g governedProbes) Demote(groups []string, epoch uint32) error { return g.s.demote(groups, epoch) }
func (g governedProbes) LeaveStacks(groups []string) error          { return leaveStacks(g.s, groups) }

func (g governedProbes) Extend(attached []uint32, room int) ([]uint32, error) {
	return g.s.attachMore(attached, room)
}

func (g governedProbes) Sites(probes []uint32) (sites int) {
	for f, within := range g.s.byFile(probes) {
		sites += sitesOf(f.plan, f.base, within).Count()
	}
	return sites
}

func (g governedProbes) CountOnly(index uint32) (budget.Counting, error) {
	counting, err := g.s.countOnly(g.s.probes.at(index))
	if counting == nil {
		return nil, err
	}
	return counting, nil
}

// governedJob is what the probes are on.
type governedJob struct{ s *Session }

func (g governedJob) Processes() []int { return g.s.frameworkProcesses() }
func (g governedJob) TakingCost() budget.TakingCost {
	return budget.TakingCost{Stack: g.s.stackCost(), Line: g.s.lineCost()}
}
func (g governedJob) SampleShare() float64 { return g.s.sampleShare() }

func (g governedJob) Libraries(yield func(budget.Library) bool) {
	for _, f := range g.s.files {
		if !yield(f) {
			return
		}
	}
}

var _ budget.Library = (*tracedFile)(nil)

// File is the library's file.
func (f *tracedFile) File() *symbolize.ELF { return f.plan.ELF }

// Bias is what the loader added to the file's addresses in a process.
func (f *tracedFile) Bias(pid int) (uint64, bool) {
	library := f.mapped[pid]
	if library == nil {
		return 0, false
	}
	return library.Bias(f.plan.ELF)
}

// switches are what the programs look at.
type switches struct{ k *kernel.Programs }

func (s switches) SetDetail(on bool) error           { return s.k.SetDetail(on) }
func (s switches) SetEpoch(epoch uint32) error       { return s.k.SetEpoch(epoch) }
func (s switches) SetAnchorEpoch(epoch uint32) error { return s.k.SetAnchorEpoch(epoch) }
func (s switches) Hasten()                           { s.k.PrepareRemoval() }

// heldRows are the rows that wait in the decoder, on whose goroutine they are let go.
type heldRows struct{ s *Session }

func (h heldRows) Hold(on bool) { h.s.decoder.slicing.Store(on) }

func (h heldRows) Release(epoch uint32, before int64, slices []event.Slice, weigh budget.Weigher, done func(map[uint32]float64)) {
	h.s.do(func(d *decoder) {
		if len(slices) > 0 {
			d.keep(d.sink.Slices(slices))
		}
		if weigh == nil {
			return
		}
		d.releaseLate(false)
		means := d.release(epoch, before, weigh)
		if done != nil {
			done(means)
		}
	})
}
