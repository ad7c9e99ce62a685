package decode

import (
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// event takes a record of an instant: an allocation or a free, or what a call tells of
// another.
func (c *calls) event(r *callRecord, probe *probetable.Probe) {
	f := probe.Planned.Function
	stack := r.takeStack(probe)
	var a accel.Arguments
	c.called = r.call()
	a.Read(f, &c.called)
	switch f.Effect {
	case spec.NoEffect:
	case spec.QueuesWork, spec.CopiesWork, spec.FinishesWork:
		c.collectives.event(f, r, &a)
	case spec.BeginsCompile:
		c.runtimes.executables.Compile(r.Tgid, r.Tid, &a)
	default:
		c.runtimes.calls.Hint(f, &c.called, &a)
	}
	if f.Memory == nil {
		return
	}
	m := event.Memory{
		TSNS: int64(r.StartNs) + c.offsetNS, PID: int32(r.Tgid), TID: int32(r.Tid),
		Space: f.Memory.Space, Level: f.Memory.Level, Action: f.Memory.Action,
		Address: int64(a.Value(spec.FieldAddress)), SpanID: int64(r.ParentId), Weight: 1,
		PythonStackID: int64(r.Line), PythonStackSource: rows.UnresolvedLine,
	}
	switch took := int64(r.EndNs - r.StartNs); {
	case f.SinceMark && took > 0:
		m.TSNS, m.DurationNS = m.TSNS+took, c.probesTook.without(c.probesTook.SinceMark, took, probe)
	case f.Action == spec.Timed && r.End == uint8(event.EndReturn) && took > 0:
		m.DurationNS = c.probesTook.without(c.probesTook.UntilReturn, took, probe)
	}
	if !deviceMemory(&m, &a) || m.Space == "host" && !c.host.follow(&m, r.Epoch) {
		return
	}
	c.rows.Sums.Totals.PeakLiveBytes = c.host.peak
	c.rows.Slices.Memory(probe, r.Epoch, m, stack)
}

// ProbesTook is what two probes around nothing make of its time, nanoseconds; 0 is not
// known.
type ProbesTook struct {
	SinceMark   int64 // a mark and the instant that ends what it began
	UntilReturn int64 // an entry and a return
}

// without is how long an allocation or a free took without what the probes have added,
// which is known of cheap sites.
func (ProbesTook) without(added, took int64, p *probetable.Probe) *int64 {
	if p.Planned.Entry.Cost == site.CostEmulated {
		took = max(took-added, 0)
	}
	return &took
}

// torchCPU is c10::DeviceType::CPU.
const torchCPU = 0

// deviceMemory gives a row what PyTorch's own report of it says; false is one that
// ProfiledCPUMemoryReporter::New saw already.
func deviceMemory(m *event.Memory, a *accel.Arguments) bool {
	m.Bytes = a.Int64(spec.FieldBytes)
	m.TotalAllocatedBytes, m.TotalReservedBytes = a.Int64(spec.FieldTotalAllocated), a.Int64(spec.FieldTotalReserved)
	if a.Has(spec.FieldTorchDevice) {
		kind, index := int8(a.Value(spec.FieldTorchDevice)), int8(a.Value(spec.FieldTorchDevice)>>8)
		if kind == torchCPU {
			return false
		}
		id := int32(index)
		m.DeviceID = &id
	}
	if delta := a.Int64(spec.FieldSignedBytes); delta != nil {
		m.Action = "alloc"
		if *delta < 0 {
			m.Action = "free"
			*delta = -*delta
		}
		m.Bytes = delta
	}
	return true
}
