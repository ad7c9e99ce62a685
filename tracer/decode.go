package tracer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/cache"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
	"github.com/ebpfprof/ebpfprof/tracer/waits"
)

// batchRows is how many rows are handed to the sink at once.
const batchRows = 4096

// decoder turns records of the call ring into events. It belongs to the
// goroutine that reads the ring; others ask it to do something through do.
type decoder struct {
	sink     Sink
	offsetNS int64 // Unix epoch minus CLOCK_MONOTONIC
	probes   *probetable.Table
	classes  classNamer

	spans       []Span
	memory      []memoryRow
	memoryBatch []Memory // of memory, as the sink takes it
	flows       []Flow
	samples     []Sample
	// unresolved are the spans whose stack still has the kernel's name only.
	unresolved []spanStack
	introduced introductions
	threadsAt  int64 // when threads without calls were last looked for

	stacks       *stacks.Table
	sampleRing   *ringbuf.Reader // nil: nothing takes stacks
	sampleBuffer ringbuf.Record
	sampled      bool // something was in it at the last look
	behind       bool // so much that the next look comes soon

	remote      *processMemory
	executables *accel.Executables
	cuda        *accel.CUDAHandles
	left        []kernel.OpenCall // scopes that a slice left open
	onceDrained []func()          // to be done when the ring has run empty
	gone        []int32           // processes whose last calls may still be in the ring

	texts        cache.Pending[uint64, string] // of calls that are still open, by span
	shapes       *tensor.Reader
	shapesOf     cache.Pending[uint64, *tensor.Shapes] // of calls that are still open, by span
	accelerators *accel.State
	waits        *waits.State
	open         event.OpenCalls               // as it was written last
	called       accel.Record                  // the call that is being decoded
	named        cache.Recent[callName, *Call] // calls named at run time, so that spans share them
	host         hostMemory
	forwards     forwards
	edgeless     uint64      // backward nodes whose operator has no row
	shapeless    uint64      // calls whose tensors made no sense, or not yet
	unsummed     uint64      // calls that have no line of their own in the summary
	owners       []lifeOwner // whoever else knows something of a process
	unhooked     uint64      // processes whose dynamic linker has no hook
	nodes        *budget.NodeClock
	steps        *budget.StepClock
	held         map[uint32]*slice         // rows that wait for their slice's weight
	over         map[uint32]budget.Weigher // of the last epochs whose rows were given theirs
	slicing      atomic.Bool
	totals       Totals
	probeTotals  []probeTotal // by index
	damaged      uint64       // records that did not decode
	failed       error        // the sink's first error outside of a batch
}

type callName struct {
	spec     uint32
	category string
	name     string
}

// classNamer names the class of an object by its vtable pointer.
type classNamer interface {
	Class(pid uint32, vtable uint64) (name string, ok bool)
}

// lifeOwner keeps something of each process for as long as that lives, and until its
// last records have been read.
type lifeOwner interface{ Forget(pid uint32) }

func newDecoder(sink Sink, probes *probetable.Table, classes classNamer, offsetNS int64) *decoder {
	remote := newProcessMemory()
	d := &decoder{
		remote: remote, executables: accel.NewExecutables(remote), cuda: accel.NewCUDAHandles(remote),
		sink: sink, probes: probes, classes: classes, offsetNS: offsetNS,
		named: cache.NewRecent[callName, *Call](maxNames), nodes: budget.NewNodeClock(), steps: budget.NewStepClock(),
		host: newHostMemory(), shapes: tensor.NewReader(),
		forwards: forwards{}, held: map[uint32]*slice{}, over: map[uint32]budget.Weigher{}, introduced: introductions{}, totals: Totals{Operators: map[string]*OperatorTotal{}},
	}
	d.accelerators = accel.New(remote, decodedRows{d})
	d.waits = waits.New(remote, waitRows{d})
	d.stacks = stacks.NewTable(stacks.NewSpaces(), &d.totals.Stacks)
	return d
}

// record decodes one record of the call ring. The bytes are the kernel's, but
// nothing is taken on trust: a record of the wrong size is counted and dropped.
func (d *decoder) record(raw []byte) {
	if len(raw) == 0 {
		d.damaged++
		return
	}
	switch bpf.CallRecordKind(raw[0]) {
	case bpf.CallRecordKindRECORD_SPAN, bpf.CallRecordKindRECORD_EVENT:
		d.call(raw)
	case bpf.CallRecordKindRECORD_TEXT:
		d.text(raw)
	case bpf.CallRecordKindRECORD_TENSORS:
		d.tensors(raw)
	default:
		d.damaged++
	}
}

const (
	callBytes = int(unsafe.Sizeof(bpf.CallCallRecord{}))
	fewBytes  = int(unsafe.Sizeof(bpf.CallCallRecordFew{}))
	textBytes = int(unsafe.Sizeof(bpf.CallTextRecord{})) // the shorter of the two
	textHead  = int(unsafe.Offsetof(bpf.CallTextRecord{}.Text))
)

// callRecord is a call record of any of the three sizes.
type callRecord struct {
	*bpf.CallCallRecord
	ret    uint64
	hasRet bool
	args   []uint64
	stack  uint64 // the kernel's name for its stack, 0: none
	thread uint32 // PyTorch's number of the thread that took its sequence number
}

// endSeen reports whether a probe saw the call end: only then were its results read.
func (r *callRecord) endSeen() bool {
	return r.End == uint8(EndReturn) || r.End == uint8(EndExitSite)
}

// call is the record as package accel takes it.
func (r *callRecord) call() accel.Record {
	return accel.Record{
		Spec: r.Spec, PID: r.Tgid, TID: r.Tid, Args: r.args, Faults: r.Faults, EndSeen: r.endSeen(), Stack: r.stack,
	}
}

func (d *decoder) call(raw []byte) {
	if len(raw) < callBytes || uintptr(unsafe.Pointer(&raw[0]))%8 != 0 {
		d.damaged++
		return
	}
	r := callRecord{CallCallRecord: (*bpf.CallCallRecord)(unsafe.Pointer(&raw[0]))}
	n := int(r.Args)
	if n > 0 && len(raw) < callBytes+8+8*n {
		d.damaged++
		return
	}
	if len(raw) >= fewBytes {
		words := unsafe.Slice((*uint64)(unsafe.Pointer(&raw[callBytes])), 1+n)
		r.ret, r.args, r.hasRet = words[0], words[1:], r.End == uint8(EndReturn)
	}
	probe := d.probes.Find(r.Spec)
	if probe != nil {
		r.Faults |= probe.Planned.Unknown
	}
	switch {
	case probe == nil:
		d.damaged++
	case bpf.CallRecordKind(r.Kind) == bpf.CallRecordKindRECORD_SPAN:
		d.span(&r, probe)
	default:
		d.event(&r, probe)
	}
}

func (d *decoder) text(raw []byte) {
	if len(raw) < textBytes {
		d.damaged++
		return
	}
	length := int(binary.NativeEndian.Uint16(raw[2:]))
	id := binary.NativeEndian.Uint64(raw[8:])
	if textHead+length > len(raw) {
		d.damaged++
		return
	}
	d.texts.Put(id, string(raw[textHead:textHead+length]))
}

func (d *decoder) span(r *callRecord, probe *probetable.Probe) {
	s, waits := d.place(probe, r.Epoch)
	*s = Span{
		ID: int64(r.SpanId), ParentID: int64(r.ParentId), StartNS: int64(r.StartNs) + d.offsetNS,
		DurationNS: int64(r.EndNs - r.StartNs), PID: int32(r.Tgid), TID: int32(r.Tid),
		Call: probe.Planned.Call, End: EndMethod(r.End), Status: Status(r.Status),
		Weight: 1, PythonStackID: int64(r.Line), PythonStackSource: unresolvedLine,
	}
	s.SequenceNumber, r.thread = sequenceOf(r.Sequence)
	if s.End == EndUnfinished {
		s.DurationNS = -1
	}
	var c *accel.Call
	r.stack = rawStackOf(probe, r)
	if f := probe.Planned.Function; len(r.args) > 0 || f.Text != catalog.NoText || f.StatusOK {
		c = d.detail(s, f, r)
	}
	if probe.Planned.Shapes != nil {
		d.shape(s, r)
	}
	if r.stack != 0 {
		d.unresolved = append(d.unresolved, spanStack{s.MakeDetail(), r.stack})
	}
	if s.SequenceNumber >= 0 {
		d.flow(s, r)
	}
	if s.Call.Layer == "collective" {
		d.collective(s, probe.Planned.Function, r)
	}
	d.total(s)
	if !waits {
		d.add(d.totalOf(s, probe), s)
		d.pace(s, probe.Planned.Function)
		if c != nil && c.Await() {
			d.spans = d.spans[:len(d.spans)-1]
		}
	}
}

// unfinished makes a row of a call whose end was not seen.
func (d *decoder) unfinished(c kernel.OpenCall) {
	probe := d.probes.Find(c.Spec)
	if probe == nil {
		d.damaged++
		return
	}
	s, waits := d.place(probe, c.Epoch)
	*s = Span{
		ID: int64(c.SpanID), ParentID: int64(c.ParentID), StartNS: int64(c.StartNS) + d.offsetNS, DurationNS: -1,
		PID: int32(c.Tgid), TID: int32(c.TID), Call: probe.Planned.Call, End: EndUnfinished, Weight: 1, SequenceNumber: -1,
		PythonStackID: int64(c.Line), PythonStackSource: unresolvedLine,
	}
	if name, ok := d.texts.Take(c.SpanID); ok && probe.Planned.Function.Name == catalog.FromText {
		s.Call = d.name(c.Spec, s.Call, name)
	}
	if probe.Planned.Function.Effect == catalog.RunsWork {
		d.waits.Run(s, noCollective)
	}
	d.total(s)
	if !waits {
		d.sum(s)
	}
}

func (d *decoder) event(r *callRecord, probe *probetable.Probe) {
	f := probe.Planned.Function
	stack := rawStackOf(probe, r)
	var a accel.Arguments
	d.called = r.call()
	a.Read(f, &d.called)
	switch f.Effect {
	case catalog.NoEffect:
	case catalog.QueuesWork, catalog.FinishesWork:
		d.collectiveEvent(f, r, &a)
	case catalog.BeginsCompile:
		d.executables.Compile(r.Tgid, r.Tid, &a)
	default:
		d.accelerators.Hint(f, &d.called, &a)
	}
	if f.Memory == nil {
		return
	}
	m := memoryRow{rawStack: stack, Memory: Memory{
		TSNS: int64(r.StartNs) + d.offsetNS, PID: int32(r.Tgid), TID: int32(r.Tid),
		Space: f.Memory.Space, Level: f.Memory.Level, Action: f.Memory.Action,
		Address: int64(a.Value(catalog.FieldAddress)), SpanID: int64(r.ParentId), Weight: 1,
		PythonStackID: int64(r.Line), PythonStackSource: unresolvedLine,
		Bytes: a.Int64(catalog.FieldBytes), TotalAllocatedBytes: a.Int64(catalog.FieldTotalAllocated),
		TotalReservedBytes: a.Int64(catalog.FieldTotalReserved),
	}}
	if a.Has(catalog.FieldTorchDevice) {
		kind, index := int8(a.Value(catalog.FieldTorchDevice)), int8(a.Value(catalog.FieldTorchDevice)>>8)
		if kind == torchCPU {
			return // ProfiledCPUMemoryReporter::New saw it
		}
		id := int32(index)
		m.DeviceID = &id
	}
	if delta := a.Int64(catalog.FieldSignedBytes); delta != nil {
		m.Action = "alloc"
		if *delta < 0 {
			m.Action = "free"
			*delta = -*delta
		}
		m.Bytes = delta
	}
	if m.Space == "host" && !d.host.follow(&m.Memory, r.Epoch) {
		return
	}
	d.totals.Memory, d.totals.PeakLiveBytes = d.totals.Memory+1, d.host.peak
	if s := d.heldSlice(probe, r.Epoch); s != nil {
		s.memory, s.memoryProbe = append(s.memory, m), append(s.memoryProbe, probe.Index)
		return
	}
	d.memory = append(d.memory, m)
}

// pace notes what tells where in its training step a process was, of calls that are
// recorded in every step.
func (d *decoder) pace(s *Span, f *catalog.Function) {
	switch {
	case s.DurationNS < 0:
	case f.Step:
		d.steps.Saw(s.PID, s.StartNS, s.StartNS+s.DurationNS)
	case f.Text != catalog.NoText && strings.HasPrefix(s.Call.Name, "Optimizer."):
		d.steps.Mark(s.PID, s.StartNS, s.StartNS+s.DurationNS)
	case f.Text != catalog.NoText && strings.HasPrefix(s.Call.Name, "enumerate(DataLoader)#"):
		d.steps.Load(s.PID, s.StartNS)
	}
}

// torchCPU is c10::DeviceType::CPU.
const torchCPU = 0

// keep remembers the first error of the sink.
func (d *decoder) keep(err error) {
	if d.failed == nil {
		d.failed = err
	}
}

// ended notes that a process is gone. Calls of it may still be in the ring: what
// is known of it is forgotten when that has run empty.
func (d *decoder) ended(pid int32) { d.gone = append(d.gone, pid) }

// leave makes a row of a scope whose end nobody will see. Its name may still be
// in the ring.
func (d *decoder) leave(c kernel.OpenCall) { d.left = append(d.left, c) }

// drained is called when the ring has run empty.
func (d *decoder) drained() {
	d.accelerators.Look()
	for _, c := range d.left {
		d.unfinished(c)
	}
	d.left = d.left[:0]
}

// forgetGone drops what was known of the processes that have ended, when both rings
// have been read.
func (d *decoder) forgetGone() {
	for _, pid := range d.gone {
		d.forget(pid)
	}
	d.gone = d.gone[:0]
	for _, f := range d.onceDrained {
		f()
	}
	d.onceDrained = d.onceDrained[:0]
}

// forget drops what only a living process can refer to.
func (d *decoder) forget(pid int32) {
	d.host.ended(pid)
	d.leaveThreadsOf(pid)
	d.forwards.ended(uint32(pid))
	d.executables.Ended(uint32(pid))
	d.cuda.Ended(uint32(pid))
	d.remote.ended(uint32(pid))
	d.accelerators.Ended(uint32(pid))
	d.waits.Ended(pid)
	for _, owner := range d.owners {
		owner.Forget(uint32(pid))
	}
	d.stacks.Forget(uint32(pid))
}

// flush hands what is ready to the sink.
func (d *decoder) flush() error {
	d.accelerators.Release()
	if err := d.flushSamples(); err != nil {
		return err
	}
	if len(d.spans) > 0 {
		d.resolveLines()
		if err := d.sink.Spans(d.spans); err != nil {
			return err
		}
		d.spans = d.spans[:0]
	}
	if len(d.memory) > 0 {
		if err := d.flushMemory(); err != nil {
			return err
		}
	}
	if len(d.flows) > 0 {
		if err := d.sink.Flows(d.flows); err != nil {
			return err
		}
		d.flows = d.flows[:0]
	}
	return nil
}

// pollLook is how many records are read between two looks at the clock.
const pollLook = 64

// poll reads what is in the ring, which does not wait, and hands it to the sink. It
// reports how many records it read.
func (d *decoder) poll(ring *ringbuf.Reader, record *ringbuf.Record) (int, error) {
	deadline := time.Now().Add(pollWait)
	n := 0
	for {
		// A job that never pauses never lets the ring run empty.
		if n%pollLook == pollLook-1 && time.Now().After(deadline) {
			return n, d.flush()
		}
		err := ring.ReadInto(record)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ringbuf.ErrFlushed) {
			d.drained()
			err := d.flush()
			d.forgetGone()
			return n, err
		}
		if err != nil {
			return n, fmt.Errorf("reading the ring buffer: %w", err)
		}
		n++
		d.record(record.RawSample)
		if len(d.spans)+len(d.memory) >= batchRows {
			if err := d.flush(); err != nil {
				return n, err
			}
		}
	}
}
