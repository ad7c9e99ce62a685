package pattern

import (
	"fmt"
	"math"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What the machine's counters say travels with the functions: whether a worker is slow because
// its GPU's clock was held down, no function can tell.

// Read is the basis of a counter's row: Mu is its mean in the window in Resource's unit, Sigma its
// spread over the readings, Beta 1, Count the readings. Of what is counted in nanoseconds, and of
// flags, Mu is a share of the time; of what is counted otherwise, so much a second.
const Read Basis = "counters"

// Counters are those that a pattern is made of.
var Counters = []string{
	"gpu_clock_sm", "gpu_power", "gpu_temperature", "gpu_busy",
	"gpu_throttle_power_cap", "gpu_throttle_thermal", "gpu_throttle_hardware", "gpu_throttle_hardware_thermal", "gpu_throttle_power_brake",
	"gpu_throttled_power", "gpu_throttled_thermal",
	"gpu_pcie_sent", "gpu_pcie_received", "gpu_pcie_send_rate", "gpu_pcie_receive_rate", "gpu_pcie_replays", "gpu_nvlink_sent",
	"gpu_nvlink_received",
	"cpu_clock", "cpu_throttled", "cpu_steal", "pressure_cpu_some", "pressure_memory_some", "pressure_io_some",
}

var counted = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range Counters {
		all[name] = true
	}
	return all
}()

// OwnsDevice is the counter that tells which process is at work on a device.
const OwnsDevice = "gpu_process_busy"

const nanoseconds = "ns"

// mostReadings bounds the counters of a node in one window: 64 devices with all of theirs.
const mostReadings = 1024

// reading is one counter of one device, or of the machine.
type reading struct {
	name   string
	device int32 // of an accelerator; -1 of the machine
}

// readings are what a counter showed in a window. Those of the machine's parts, as its CPUs are, are one.
type readings struct {
	unit        string
	count       int64
	time        float64 // that they are of, ns; for a gauge its readings count alike
	sum, square float64
}

func (c *Collector) read(n *event.Counter) {
	if n.Name == OwnsDevice && n.PID != nil && n.DeviceID != nil {
		if w := c.workers[*n.PID]; w != nil {
			device := *n.DeviceID
			w.device = &device
		}
		return
	}
	if !counted[n.Name] || math.IsNaN(n.Value) || math.IsInf(n.Value, 0) {
		return
	}
	k := reading{n.Name, -1}
	if n.DeviceID != nil {
		k.device = *n.DeviceID
	} else if strings.HasPrefix(n.Name, "gpu_") {
		return // of which is not known
	}
	r := c.readings[k]
	if r == nil {
		if len(c.readings) >= mostReadings {
			c.lost.Functions++
			return
		}
		r = &readings{unit: n.Unit}
		c.readings[k] = r
	}
	value, weight := n.Value, 1.0
	if n.Kind == event.Delta {
		if n.PeriodNS == nil || *n.PeriodNS <= 0 {
			return
		}
		weight = float64(*n.PeriodNS)
		if value /= weight; n.Unit != nanoseconds {
			value *= 1e9
		}
	}
	r.count++
	r.time, r.sum, r.square = r.time+weight, r.sum+weight*value, r.square+weight*value*value
}

// counterPatterns are the counters of the machine and of the worker's device. What never happened has
// no row where others show that it was looked at.
func (c *Collector) counterPatterns(base Pattern, w *worker) (all []Pattern) {
	device := w.device
	if device == nil {
		device = c.onlyDevice()
	}
	for k, r := range c.readings {
		if k.device >= 0 && (device == nil || k.device != *device) || r.time <= 0 {
			continue
		}
		p := base
		f := function{class: Host, name: k.name}
		f.hash()
		p.Function, p.Class, p.Name, p.Basis, p.Count = f.key, Host, k.name, Read, r.count
		if k.device >= 0 {
			p.Name = fmt.Sprintf("%s (GPU %d)", k.name, k.device)
		}
		p.Mu = r.sum / r.time
		p.Sigma = math.Sqrt(max(0, r.square/r.time-p.Mu*p.Mu))
		switch p.Resource = r.unit; r.unit {
		case nanoseconds, "flag":
			p.Resource = "share"
		case "bytes", "count":
			p.Resource = r.unit + "_per_second"
		}
		if p.Mu == 0 && p.Resource != "hertz" {
			continue
		}
		p.Beta, p.BetaLo, p.BetaHi = 1, 1, 1
		all = append(all, p)
	}
	return all
}

// onlyDevice is the device of a node that has one.
func (c *Collector) onlyDevice() (only *int32) {
	for k := range c.readings {
		if k.device < 0 {
			continue
		}
		if only != nil && *only != k.device {
			return nil
		}
		device := k.device
		only = &device
	}
	return only
}
