package tracer

import (
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
)

// What a Session hands to its Sink. The types are those of package event, which
// imports no loader; the names here are for who has a Session anyway.
type (
	Call      = event.Call
	EndMethod = event.EndMethod
	Status    = event.Status
	Span      = event.Span
	Detail    = event.Detail
	Frame     = event.Frame
	Stack     = event.Stack
	Sample    = event.Sample
	Memory    = event.Memory
	Counter   = event.Counter
	Process   = event.Process
	Thread    = event.Thread
	Library   = event.Library
	Probe     = event.Probe
	Slice     = event.Slice
	OpenCalls = event.OpenCalls
	Flow      = event.Flow
	IO        = event.IO
	Warning   = event.Warning
	Recording = event.Recording
	Sink      = event.Sink
	Discard   = event.Discard

	Totals        = rows.Totals
	LineTotals    = rows.LineTotals
	OperatorTotal = rows.OperatorTotal
)

// The values of Span.End, Span.Status, Sample.State, Sample.Cause and Stack.Status.
const (
	EndReturn     = event.EndReturn
	EndExitSite   = event.EndExitSite
	EndNextEntry  = event.EndNextEntry
	EndScope      = event.EndScope
	EndUnfinished = event.EndUnfinished

	StatusAbsent   = event.StatusAbsent
	StatusOK       = event.StatusOK
	StatusThrew    = event.StatusThrew
	StatusError    = event.StatusError
	StatusNotReady = event.StatusNotReady

	OnCPU          = event.OnCPU
	OffCPU         = event.OffCPU
	CauseSyscall   = event.CauseSyscall
	CauseFault     = event.CauseFault
	CausePreempted = event.CausePreempted
	CauseStopped   = event.CauseStopped

	StackComplete = event.StackComplete
)
