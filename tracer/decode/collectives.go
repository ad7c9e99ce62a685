package decode

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
	"github.com/ebpfprof/ebpfprof/tracer/waits"
)

// Collectives are those of torch.distributed (package waits), as their calls tell them.
type Collectives struct {
	rows     *rows.Rows
	probes   *probetable.Table
	waits    *waits.State
	offsetNS int64           // Unix epoch minus CLOCK_MONOTONIC
	written  event.OpenCalls // what was open when it was written last
	threads  []event.StillThread
	ranks    ranks
}

func newCollectives(to *rows.Rows, probes *probetable.Table, memory waits.MemoryReader, offsetNS int64) *Collectives {
	return &Collectives{rows: to, probes: probes, waits: waits.New(memory, &to.Batch), offsetNS: offsetNS, ranks: newRanks()}
}

// Ranked is a process's row with the rank that its groups tell, where it has none.
func (c *Collectives) Ranked(row event.Process) event.Process { return c.ranks.fill(row) }

// Process tells of which job a process is.
func (c *Collectives) Process(pid int32, job waits.Job) { c.waits.Process(pid, job) }

// Forget implements Owner.
func (c *Collectives) Forget(pid uint32) { c.waits.Ended(int32(pid)) }

// ShowsOpen reports whether a call of a function that does not end is to be seen while it
// is open: Open takes those.
func ShowsOpen(f *spec.Function) bool { return f.Effect == spec.AwaitsWork || isIssue(f) }

// isIssue reports whether a call asks a group of ranks for a collective.
func isIssue(f *spec.Function) bool { return f.Layer == "collective" && f.Category == "issue" }

// collectiveCall is what a record says of a collective.
func collectiveCall(a *accel.Arguments, epoch uint32) waits.Call {
	c := waits.Call{Number: -1, Epoch: epoch, Group: a.Value(spec.FieldCommunicator), Work: a.Value(spec.FieldWork)}
	if a.Has(spec.FieldNumber) {
		c.Number = int64(a.Value(spec.FieldNumber))
	}
	return c
}

// call follows a call that has ended.
func (c *Collectives) call(s *event.Span, f *spec.Function, r *callRecord) {
	switch {
	case f.Effect == spec.RunsWork, f.Effect == spec.AwaitsWork, f.Effect == spec.FailsWork, isIssue(f):
	default:
		return
	}
	var a accel.Arguments
	record := r.call()
	a.Read(f, &record)
	switch call := collectiveCall(&a, r.Epoch); f.Effect {
	case spec.RunsWork:
		c.waits.Run(s, call)
	case spec.AwaitsWork:
		c.waits.Wait(s, call)
	case spec.FailsWork:
		c.waits.Fail(s, call)
	default:
		if call.Group != 0 {
			c.waits.Issue(s, call)
		}
	}
}

// unfinished follows one that ran a collective and whose end was not seen.
func (c *Collectives) unfinished(s *event.Span) { c.waits.Run(s, waits.Call{Number: -1}) }

// event follows what happens within one.
func (c *Collectives) event(f *spec.Function, r *callRecord, a *accel.Arguments) {
	call, now := collectiveCall(a, r.Epoch), int64(r.StartNs)+c.offsetNS
	probe := c.probes.Find(r.Spec)
	call.Sliced = probe != nil && probe.Sliced(r.Epoch)
	switch f.Effect {
	case spec.QueuesWork:
		c.waits.Queue(int32(r.Tgid), int32(r.Tid), int64(r.ParentId), now, f.Runtime, call)
	case spec.CopiesWork:
		c.waits.Copy(int32(r.Tgid), a.Value(spec.FieldCopy), call)
	case spec.FinishesWork:
		c.waits.Finish(int32(r.Tgid), int64(r.ParentId), now, call)
	}
}

// Open writes what threads are in, if that has changed.
func (c *Collectives) Open(nowNS int64, since waits.Epochs, open []kernel.OpenFrame) {
	var frames []waits.Frame
	for i := range open {
		if frame, ok := c.frame(&open[i]); ok {
			frames = append(frames, frame)
		}
	}
	now := c.waits.Open(nowNS, since, frames)
	if news := c.ranks.learn(now.Communicators); len(news) > 0 {
		c.rows.Out.Add(&event.Batch{Processes: news})
	}
	now.Threads = c.threads
	if !waits.Changed(&c.written, &now) {
		return
	}
	c.write(now)
}

// still takes where threads are that do not run, in place of what was known before.
func (c *Collectives) still(threads []event.StillThread) {
	c.threads = threads
	now := c.written
	now.Threads = threads
	// A rank that others wait for has nothing open, and how far it has come is asked of its
	// groups: what was written last may be as old as the job. Calls name groups by place.
	if groups := c.waits.Communicators(); len(now.Calls) == 0 || sameGroups(now.Communicators, groups) {
		now.Communicators = groups
	}
	if !slices.Equal(c.written.Threads, threads) {
		c.write(now)
	}
}

func sameGroups(a, b []event.Communicator) bool {
	return slices.EqualFunc(a, b, func(a, b event.Communicator) bool { return a.PID == b.PID && a.Handle == b.Handle })
}

func (c *Collectives) write(now event.OpenCalls) {
	c.written = now
	written := now
	written.Calls = slices.Clone(now.Calls)
	for i := range written.Calls {
		if line := uint64(written.Calls[i].PythonStackID) &^ rows.LineSourceBits; line != 0 {
			written.Calls[i].PythonStackID = c.rows.Stacks.PythonOf(line)
		}
	}
	c.rows.Out.Add(&event.Batch{OpenCalls: []event.OpenCalls{written}})
}

// frame is an open call as package waits takes it.
func (c *Collectives) frame(open *kernel.OpenFrame) (frame waits.Frame, ok bool) {
	probe := c.probes.Find(open.Spec)
	if probe == nil {
		return frame, false
	}
	f := probe.Planned.Function
	n := min(len(f.Values), len(open.Args))
	record := accel.Record{PID: open.Tgid, TID: open.TID, Args: open.Args[:n], Faults: probe.Planned.Unknown}
	var a accel.Arguments
	a.Read(f, &record)
	call := collectiveCall(&a, open.Epoch)
	frame = waits.Frame{
		PID: int32(open.Tgid), TID: int32(open.TID), SpanID: int64(open.SpanID), StartNS: int64(open.StartNS) + c.offsetNS,
		Call: probe.Planned.Call, Work: call.Work, Group: call.Group, Number: call.Number, Line: int64(open.Line),
	}
	if probe.Stack && n < len(open.Args) {
		frame.StackID = c.rows.Stacks.IDOf(open.Args[n])
	}
	return frame, true
}
