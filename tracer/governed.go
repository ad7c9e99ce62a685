package tracer

import (
	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// What the budget decides over, and by what it is carried out.

func newGovernor(s *Session, cost budget.HitCost, slices bool) *budget.Governor {
	return budget.New(budget.Config{
		Budget: s.options.Budget, NoSlices: !slices, Cost: cost, Probes: s.probes.Governed(), Job: governedJob{s}, Switches: switches{s.kernel}, Rows: heldRows{s},
		Nodes: s.decoder.nodes, Steps: s.decoder.steps,
		Threads: func() (budget.Threads, error) { return kernel.NewTaskList() }, Warn: s.warn,
	})
}

// sessionBudget is what the probes ask of the governor.
type sessionBudget struct{ s *Session }

func (b sessionBudget) RecordsAll() bool             { return b.s.governor.RecordsAll() }
func (b sessionBudget) Thinned(index uint32) float64 { return b.s.governor.Thinned(index) }

// sessionJob is whose processes they are for.
type sessionJob struct{ s *Session }

func (j sessionJob) Traced(pid int) bool { return j.s.processes[pid] != nil }

func (j sessionJob) Alive(pid int) bool {
	t := j.s.processes[pid]
	return t != nil && t.process.Alive()
}

// probeRows is where the rows of probes are written.
type probeRows struct{ s *Session }

func (r probeRows) Write(row func(event.Sink) error) {
	r.s.do(func(d *decoder) { d.keep(row(d.sink)) })
}

func (r probeRows) OnceDrained(f func()) {
	r.s.do(func(d *decoder) { d.onceDrained = append(d.onceDrained, f) })
}

func (r probeRows) Left(open []kernel.OpenCall) { r.s.leaveScopes(open) }

// governedJob is what the probes are on.
type governedJob struct{ s *Session }

func (g governedJob) Processes() (pids []int) {
	for pid, t := range g.s.processes {
		if t.row.Framework != nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (g governedJob) TakingCost() budget.TakingCost {
	return budget.TakingCost{Stack: g.s.stackCost(), Line: g.s.lineCost()}
}
func (g governedJob) SampleShare() float64 { return g.s.sampleShare() }

func (g governedJob) Libraries(yield func(budget.Library) bool) {
	for _, f := range g.s.probes.Files() {
		if !yield(f) {
			return
		}
	}
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
