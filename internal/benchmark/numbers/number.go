// Package numbers reads from a recording what a benchmark of a training job is compared by: throughput, epoch length,
// communication, input and output, loss, and what stands beside them. The job prints none of it and is not changed.
package numbers

import (
	"cmp"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// Number is one of them. Value is nil where it is not available; Why says why then.
type Number struct {
	Name  string   `json:"name"`
	Unit  string   `json:"unit"`
	Value *float64 `json:"value"`
	// Lo and Hi are the ends of its 95 % interval; nil where nothing tells them.
	Lo *float64 `json:"lo"`
	Hi *float64 `json:"hi"`
	// Of is how many of what From names the value is a mean of: steps, epochs, runs, readings.
	Of   int    `json:"of"`
	From string `json:"from,omitempty"`
	Why  string `json:"why,omitempty"`
}

// The names of the numbers.
const (
	Throughput        = "throughput"
	ComputeThroughput = "compute_throughput"
	EpochTime         = "epoch_time"
	Communication     = "communication_time"
	Exposed           = "communication_exposed"
	IO                = "io_time"
	ExposedIO         = "io_exposed"
	Loss              = "loss"
	LossChange        = "loss_change"
	StepTime          = "step_time"
	StepsPerSecond    = "steps_per_second"
	Batch             = "batch"
	Storage           = "io_storage"
	DecodeTime        = "io_decode"
	CopyTime          = "io_copy"
	Power             = "power"
	EnergyPerSample   = "energy_per_sample"
	CPUUtilisation    = "cpu_utilisation"
	DeviceUtilisation = "device_utilisation"
	HostMemory        = "host_memory_peak"
	DeviceMemory      = "device_memory_peak"
	Stability         = "step_spread"
	Overhead          = "recording_cost"
)

// Direction says in which direction a number is better: 1 is more, -1 less, 0 neither.
type Direction int

// Kind describes a number.
type Kind struct {
	Name, Unit string
	Better     Direction
	Meaning    string
	// Main: one of the five by which systems are compared, with its counterparts.
	Main bool
}

// Kinds are all numbers, in the order in which they are shown.
func Kinds() []Kind {
	return []Kind{
		{Throughput, "samples/s", 1, "effective: batch ÷ step time", true},
		{ComputeThroughput, "samples/s", 1, "batch ÷ (step time − exposed IO)", true},
		{EpochTime, "s", -1, "one pass over the data loader", true},
		{Communication, "ms/step", -1, "in collectives, hidden behind computation or not", true},
		{Exposed, "ms/step", -1, "the training thread is in collectives", true},
		{IO, "ms/step", -1, "storage, decoding and copies of all threads", true},
		{ExposedIO, "ms/step", -1, "the training thread waits for data or loads it itself", true},
		{Loss, "", 0, "the last one that the job prints", true},
		{LossChange, "", 0, "the last one that the job prints less the first", false},
		{StepTime, "ms", -1, "from one step's begin to the next one's, without warm-up", false},
		{StepsPerSecond, "steps/s", 1, "1 ÷ step time", false},
		{Batch, "samples", 0, "samples of a step, all ranks together", false},
		{Storage, "ms/step", -1, "reads and page faults of files, all threads of the job's loader", false},
		{DecodeTime, "ms/step", -1, "CPU time of the data loader, in workers or not, without its reads", false},
		{CopyTime, "ms/step", -1, "copies from the host to devices", false},
		{Power, "W", -1, "of all devices, else of the processor packages", false},
		{EnergyPerSample, "J", -1, "power × step time ÷ batch", false},
		{CPUUtilisation, "%", 0, "of the machine's CPUs, all processes", false},
		{DeviceUtilisation, "%", 0, "mean over the devices, as their driver counts", false},
		{HostMemory, "MiB", -1, "peak of the processes' resident memory, added up", false},
		{DeviceMemory, "MiB", -1, "peak that the framework held from the driver", false},
		{Stability, "%", -1, "standard deviation of the step times ÷ their mean", false},
		{Overhead, "%", 0, "what the recording cost, of the job's own time", false},
	}
}

// KindOf is the description of a name; a variable of a suite has none.
func KindOf(name string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{Name: name}, false
}

// measured is a number that is there.
func measured(name string, value float64, of int, from string) Number {
	k, _ := KindOf(name)
	return Number{Name: name, Unit: k.Unit, Value: &value, Of: of, From: from}
}

// missing is one that is not.
func missing(name, why string) Number {
	k, _ := KindOf(name)
	return Number{Name: name, Unit: k.Unit, Why: why}
}

// within sets the interval.
func (n Number) within(lo, hi float64) Number {
	n.Lo, n.Hi = &lo, &hi
	return n
}

// meanOf is the mean of a value of each step, with its interval.
func meanOf(name string, values []float64, from string) Number {
	n := measured(name, steps.Mean(values), len(values), from)
	if half, ok := steps.Noise(values); ok {
		n = n.within(*n.Value-half, *n.Value+half)
	}
	return n
}

// inverse is a number that is by how often another one fits into a constant: steps a second, samples a second.
func (n Number) inverse(name string, constant float64) Number {
	k, _ := KindOf(name)
	out := Number{Name: name, Unit: k.Unit, Of: n.Of, From: n.From}
	turn := func(v *float64) *float64 {
		if v == nil || *v <= 0 {
			return nil
		}
		return new(constant / *v)
	}
	out.Value, out.Lo, out.Hi = turn(n.Value), turn(n.Hi), turn(n.Lo)
	if out.Value == nil {
		out.Why = cmp.Or(n.Why, "it would be a division by zero")
	}
	return out
}

// Find is the number of a name, if it is there.
func Find(all []Number, name string) (Number, bool) {
	for _, n := range all {
		if n.Name == name {
			return n, true
		}
	}
	return Number{}, false
}

// value is that of a name, nil where it is not available.
func value(all []Number, name string) *float64 {
	n, _ := Find(all, name)
	return n.Value
}
