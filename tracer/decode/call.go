package decode

import (
	"encoding/binary"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/cache"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
)

// calls makes rows of the records of calls.
type calls struct {
	rows        *rows.Rows
	runtimes    *Runtimes
	collectives *Collectives
	clocks      Clocks
	probes      *probetable.Table
	classes     ClassNamer
	offsetNS    int64 // Unix epoch minus CLOCK_MONOTONIC
	probesTook  ProbesTook

	texts    cache.Pending[uint64, string] // of calls that are still open, by span
	strings  cache.Pending[uint64, askedStrings]
	shapes   shapes
	host     hostMemory
	forwards *forwards
	fused    fused
	called   accel.Record // the call that is being decoded
	// decoded is the span of that call until it is whole. To name it may take reading rows
	// that go into the same batch, so it is no place in the batch itself.
	decoded event.Span
	damaged uint64 // records that did not decode
}

// record decodes one record of the call ring. The bytes are the kernel's, but
// nothing is taken on trust: a record of the wrong size is counted and dropped.
func (c *calls) record(raw []byte) {
	if len(raw) == 0 {
		c.damaged++
		return
	}
	switch bpf.CallRecordKind(raw[0]) {
	case bpf.CallRecordKindRECORD_SPAN, bpf.CallRecordKindRECORD_EVENT:
		c.call(raw)
	case bpf.CallRecordKindRECORD_TEXT:
		c.text(raw)
	case bpf.CallRecordKindRECORD_TENSORS:
		c.tensors(raw)
	default:
		c.damaged++
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
	return r.End == uint8(event.EndReturn) || r.End == uint8(event.EndExitSite)
}

// call is the record as package accel takes it.
func (r *callRecord) call() accel.Record {
	return accel.Record{
		Spec: r.Spec, PID: r.Tgid, TID: r.Tid, Args: r.args, Faults: r.Faults, EndSeen: r.endSeen(), Stack: r.stack, Epoch: r.Epoch,
	}
}

// takeStack takes the kernel's name of a call's stack off its values: it is behind the
// captures, and of a scope there is nothing else. 0 where none was taken.
func (r *callRecord) takeStack(p *probetable.Probe) (raw uint64) {
	if !p.Stack || len(r.args) == 0 {
		return 0
	}
	at := len(p.Planned.Function.Values)
	if p.Planned.Function.Action == spec.ScopeBegin {
		at = 0
	}
	if at >= len(r.args) {
		return 0
	}
	raw, r.args = r.args[at], r.args[:at]
	return raw
}

func (c *calls) call(raw []byte) {
	if len(raw) < callBytes || uintptr(unsafe.Pointer(&raw[0]))%8 != 0 {
		c.damaged++
		return
	}
	r := callRecord{CallCallRecord: (*bpf.CallCallRecord)(unsafe.Pointer(&raw[0]))}
	n := int(r.Args)
	if n > 0 && len(raw) < callBytes+8+8*n {
		c.damaged++
		return
	}
	if len(raw) >= fewBytes {
		words := unsafe.Slice((*uint64)(unsafe.Pointer(&raw[callBytes])), 1+n)
		r.ret, r.args, r.hasRet = words[0], words[1:], r.End == uint8(event.EndReturn)
	}
	probe := c.probes.Find(r.Spec)
	if probe != nil {
		r.Faults |= probe.Planned.Unknown
	}
	switch {
	case probe == nil:
		c.damaged++
	case bpf.CallRecordKind(r.Kind) == bpf.CallRecordKindRECORD_SPAN && probe.Planned.Function.Action != spec.Timed,
		probe.Planned.Function.Action == spec.Instant:
		c.span(&r, probe)
	default:
		c.event(&r, probe)
	}
}

func (c *calls) text(raw []byte) {
	if len(raw) < textBytes {
		c.damaged++
		return
	}
	length := int(binary.NativeEndian.Uint16(raw[2:]))
	id := binary.NativeEndian.Uint64(raw[8:])
	if textHead+length > len(raw) {
		c.damaged++
		return
	}
	text := string(raw[textHead : textHead+length])
	if which, asked := c.whichString(raw); asked {
		c.keepString(id, which, text)
		return
	}
	c.texts.Put(id, text)
}
