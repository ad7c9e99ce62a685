package decode

import (
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
)

// Decoder turns records into rows. Its methods and parts belong to the goroutine of Run;
// others use Do, Write, and what says so.
type Decoder struct {
	Rows        *rows.Rows
	Runtimes    *Runtimes
	Collectives *Collectives
	Departed    *Departed
	Clocks      Clocks

	inbox   inbox
	calls   *calls
	samples *samples
}

// Config is what a Decoder is made of.
type Config struct {
	Sink     event.Sink
	Probes   *probetable.Table
	OffsetNS int64 // Unix epoch minus CLOCK_MONOTONIC
	// SinceMarkNS is what probes add to what they tell of an allocation's time.
	SinceMarkNS int64
	Classes     ClassNamer // nil where no probe is on autograd nodes
	// Kernels name kernels whose handles are older than the recording, beside what CUDA's
	// own memory tells; the first that knows one does.
	Kernels []accel.Namer
	// Owners keep something of a process beside the decoder.
	Owners []Owner
	// GiveUpIO ends the measuring of reads and writes, which costs too much.
	GiveUpIO func()
	Waits    bool // how long threads wait in a read or write is seen
	Stacks   int  // different ones that have a row; the default of package stacks if 0
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
		Rows: made, Runtimes: runtimes, Clocks: clocks,
		Collectives: newCollectives(made, c.Probes, runtimes.memory, c.OffsetNS),
		samples:     newSamples(made, c.OffsetNS, c.Waits, c.GiveUpIO),
	}
	d.calls = &calls{
		fused: newFused(made, c.Probes, d.samples),
		rows:  made, runtimes: runtimes, collectives: d.Collectives, clocks: clocks, probes: c.Probes, classes: c.Classes, offsetNS: c.OffsetNS, sinceMarkNS: c.SinceMarkNS,
		host: newHostMemory(), shapes: newShapes(), forwards: newForwards(made, clocks.Nodes),
	}
	d.Departed = &Departed{owners: append([]Owner{&d.calls.host, d.samples.threads, d.samples.io, d.calls.forwards, runtimes, d.Collectives, made.Stacks}, c.Owners...)}
	return d
}

// Unfinished makes a row of a call whose end was not seen.
func (d *Decoder) Unfinished(c kernel.OpenCall) { d.calls.unfinished(c) }

// SampledThreads is how many are followed.
func (d *Decoder) SampledThreads() int { return len(d.samples.threads.known) }

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
	return d.Flush()
}

// Close lets go of the processes' memory.
func (d *Decoder) Close() { d.Runtimes.memory.close() }
