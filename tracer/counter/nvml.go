package counter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/nvml"
)

// nvmlPatience is how long a reading of all GPUs may keep the other counters
// waiting. NVML measures PCIe traffic by waiting 20 ms for it.
const nvmlPatience = 500 * time.Millisecond

// nvmlSource is NVIDIA's management library. What an older driver lacks is not asked for.
type nvmlSource struct {
	library *nvml.Library
	devices []*nvmlDevice
}

type nvmlDevice struct {
	nvml.Device
	at      place
	metrics []nvmlMetric
	seen    map[nvml.Sampling]uint64 // time of the last sample, µs
	process uint64                   // time of the last sample of processes, µs
	gpm     *gpm
	has     func(symbols ...string) bool
}

// nvmlMetric is one call of the library and the functions it needs.
type nvmlMetric struct {
	symbols []string
	read    func(*nvmlDevice, *round) nvml.Return
}

func openNVML(path string) (source, error) {
	library, err := nvml.Open(path)
	if err != nil {
		return nil, err
	}
	s := &nvmlSource{library: library}
	if err := s.open(); err != nil {
		library.Close()
		return nil, err
	}
	return watch(s, nvmlPatience), nil
}

func (s *nvmlSource) open() error {
	n, result := s.library.Count()
	if result != nvml.Success {
		return fmt.Errorf("counting NVIDIA GPUs: %s", s.library.Text(result))
	}
	for i := range n {
		handle, result := s.library.Device(i)
		if result != nvml.Success {
			continue // lost, or not ours to see
		}
		uuid, _ := handle.UUID()
		d := &nvmlDevice{Device: handle, at: accelerator(int(i), uuid), has: s.library.Has, seen: map[nvml.Sampling]uint64{}}
		for _, m := range nvmlMetrics {
			if s.library.Has(m.symbols...) {
				d.metrics = append(d.metrics, m)
			}
		}
		d.gpm = s.openGPM(handle)
		s.devices = append(s.devices, d)
	}
	if len(s.devices) == 0 {
		return errors.New("NVML shows no GPU to this process")
	}
	return nil
}

func (s *nvmlSource) close() {
	for _, d := range s.devices {
		d.gpm.close()
	}
	s.library.Close()
}

// unsupported are the answers of a device that lacks a counter, or has nothing
// to say just now.
var unsupported = map[nvml.Return]bool{
	nvml.Success: true, nvml.NotSupported: true, nvml.NotFound: true,
	nvml.NoPermission: true, nvml.InvalidArgument: true,
}

func (s *nvmlSource) read(r *round) (failed error) {
	for _, d := range s.devices {
		for _, m := range d.metrics {
			var result nvml.Return
			r.now = r.clock()
			result = m.read(d, r)
			if !unsupported[result] && failed == nil {
				failed = fmt.Errorf("GPU %d: %s", d.at.id, s.library.Text(result))
			}
		}
		if result := d.gpm.read(s.library, d, r); !unsupported[result] && failed == nil {
			failed = fmt.Errorf("GPM of GPU %d: %s", d.at.id, s.library.Text(result))
		}
	}
	return failed
}

// nvmlMetrics are the counters in the order in which they are read.
var nvmlMetrics = []nvmlMetric{
	{[]string{"nvmlDeviceGetUtilizationRates"}, func(d *nvmlDevice, r *round) nvml.Return {
		return d.samples(r, nvml.GPUUtilization, "gpu_busy", func(u nvml.Utilization) uint32 { return u.GPU })
	}},
	{[]string{"nvmlDeviceGetUtilizationRates"}, func(d *nvmlDevice, r *round) nvml.Return {
		return d.samples(r, nvml.MemoryUtilization, "gpu_memory_busy", func(u nvml.Utilization) uint32 { return u.Memory })
	}},
	{[]string{"nvmlDeviceGetMemoryInfo"}, func(d *nvmlDevice, r *round) nvml.Return {
		m, result := d.Memory()
		if result == nvml.Success {
			r.gauge(d.at, "gpu_memory_used", Bytes, float64(m.Used))
			r.gauge(d.at, "gpu_memory_total", Bytes, float64(m.Total))
		}
		return result
	}},
	{[]string{"nvmlDeviceGetPowerUsage"}, nvmlGauge("gpu_power", Watts, 1e-3, nvml.Device.PowerUsage)},
	{[]string{"nvmlDeviceGetTotalEnergyConsumption"}, func(d *nvmlDevice, r *round) nvml.Return {
		millijoules, result := d.Energy()
		if result == nvml.Success {
			r.total(d.at, "gpu_energy", Joules, float64(millijoules)*1e-3)
		}
		return result
	}},
	{[]string{"nvmlDeviceGetTemperature"}, nvmlGauge("gpu_temperature", Celsius, 1, nvml.Device.Temperature)},
	{[]string{"nvmlDeviceGetClockInfo"}, nvmlClock("gpu_clock_sm", nvml.ClockSM)},
	{[]string{"nvmlDeviceGetClockInfo"}, nvmlClock("gpu_clock_memory", nvml.ClockMemory)},
	{[]string{"nvmlDeviceGetCurrentClocksThrottleReasons"}, (*nvmlDevice).throttleReasons},
	{[]string{"nvmlDeviceGetViolationStatus"}, nvmlViolation("gpu_throttled_power", nvml.PolicyPower)},
	{[]string{"nvmlDeviceGetViolationStatus"}, nvmlViolation("gpu_throttled_thermal", nvml.PolicyThermal)},
	{[]string{"nvmlDeviceGetPcieThroughput"}, (*nvmlDevice).links},
	{[]string{"nvmlDeviceGetProcessUtilization"}, (*nvmlDevice).processes},
}

func nvmlGauge(name, unit string, factor float64, get func(nvml.Device) (uint32, nvml.Return)) func(*nvmlDevice, *round) nvml.Return {
	return func(d *nvmlDevice, r *round) nvml.Return {
		v, result := get(d.Device)
		if result == nvml.Success {
			r.gauge(d.at, name, unit, float64(v)*factor)
		}
		return result
	}
}

func nvmlClock(name string, clock nvml.Clock) func(*nvmlDevice, *round) nvml.Return {
	return nvmlGauge(name, Hertz, 1e6, func(d nvml.Device) (uint32, nvml.Return) { return d.Clock(clock) })
}

// nvmlViolation is how long the clocks were held down for a reason.
func nvmlViolation(name string, policy nvml.Policy) func(*nvmlDevice, *round) nvml.Return {
	return func(d *nvmlDevice, r *round) nvml.Return {
		v, result := d.Violation(policy)
		if result == nvml.Success {
			r.total(d.at, name, Nanoseconds, float64(v.Time))
		}
		return result
	}
}

// samples averages what the driver sampled since the last reading, over the
// time between the driver's own stamps. Where it keeps no samples, its rate is
// taken, whose period is unknown.
func (d *nvmlDevice) samples(r *round, kind nvml.Sampling, name string, rate func(nvml.Utilization) uint32) nvml.Return {
	since := d.seen[kind]
	valueType, samples, result := nvml.Double, []nvml.Sample(nil), nvml.NotSupported
	if d.has("nvmlDeviceGetSamples") {
		valueType, samples, result = d.Samples(kind, since)
	}
	if result == nvml.Success {
		mean, last := meanOf(valueType, samples, since)
		if last == 0 {
			return result // none since
		}
		d.seen[kind] = last
		var period int64
		if since > 0 {
			period = int64(last-since) * 1e3
		}
		r.mean(d.at, name, Percent, mean, period)
		return result
	}
	if result != nvml.NotSupported {
		return result
	}
	u, result := d.Utilization()
	if result == nvml.Success {
		r.mean(d.at, name, Percent, float64(rate(u)), 0)
	}
	return result
}

// meanOf averages the samples after a time and returns the time of the last.
func meanOf(valueType nvml.ValueType, samples []nvml.Sample, since uint64) (mean float64, last uint64) {
	sum, n := 0.0, 0
	for _, s := range samples {
		if s.Time > since {
			sum, n, last = sum+number(valueType, s.Value), n+1, max(last, s.Time)
		}
	}
	return sum / float64(max(n, 1)), last
}

// number is a value of one of NVML's types.
func number(valueType nvml.ValueType, raw [8]byte) float64 {
	word := binary.NativeEndian.Uint64(raw[:])
	switch valueType {
	case nvml.Double:
		return math.Float64frombits(word)
	case nvml.UnsignedInt:
		return float64(uint32(word))
	case nvml.SignedInt:
		return float64(int32(word))
	case nvml.SignedLongLong:
		return float64(int64(word))
	}
	return float64(word)
}

// throttleNames are the reasons for clocks below the highest, by their bits.
var throttleNames = []struct {
	bit  uint64
	name string
}{
	{nvml.ThrottleGPUIdle, "gpu_throttle_idle"},
	{nvml.ThrottleClocksSetting, "gpu_throttle_clocks_setting"},
	{nvml.ThrottleSoftwarePowerCap, "gpu_throttle_power_cap"},
	{nvml.ThrottleHardwareSlowdown, "gpu_throttle_hardware"},
	{nvml.ThrottleSyncBoost, "gpu_throttle_sync_boost"},
	{nvml.ThrottleSoftwareThermal, "gpu_throttle_thermal"},
	{nvml.ThrottleHardwareThermal, "gpu_throttle_hardware_thermal"},
	{nvml.ThrottleHardwarePowerBrake, "gpu_throttle_power_brake"},
}

func (d *nvmlDevice) throttleReasons(r *round) nvml.Return {
	reasons, result := d.ThrottleReasons()
	if result != nvml.Success {
		return result
	}
	for _, t := range throttleNames {
		set := 0.0
		if reasons&t.bit != 0 {
			set = 1
		}
		r.gauge(d.at, t.name, Flag, set)
	}
	return result
}

// fields are the byte counters of the links: NVLink's in KiB, summed over the
// links; PCIe's in bytes, of drivers since R550.
var fields = []struct {
	id     uint32
	scope  uint32
	name   string
	factor float64
}{
	{nvml.FieldNVLinkSent, math.MaxUint32, "gpu_nvlink_sent", 1024},
	{nvml.FieldNVLinkReceived, math.MaxUint32, "gpu_nvlink_received", 1024},
	{nvml.FieldPCIeSent, 0, "gpu_pcie_sent", 1},
	{nvml.FieldPCIeReceived, 0, "gpu_pcie_received", 1},
}

func (d *nvmlDevice) links(r *round) nvml.Return {
	if !d.has("nvmlDeviceGetFieldValues") {
		return d.pcieRates(r)
	}
	values := make([]nvml.Field, len(fields))
	for i, f := range fields {
		values[i].ID, values[i].Scope = f.id, f.scope
	}
	if result := d.Fields(values); result != nvml.Success {
		return result
	}
	pcie := false
	for i, f := range fields {
		valueType := nvml.ValueType(values[i].Type)
		// A counter of 32 bits wraps many times a second.
		wide := valueType == nvml.UnsignedLongLong || valueType == nvml.UnsignedLong
		if nvml.Return(values[i].Result) != nvml.Success || !wide {
			continue
		}
		pcie = pcie || f.scope == 0
		r.total(d.at, f.name, Bytes, number(valueType, values[i].Value)*f.factor)
	}
	if pcie {
		return nvml.Success
	}
	return d.pcieRates(r)
}

// pcieRates is what older drivers have: NVML counts for 20 ms, by its manual.
func (d *nvmlDevice) pcieRates(r *round) nvml.Return {
	for _, c := range []struct {
		kind nvml.PCIeCounter
		name string
	}{{nvml.PCIeSent, "gpu_pcie_send_rate"}, {nvml.PCIeReceived, "gpu_pcie_receive_rate"}} {
		kilobytes, result := d.PCIeThroughput(c.kind)
		if result != nvml.Success {
			return result
		}
		r.mean(d.at, c.name, PerSecond, float64(kilobytes)*1e3, 0)
	}
	return nvml.Success
}

// processes is what each process used of the GPU, in NVML's own window. The
// pids are those of the driver: the machine's.
func (d *nvmlDevice) processes(r *round) nvml.Return {
	samples, result := d.Processes(d.process)
	if result != nvml.Success {
		return result
	}
	for _, s := range samples {
		if s.PID == 0 || s.Time <= d.process {
			continue
		}
		r.mean(d.at.of(int32(s.PID)), "gpu_process_busy", Percent, float64(s.SM), 0)
		r.mean(d.at.of(int32(s.PID)), "gpu_process_memory_busy", Percent, float64(s.Memory), 0)
	}
	for _, s := range samples {
		d.process = max(d.process, s.Time)
	}
	return result
}
