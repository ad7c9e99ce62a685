package pattern

import (
	"math"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Two processes of a node with two GPUs, as NVML tells of them: each has the counters of its own.
func TestCountersAreThoseOfTheWorkersDevice(t *testing.T) {
	c := New(99)
	period := int64(1e9)
	var b event.Batch
	for i, pid := range []int32{11, 12} {
		rank, device := int32(i), int32(1-i)
		b.Processes = append(b.Processes, event.Process{PID: pid, Rank: &rank})
		b.Spans = append(b.Spans, event.Span{PID: pid, TID: pid, Call: &event.Call{Layer: "autograd", Category: "backward",
			Name: "Engine::execute"}, DurationNS: 1})
		for at := int64(0); at < 4e9; at += 1e7 {
			b.Samples = append(b.Samples, event.Sample{PID: pid, TID: pid, State: event.OnCPU, TSNS: 1e15 + at, WeightNS: 1e7})
		}
		b.Counters = append(b.Counters, event.Counter{TSNS: 1e15, Name: OwnsDevice, PID: &pid, DeviceID: &device, Kind: event.Mean,
			Unit: "percent", Value: 90})
	}
	for device, clock := range []float64{1.98e9, 1.23e9} {
		id := int32(device)
		for i := range int64(4) {
			add := func(name string, kind event.CounterKind, unit string, value float64) {
				b.Counters = append(b.Counters, event.Counter{TSNS: 1e15 + i*1e9, PeriodNS: &period, DeviceID: &id, Device: "GPU-x", Name: name,
					Kind: kind, Unit: unit, Value: value})
			}
			add("gpu_clock_sm", event.Gauge, "hertz", clock+float64(i%2)*1e7)
			add("gpu_throttle_power_cap", event.Gauge, "flag", float64(device)*float64(min(i, 1)))
			add("gpu_throttled_power", event.Delta, "ns", 25e7*float64(device))
			add("gpu_pcie_sent", event.Delta, "bytes", 5e9)
			add("gpu_energy", event.Delta, "joules", 300)
		}
	}
	b.Counters = append(b.Counters, event.Counter{TSNS: 1e15, PeriodNS: &period, Name: "pressure_io_some", Kind: event.Delta, Unit: "ns",
		Value: 4e8},
		event.Counter{TSNS: 1e15, Name: "gpu_clock_sm", Kind: event.Gauge, Unit: "hertz", Value: 5}, // of no device
		event.Counter{TSNS: 1e15, Name: "cpu_clock", Kind: event.Gauge, Unit: "hertz", Value: math.NaN()})
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	type told struct{ mu, sigma float64 }
	found := map[int32]map[string]told{}
	for _, p := range c.Flush() {
		if p.Basis != Read {
			continue
		}
		if found[p.Rank] == nil {
			found[p.Rank] = map[string]told{}
		}
		found[p.Rank][p.Name+" "+p.Resource] = told{p.Mu, p.Sigma}
	}
	want := map[int32]map[string]told{
		0: {"gpu_clock_sm (GPU 1) hertz": {1.235e9, 5e6}, "gpu_throttle_power_cap (GPU 1) share": {0.75, math.Sqrt(0.1875)},
			"gpu_throttled_power (GPU 1) share":      {0.25, 0},
			"gpu_pcie_sent (GPU 1) bytes_per_second": {5e9, 0}, "pressure_io_some share": {0.4, 0}},
		1: {"gpu_clock_sm (GPU 0) hertz": {1.985e9, 5e6}, "gpu_pcie_sent (GPU 0) bytes_per_second": {5e9, 0}, "pressure_io_some share": {0.4, 0}},
	}
	for rank, all := range want {
		if len(found[rank]) != len(all) {
			t.Errorf("rank %d has %v, want %v", rank, found[rank], all)
		}
		for name, w := range all {
			if got := found[rank][name]; math.Abs(got.mu-w.mu) > 1e-6*w.mu || math.Abs(got.sigma-w.sigma) > 1e-3*w.sigma+1e-6*w.mu {
				t.Errorf("rank %d, %s: %v, want %v", rank, name, got, w)
			}
		}
	}
	for _, p := range c.Flush() {
		if p.Basis == Read {
			t.Errorf("%s is of the window before", p.Name)
		}
	}
}
