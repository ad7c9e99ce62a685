package plan

import (
	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/torch"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/site"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// checkTensors is of how many calls of a probe, as a power of two, one has its tensors'
// storage read as well; the first one always has.
const checkTensors = 8

// ShapesPrice is what reading the shapes of a call costs the job, nanoseconds: two and a
// half tensors, on a virtual machine where a read takes 80 to 100.
const shapesPrice = 450

func (p *Probe) ShapesPrice() float64 {
	if p.Spec.Tensors == 0 {
		return 0
	}
	return shapesPrice
}

// planShapes finds an operator's tensors, if their shapes are worth it and are still in
// place at a site that costs no more.
func (p *planner) planShapes(probe *Probe, code site.Function, n site.Need) {
	f := probe.Function
	if f.Share > 0 {
		p.planShare(probe, code, n)
		return
	}
	if f.Name != spec.FromOperator || probe.EntryErr != nil || !tensor.Shaped(probe.Call.Name) {
		return
	}
	class, _, _ := torch.OperatorClass(probe.Symbol)
	o, ok := tensor.Parse(probe.Call.Name, probe.Symbol, p.operators[class].Returns, p.abi())
	if ok {
		probe.takeArguments(o, code, n)
	}
}

// planShare finds the tensors of a collective.
func (p *planner) planShare(probe *Probe, code site.Function, n site.Need) {
	o, ok := tensor.ParseMethod(probe.Call.Name, probe.Symbol, int(probe.Function.Share), p.abi())
	if ok && probe.EntryErr == nil && len(probe.Function.Values)+len(o.Captures) <= len(probe.Spec.Capture) {
		probe.takeArguments(o, code, n)
	}
}

// takeArguments has the shapes of these arguments read, if there is a site for that.
func (p *Probe) takeArguments(o *tensor.Operator, code site.Function, n site.Need) {
	n.Args |= o.Registers
	n.Stack, n.Memory = n.Stack || o.OnStack, true
	entry, err := site.PlanEntry(code, n)
	if err == nil && entry.Cost <= p.Entry.Cost {
		p.Entry, p.Shapes = entry, o
	}
}

// oldOptional is in the name of a function that every libtorch_cpu has which was built
// before c10::optional became std::optional.
const oldOptional = "_ZN2at4_ops6linear4callERKNS_6TensorES4_RKN3c108optional"

func (p *planner) abi() tensor.ABI {
	return tensor.ABI{Machine: p.file.Machine(), OldOptional: p.defined[oldOptional]}
}

// TakeShapes has the kernel read the shapes of what the call is made with.
func (p *Probe) TakeShapes(layout *tensor.Layout) {
	if p.Shapes.OnStack {
		p.Spec.Flags |= uint16(bpf.CallSpecFlagSPEC_STACK_ARGS)
	}
	p.Spec.Tensors = uint8(copy(p.Spec.Capture[p.Spec.Captures:], p.Shapes.Captures))
	p.Spec.TensorSizes, p.Spec.TensorStorage, p.Spec.StorageBytes = layout.Sizes, layout.Storage, layout.Bytes
	p.Spec.TensorChecks = checkTensors
	p.Spec.Identity = p.Shapes.Identity
}
