package transfers

import (
	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// callKey is what the spans of long calls share.
type callKey struct {
	name string
	kind string
}

// Call is the span of a long call, name that of its system call.
func (t *Table) Call(r *bpf.SampleIoCallRecord, name string) event.Span {
	key := callKey{name, kindOf(&r.Class)}
	call := t.calls[key]
	if call == nil {
		call = &event.Call{Layer: "io", Category: key.kind, Name: key.name}
		t.calls[key] = call
	}
	detail := &event.Detail{}
	detail.FileSystem, detail.Mount, _ = t.place(r.Tgid, &r.Class)
	if of := t.threads[r.Tid]; of != nil && of.bornNS == r.BornNs {
		detail.Path = of.path(r.Slot, r.Generation, detail.Mount)
	}
	if t.waits {
		waited := int64(r.WaitedNs)
		detail.WaitedNS = &waited
	}
	row := event.Span{
		ID: int64(r.SpanId), ParentID: int64(r.ParentId), StartNS: int64(r.StartNs) + t.offsetNS, DurationNS: int64(r.EndNs - r.StartNs),
		PID: int32(r.Tgid), TID: int32(r.Tid), Call: call, End: event.EndReturn, Status: event.StatusOK, Weight: 1, SequenceNumber: -1,
		Detail: detail,
	}
	if code := -r.Result; code > 0 && code <= maxErrno {
		row.Status, detail.ErrorCode = event.StatusError, &code
		return row
	}
	if r.Class.Operation != operationSync {
		bytes := r.Result
		detail.Bytes = &bytes
	}
	return row
}

// maxErrno is the largest number of an error: include/linux/err.h.
const maxErrno = 4095

// operationSync is IO_SYNC of bpf/io.h, operationFault IO_FAULT.
const operationSync, operationFault = 3, 4
