// Package scripted writes datasets that tests make up: what a job did, call by
// call, with times that the test knows.
package scripted

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Job is one process whose main thread makes calls one after the other. Its
// clock, Now, is in nanoseconds.
type Job struct {
	PID, TID int32
	Now      int64
	// Weight is that of the spans that follow; 1 unless it is set.
	Weight float64
	// Parent is the process that made this one; 0 is none of the job's.
	Parent int32
	// World is how many ranks the job has; 0 is not known.
	World int32
	// Role is what the main thread does in the framework; "" is not known.
	Role string
	// PriceNS is what a pass of a probe cost by the recording; 0 is not known.
	PriceNS int64

	spans   []*event.Span
	samples []*event.Sample
	stacks  map[int64]event.Stack
	memory  []event.Memory
	counter []event.Counter
	io      []event.IO
	open    []int64
	slices  []event.Slice
	warned  []event.Warning
	inSlice bool
}

// New begins a job at a time that is not zero.
func New() *Job {
	return &Job{PID: 100, TID: 100, Now: 1_000_000_000, Weight: 1, stacks: map[int64]event.Stack{}}
}

// Call is a call that takes own nanoseconds before, and as many after, what
// inside does; its span is returned and may be changed until Write.
func (j *Job) Call(layer, category, name string, own int64, inside ...func()) *event.Span {
	id := int64(len(j.spans) + 1)
	s := &event.Span{ID: id, StartNS: j.Now, PID: j.PID, TID: j.TID, Weight: j.Weight, SequenceNumber: -1,
		Call: &event.Call{Layer: layer, Category: category, Name: name}}
	if j.inSlice {
		s.SliceID = j.slices[len(j.slices)-1].ID
	}
	if len(j.open) > 0 {
		s.ParentID = j.open[len(j.open)-1]
	}
	j.spans = append(j.spans, s)
	j.open = append(j.open, id)
	j.Now += own
	for _, f := range inside {
		f()
	}
	if len(inside) > 0 {
		j.Now += own
	}
	j.open = j.open[:len(j.open)-1]
	s.DurationNS = j.Now - s.StartNS
	return s
}

// Op is an operator.
func (j *Job) Op(name string, own int64, inside ...func()) *event.Span {
	return j.Call("op", "", name, own, inside...)
}

// Load is the data loader's next.
func (j *Job) Load(own int64, inside ...func()) {
	j.Call("scope", "", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", own, inside...)
}

// Backward is a backward pass.
func (j *Job) Backward(own int64, inside ...func()) {
	j.Call("autograd", "backward", "Engine::execute", own, inside...)
}

// Node is a node of the backward pass; sequence ties it to its forward operator.
func (j *Job) Node(name string, sequence, own int64, inside ...func()) {
	j.Call("autograd", "node", name, own, inside...).SequenceNumber = sequence
}

// Optimize is an optimizer's step.
func (j *Job) Optimize(own int64, inside ...func()) {
	j.Call("scope", "", "Optimizer.step#SGD.step", own, inside...)
}

// Wait lets time pass outside of any call.
func (j *Job) Wait(ns int64) { j.Now += ns }

// Slice is what is recorded of a job in a slice, of so many training steps that stand for
// others: the weight of its rows is by that.
func (j *Job) Slice(recorded, represented float64, inside func()) {
	slice := event.Slice{ID: int64(len(j.slices) + 1), PID: j.PID, Group: "backward", BeginNS: j.Now, FromNS: j.Now,
		Phase: event.PhaseTraining,
		Unit:  event.UnitSteps, Recorded: recorded, Represented: represented, Steps: int32(recorded)}
	j.slices, j.inSlice = append(j.slices, slice), true
	before := j.Weight
	j.Weight = represented / recorded
	inside()
	j.Weight, j.inSlice = before, false
	last := &j.slices[len(j.slices)-1]
	last.EndNS, last.ToNS = j.Now, j.Now
}

// Pause lets time pass of which nothing is recorded, and for which the slice before it stands. unit is what that slice is
// counted in.
func (j *Job) Pause(ns int64, unit string) {
	j.Now += ns
	last := &j.slices[len(j.slices)-1]
	last.ToNS, last.Unit = j.Now, unit
}

// Sample looks at the main thread from the job's clock on for weight nanoseconds,
// without moving it. Frames are leaf first.
func (j *Job) Sample(state string, weight int64, frames ...event.Frame) *event.Sample {
	stack := j.Stack(frames...)
	s := &event.Sample{TSNS: j.Now, PID: j.PID, TID: j.TID, State: state, WeightNS: weight, StackID: &stack}
	j.samples = append(j.samples, s)
	return s
}

// Stack is the id of a stack, leaf first.
func (j *Job) Stack(frames ...event.Frame) int64 {
	id := int64(1)
	for _, f := range frames {
		for _, b := range []byte(f.Function + f.File) {
			id = (id*131 + int64(b)) & (1<<62 - 1)
		}
		id = (id*131 + int64(f.Line)) & (1<<62 - 1)
	}
	j.stacks[id] = event.Stack{ID: id, Frames: frames, Status: event.StackComplete}
	return id
}

// Python is a Python frame.
func Python(function, file string, line int32) event.Frame {
	return event.Frame{Kind: "python", Function: function, File: file, Line: line}
}

// Launch is a call of the runtime, and the work of a device that it launches: from
// start on, which may lie after the job's clock, for duration.
func (j *Job) Launch(own int64, category, name string, start, duration int64) (work *event.Span) {
	call := j.Call("runtime", map[string]string{"copy": "copy"}[category], "cudaLaunchKernel", own)
	if call.Call.Category == "" {
		call.Call.Category = "launch"
	}
	stream, device := int64(7), int32(0)
	w := &event.Span{ID: int64(len(j.spans) + 1), StartNS: start, DurationNS: duration, PID: j.PID, Weight: 1, SequenceNumber: -1,
		Call:   &event.Call{Layer: "device", Category: category, Name: name},
		Detail: &event.Detail{LaunchID: &call.ID, Stream: &stream, DeviceID: &device}}
	j.spans = append(j.spans, w)
	return w
}

// Bound says of a call of the runtime how long what it handed to a device took, as a recording of
// the host knows it.
func (j *Job) Bound(call *event.Span, least, most int64) {
	stream, device := int64(7), int32(0)
	call.Detail = &event.Detail{Stream: &stream, DeviceID: &device, DeviceTimeLoNS: &least, DeviceTimeHiNS: &most, DeviceTimeMethod: "bounded"}
}

// Heat says for how much of a period before now the processor was slowed down.
func (j *Job) Heat(period, throttled int64) {
	j.counter = append(j.counter, event.Counter{TSNS: j.Now, PeriodNS: &period, Source: "thermal", Device: "package-0", Name: "cpu_throttled",
		Kind: event.Delta, Unit: "ns", Value: float64(throttled)})
}

// Read is a reading of a device's counter, now.
func (j *Job) Read(name string, value float64) {
	device := int32(0)
	j.counter = append(j.counter, event.Counter{TSNS: j.Now, Source: "nvml", DeviceID: &device, Name: name, Value: value})
}

// ReadFile is a read of a file from now on, without moving the clock; waited of its time it was off the CPU.
func (j *Job) ReadFile(bytes, duration, waited int64) {
	j.io = append(j.io, event.IO{TSNS: j.Now, EndNS: j.Now + duration, PID: j.PID, TID: j.TID, Operation: "read", Kind: "file",
		FileSystem: "ext4",
		Mount:      "/data", Calls: 1, Bytes: bytes, DurationNS: duration, WaitedNS: &waited})
}

// Allocate is an allocation of the framework's caching allocator or the driver.
func (j *Job) Allocate(level string, bytes int64) {
	j.memory = append(j.memory, event.Memory{TSNS: j.Now, PID: j.PID, TID: j.TID, Space: "device",
		Level: level, Action: "alloc", Bytes: &bytes})
}

// SampleWaits says that waits are sampled from now on, not recorded each.
func (j *Job) SampleWaits() {
	j.warned = append(j.warned, event.Warning{TSNS: j.Now, Kind: "slice", Source: "waits", Count: 1})
}

// Write makes the dataset, with the jobs as its processes, and returns its directory.
func Write(t testing.TB, jobs ...*Job) string {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	recording := event.Recording{ID: "s", StartedNS: 1_000_000_000}
	if len(jobs) > 0 && jobs[0].PriceNS > 0 {
		hits := int64(1000)
		overhead := hits * jobs[0].PriceNS
		recording.Hits, recording.OverheadNS = &hits, &overhead
	}
	err = d.Session(recording)
	var first int64
	for i, j := range jobs {
		var spans []event.Span
		for _, span := range j.spans {
			row := *span
			row.ID += first
			if row.ParentID > 0 {
				row.ParentID += first
			}
			if row.Detail != nil && row.Detail.LaunchID != nil {
				detail, launch := *row.Detail, *row.Detail.LaunchID+first
				detail.LaunchID = &launch
				row.Detail = &detail
			}
			spans = append(spans, row)
		}
		var samples []event.Sample
		for _, sample := range j.samples {
			row := *sample
			if row.SpanID > 0 {
				row.SpanID += first
			}
			samples = append(samples, row)
		}
		first += int64(len(j.spans))
		rank := int32(i)
		process := event.Process{ID: int64(j.PID), PID: j.PID, StartedNS: 1}
		switch {
		case j.Parent != 0:
			process.ParentPID = &j.Parent
		case len(jobs) > 1:
			process.Rank = &rank
		}
		if j.World > 0 {
			process.WorldSize = &j.World
		}
		thread := event.Thread{PID: j.PID, TID: j.TID}
		if j.Role != "" {
			thread.Role = &j.Role
		}
		var stacks []event.Stack
		for _, s := range j.stacks {
			stacks = append(stacks, s)
		}
		err = errors.Join(err, d.Write(&event.Batch{
			Processes: []event.Process{process}, Threads: []event.Thread{thread}, IO: j.io, Slices: j.slices, Stacks: stacks,
			Samples: samples, Spans: spans, Memory: j.memory, Counters: j.counter, Warnings: j.warned,
		}))
	}
	if err = errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	return d.Dir()
}
