package tracer

import (
	"path"

	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/counter"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/job"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/probes"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
	"github.com/ebpfprof/ebpfprof/tracer/waits"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// told is what the decoder learns of the job and its probes, on its own goroutine.
type told struct {
	decoder *decode.Decoder
	history *counter.History // what the processes have held of memory lately
}

func (t told) Write(row func(event.Sink) error) { t.decoder.Write(row) }

func (t told) OnceDrained(f func()) {
	t.decoder.Do(func(d *decode.Decoder) { d.Departed.WhenRead(f) })
}

// Left makes rows of scopes whose end will not be seen.
func (t told) Left(open []kernel.OpenCall) {
	for _, c := range open {
		t.decoder.Do(func(d *decode.Decoder) { d.Departed.Scope(c) })
	}
}

func (t told) Process(row event.Process) {
	job := waits.Job{WorldSize: row.WorldSize}
	if row.JobID != nil {
		job.ID = *row.JobID
	}
	t.decoder.Do(func(d *decode.Decoder) {
		row := d.Collectives.Ranked(row)
		if row.EndedNS == nil {
			d.Collectives.Process(row.PID, job)
		} else {
			d.Clocks.Steps.Ended(row.PID, *row.EndedNS)
		}
		d.Rows.Out.Add(&event.Batch{Processes: []event.Process{row}})
	})
}

func (t told) ShortProcesses(rows []event.ShortProcess) {
	t.decoder.Do(func(d *decode.Decoder) {
		d.Rows.Sums.Short(rows)
		d.Rows.Out.Add(&event.Batch{ShortProcesses: rows})
	})
}

func (t told) Thread(row event.Thread) {
	t.Write(func(sink event.Sink) error { return sink.Write(&event.Batch{Threads: []event.Thread{row}}) })
}

func (t told) ThreadEnded(pid, tid int32) {
	t.decoder.Do(func(d *decode.Decoder) { d.ThreadEnded(pid, tid) })
}

func (t told) Library(row event.Library, again bool) {
	t.decoder.Do(func(d *decode.Decoder) {
		if !again {
			d.Rows.Out.Add(&event.Batch{Libraries: []event.Library{row}})
		}
		if accel.IsDriver(path.Base(row.Path)) && row.BuildID != nil {
			d.Runtimes.Driver(uint32(row.PID), *row.BuildID)
		}
	})
}

func (t told) Remapped(pid int) {
	t.decoder.Do(func(d *decode.Decoder) { d.Runtimes.Remapped(uint32(pid)) })
}
func (t told) Ended(pid int) {
	t.decoder.Do(func(d *decode.Decoder) { d.Departed.Process(int32(pid)) })
}

// Killed notes it with what the processes have held lately: of this one it is the last
// moment to look.
func (t told) Killed(pid int, ns int64) {
	held := t.history.Take()
	t.decoder.Do(func(d *decode.Decoder) {
		keepReadings(d, held)
		d.Killed(int32(pid), ns)
	})
}

// acceleratorMaps tell package accel what processes map; that they have ended, the
// decoder does.
type acceleratorMaps struct{ *decode.Runtimes }

func (acceleratorMaps) Began(int) {}
func (acceleratorMaps) Ended(int) {}

// countedJob has the memory of a process read, or the counters of its control groups and
// networks.
type countedJob struct {
	reader interface {
		Follow(pid int)
		Forget(pid int)
	}
}

func (c countedJob) Began(pid int)                { c.reader.Follow(pid) }
func (countedJob) Mapped(int, []*process.Library) {}
func (c countedJob) Ended(pid int)                { c.reader.Forget(pid) }

// governedJob is what the probes are on.
type governedJob struct {
	processes job.Processes
	taking    *taking
	probes    *probes.Set
}

func (g governedJob) Processes() []int { return g.processes.WithFramework() }
func (g governedJob) TakingCost() budget.TakingCost {
	return budget.TakingCost{Stack: g.taking.stackCost(), Line: g.taking.lineCost()}
}
func (g governedJob) SampleShare() float64 { return g.taking.sampleShare() }

func (g governedJob) Libraries(yield func(progress.Library) bool) {
	for _, f := range g.probes.Files() {
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
func (s switches) PrepareRemoval()                   { s.k.PrepareRemoval() }

// heldRows are the rows that wait in the decoder, on whose goroutine they are let go.
type heldRows struct{ decoder *decode.Decoder }

func (h heldRows) Hold(on bool) { h.decoder.Rows.Slices.Hold(on) }

func (h heldRows) Weigh(epoch uint32, before int64, slices []event.Slice, weigh weights.Weigher, done func(map[uint32]float64)) {
	h.decoder.Do(func(d *decode.Decoder) {
		if len(slices) > 0 {
			d.Rows.Out.Add(&event.Batch{Slices: slices})
		}
		if weigh == nil {
			return
		}
		d.Rows.Slices.WeighLate()
		means := d.Rows.Slices.Weigh(epoch, before, weigh)
		if done != nil {
			done(means)
		}
	})
}
