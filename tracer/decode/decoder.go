package decode

import (
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/generated"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// Decoder turns records into rows. Its methods and parts belong to the goroutine of Run;
// others use Do, Write, and what says so.
type Decoder struct {
	Rows        *rows.Rows
	Runtimes    *Runtimes
	Collectives *Collectives
	Departed    *Departed
	Clocks      Clocks
	Modules     *generated.Modules

	inbox   inbox
	calls   *calls
	samples *samples
}

// Config is what a Decoder is made of.
type Config struct {
	Sink       event.Sink
	Probes     *probetable.Table
	OffsetNS   int64 // Unix epoch minus CLOCK_MONOTONIC
	ProbesTook ProbesTook
	Classes    ClassNamer // nil where no probe is on autograd nodes
	// Kernels name kernels whose handles are older than the recording, beside what CUDA's
	// own memory tells; the first that knows one does.
	Kernels []accel.Namer
	// Owners keep something of a process beside the decoder.
	Owners []Owner
	// GiveUpIO ends the measuring of reads and writes, which costs too much.
	GiveUpIO func()
	// RanOut is called on the decoder's goroutine when an allocation found no room; nil is nobody.
	RanOut func(*Decoder)
	Waits  bool // how long threads wait in a read or write is seen
	Stacks int  // different ones that have a row; the default of package stacks if 0
}

// ClassNamer names the class of an object by its vtable pointer.
type ClassNamer interface {
	Class(pid uint32, vtable uint64) (name string, ok bool)
}

// New makes a Decoder.
func New(c Config) *Decoder {
	made := rows.New(c.Sink)
	if c.Stacks > 0 {
		made.Stacks.SetLimit(c.Stacks)
	}
	runtimes := newRuntimes(made, c.Kernels)
	clocks := newClocks()
	d := &Decoder{
		Rows: made, Runtimes: runtimes, Clocks: clocks, Modules: generated.NewModules(generated.ProcessFiles()),
		Collectives: newCollectives(made, c.Probes, runtimes.memory, c.OffsetNS),
		samples:     newSamples(made, c.OffsetNS, c.Waits, c.GiveUpIO),
	}
	if c.RanOut != nil {
		made.Batch.RanOut = func() { c.RanOut(d) }
	}
	d.calls = &calls{
		fused: newFused(made, c.Probes, d.samples, d.Modules),
		rows:  made, runtimes: runtimes, collectives: d.Collectives, clocks: clocks, probes: c.Probes, classes: c.Classes, offsetNS: c.OffsetNS,
		probesTook: c.ProbesTook,
		host:       newHostMemory(), shapes: newShapes(), forwards: newForwards(made, clocks.Nodes),
	}
	d.samples.called = d.calls.fused.prepare
	stacks.Beside(made.Stacks, d.samples.beside)
	d.Departed = &Departed{owners: append([]Owner{&d.calls.host, d.samples.threads, d.samples.last, d.samples.io, d.calls.forwards, runtimes,
		d.Collectives, made.Stacks, d.Modules}, c.Owners...)}
	return d
}

// Standing writes where threads are that do not run, in place of what was written before;
// nowNS is CLOCK_MONOTONIC.
func (d *Decoder) Standing(nowNS int64, threads []stacks.Standing) {
	offset := d.Collectives.offsetNS
	var rows []event.StillThread
	for i := range threads {
		t := &threads[i]
		row := event.StillThread{SeenNS: nowNS + offset, PID: int32(t.Start.Tgid), TID: int32(t.Start.Tid), StackID: d.Rows.Stacks.AddStanding(t),
			State: threadState(t.State)}
		if t.SinceNS != 0 {
			since := t.SinceNS + offset
			row.SinceNS = &since
		}
		if t.Syscall >= 0 {
			row.Syscall = syscallName(t.Syscall)
		}
		rows = append(rows, row)
	}
	d.Rows.Out.Keep(d.Flush()) // the stacks before what names them
	d.Collectives.still(rows)
}

// threadState is a word for what linux/sched.h has of a thread that does not run: the
// lowest bits are as they have been since 2.6, those above qualify them.
func threadState(state uint32) string {
	switch {
	case state&4 != 0:
		return event.ThreadStopped
	case state&8 != 0:
		return event.ThreadTraced
	case state&2 != 0:
		return event.ThreadUninterruptible
	case state&1 != 0:
		return event.ThreadSleeping
	}
	return ""
}

// Unfinished makes a row of a call whose end was not seen.
func (d *Decoder) Unfinished(c kernel.OpenCall) { d.calls.unfinished(c) }

// SampledThreads is how many are followed.
func (d *Decoder) SampledThreads() int { return len(d.samples.threads.known) }

// SampledFrom notes what threads of a process had spent when sampling began.
func (d *Decoder) SampledFrom(pid int32, timed []process.TimedThread) {
	d.samples.threads.from(pid, timed)
}

// ThreadEnded forgets a thread: its number may be another's.
func (d *Decoder) ThreadEnded(pid, tid int32) { d.samples.threads.ended(pid, tid) }

// Damage counts records of other rings that did not decode.
func (d *Decoder) Damage(records uint64) { d.calls.damaged += records }

func (d *Decoder) damaged() uint64 { return d.calls.damaged + d.samples.damaged }

// Flush hands what is ready to the sink.
func (d *Decoder) Flush() error {
	d.Runtimes.calls.FlushExpired()
	// The stacks that the rows of the batch refer to are in the ring of samples.
	if err := d.samples.read(); err != nil {
		return err
	}
	return d.Rows.Batch.Flush()
}

// Finish hands over what waits for a word from a device, too, which will not come.
func (d *Decoder) Finish() error {
	d.Runtimes.calls.FlushAll()
	d.samples.threads.measure()
	return d.Flush()
}

// Close lets go of the processes' memory.
func (d *Decoder) Close() { d.Runtimes.memory.close() }
