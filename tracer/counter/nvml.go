//go:build cgo

package counter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlPatience is how long a reading of all GPUs may keep the other counters
// waiting. NVML measures PCIe traffic by waiting 20 ms for it.
const nvmlPatience = 500 * time.Millisecond

// nvmlSource is NVIDIA's management library. A function that an older driver
// lacks must not be called: go-nvml would end the process. So each is looked up.
type nvmlSource struct {
	library nvml.Interface
	devices []*nvmlDevice
}

type nvmlDevice struct {
	nvml.Device
	at      place
	metrics []nvmlMetric
	seen    map[nvml.SamplingType]uint64 // time of the last sample, µs
	process uint64                       // time of the last sample of processes, µs
	gpm     *gpm
	has     func(symbols ...string) bool
}

// nvmlMetric is one call of the library and the functions it needs.
type nvmlMetric struct {
	symbols []string
	read    func(*nvmlDevice, *round) nvml.Return
}

func openNVML(path string) (source, error) {
	var options []nvml.LibraryOption
	if path != "" {
		options = append(options, nvml.WithLibraryPath(path))
	}
	library := nvml.New(options...)
	if result := library.Init(); result != nvml.SUCCESS {
		if result == nvml.ERROR_LIBRARY_NOT_FOUND {
			return nil, errors.New("libnvidia-ml.so.1 is not there: no NVIDIA driver is installed, or not in this container")
		}
		return nil, fmt.Errorf("starting NVML: %s", library.ErrorString(result))
	}
	s := &nvmlSource{library: library}
	if err := s.open(); err != nil {
		library.Shutdown()
		return nil, err
	}
	return watch(s, nvmlPatience), nil
}

func (s *nvmlSource) has(symbols ...string) bool {
	for _, name := range symbols {
		if s.library.Extensions().LookupSymbol(name) != nil {
			return false
		}
	}
	return true
}

func (s *nvmlSource) open() error {
	n, result := s.library.DeviceGetCount()
	if result != nvml.SUCCESS {
		return fmt.Errorf("counting NVIDIA GPUs: %s", s.library.ErrorString(result))
	}
	for i := range n {
		handle, result := s.library.DeviceGetHandleByIndex(i)
		if result != nvml.SUCCESS {
			continue // lost, or not ours to see
		}
		uuid, _ := handle.GetUUID()
		d := &nvmlDevice{Device: handle, at: accelerator(i, uuid), has: s.has, seen: map[nvml.SamplingType]uint64{}}
		for _, m := range nvmlMetrics {
			if s.has(m.symbols...) {
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
	s.library.Shutdown()
}

// unsupported are the answers of a device that lacks a counter, or has nothing
// to say just now.
var unsupported = map[nvml.Return]bool{
	nvml.SUCCESS: true, nvml.ERROR_NOT_SUPPORTED: true, nvml.ERROR_NOT_FOUND: true,
	nvml.ERROR_NO_PERMISSION: true, nvml.ERROR_INVALID_ARGUMENT: true,
}

func (s *nvmlSource) read(r *round) (failed error) {
	for _, d := range s.devices {
		for _, m := range d.metrics {
			var result nvml.Return
			r.now = r.clock()
			result = m.read(d, r)
			if !unsupported[result] && failed == nil {
				failed = fmt.Errorf("GPU %d: %s", d.at.id, s.library.ErrorString(result))
			}
		}
		if result := d.gpm.read(s.library, d, r); !unsupported[result] && failed == nil {
			failed = fmt.Errorf("GPM of GPU %d: %s", d.at.id, s.library.ErrorString(result))
		}
	}
	return failed
}

// nvmlMetrics are the counters in the order in which they are read.
var nvmlMetrics = []nvmlMetric{
	{[]string{"nvmlDeviceGetUtilizationRates"}, func(d *nvmlDevice, r *round) nvml.Return {
		return d.samples(r, nvml.GPU_UTILIZATION_SAMPLES, "gpu_busy", func(u nvml.Utilization) uint32 { return u.Gpu })
	}},
	{[]string{"nvmlDeviceGetUtilizationRates"}, func(d *nvmlDevice, r *round) nvml.Return {
		return d.samples(r, nvml.MEMORY_UTILIZATION_SAMPLES, "gpu_memory_busy", func(u nvml.Utilization) uint32 { return u.Memory })
	}},
	{[]string{"nvmlDeviceGetMemoryInfo"}, func(d *nvmlDevice, r *round) nvml.Return {
		m, result := d.GetMemoryInfo()
		if result == nvml.SUCCESS {
			r.gauge(d.at, "gpu_memory_used", Bytes, float64(m.Used))
			r.gauge(d.at, "gpu_memory_total", Bytes, float64(m.Total))
		}
		return result
	}},
	{[]string{"nvmlDeviceGetPowerUsage"}, nvmlGauge("gpu_power", Watts, 1e-3, nvml.Device.GetPowerUsage)},
	{[]string{"nvmlDeviceGetTotalEnergyConsumption"}, func(d *nvmlDevice, r *round) nvml.Return {
		millijoules, result := d.GetTotalEnergyConsumption()
		if result == nvml.SUCCESS {
			r.total(d.at, "gpu_energy", Joules, float64(millijoules)*1e-3)
		}
		return result
	}},
	{[]string{"nvmlDeviceGetTemperature"}, nvmlGauge("gpu_temperature", Celsius, 1, func(d nvml.Device) (uint32, nvml.Return) {
		return d.GetTemperature(nvml.TEMPERATURE_GPU)
	})},
	{[]string{"nvmlDeviceGetClockInfo"}, nvmlClock("gpu_clock_sm", nvml.CLOCK_SM)},
	{[]string{"nvmlDeviceGetClockInfo"}, nvmlClock("gpu_clock_memory", nvml.CLOCK_MEM)},
	{[]string{"nvmlDeviceGetCurrentClocksThrottleReasons"}, (*nvmlDevice).throttleReasons},
	{[]string{"nvmlDeviceGetViolationStatus"}, nvmlViolation("gpu_throttled_power", nvml.PERF_POLICY_POWER)},
	{[]string{"nvmlDeviceGetViolationStatus"}, nvmlViolation("gpu_throttled_thermal", nvml.PERF_POLICY_THERMAL)},
	{[]string{"nvmlDeviceGetPcieThroughput"}, (*nvmlDevice).links},
	{[]string{"nvmlDeviceGetProcessUtilization"}, (*nvmlDevice).processes},
}

func nvmlGauge(name, unit string, factor float64, get func(nvml.Device) (uint32, nvml.Return)) func(*nvmlDevice, *round) nvml.Return {
	return func(d *nvmlDevice, r *round) nvml.Return {
		v, result := get(d.Device)
		if result == nvml.SUCCESS {
			r.gauge(d.at, name, unit, float64(v)*factor)
		}
		return result
	}
}

func nvmlClock(name string, clock nvml.ClockType) func(*nvmlDevice, *round) nvml.Return {
	return nvmlGauge(name, Hertz, 1e6, func(d nvml.Device) (uint32, nvml.Return) { return d.GetClockInfo(clock) })
}

// nvmlViolation is how long the clocks were held down for a reason.
func nvmlViolation(name string, policy nvml.PerfPolicyType) func(*nvmlDevice, *round) nvml.Return {
	return func(d *nvmlDevice, r *round) nvml.Return {
		v, result := d.GetViolationStatus(policy)
		if result == nvml.SUCCESS {
			r.total(d.at, name, Nanoseconds, float64(v.ViolationTime))
		}
		return result
	}
}

// samples averages what the driver sampled since the last reading, over the
// time between the driver's own stamps. Where it keeps no samples, its rate is
// taken, whose period is unknown.
func (d *nvmlDevice) samples(r *round, kind nvml.SamplingType, name string, rate func(nvml.Utilization) uint32) nvml.Return {
	since := d.seen[kind]
	valueType, samples, result := nvml.VALUE_TYPE_DOUBLE, []nvml.Sample(nil), nvml.ERROR_NOT_SUPPORTED
	if d.has("nvmlDeviceGetSamples") {
		valueType, samples, result = d.GetSamples(kind, since)
	}
	if result == nvml.SUCCESS {
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
	if result != nvml.ERROR_NOT_SUPPORTED {
		return result
	}
	u, result := d.GetUtilizationRates()
	if result == nvml.SUCCESS {
		r.mean(d.at, name, Percent, float64(rate(u)), 0)
	}
	return result
}

// meanOf averages the samples after a time and returns the time of the last.
func meanOf(valueType nvml.ValueType, samples []nvml.Sample, since uint64) (mean float64, last uint64) {
	sum, n := 0.0, 0
	for _, s := range samples {
		if s.TimeStamp > since {
			sum, n, last = sum+number(valueType, s.SampleValue), n+1, max(last, s.TimeStamp)
		}
	}
	return sum / float64(max(n, 1)), last
}

// number is a value of one of NVML's types.
func number(valueType nvml.ValueType, raw [8]byte) float64 {
	word := binary.NativeEndian.Uint64(raw[:])
	switch valueType {
	case nvml.VALUE_TYPE_DOUBLE:
		return math.Float64frombits(word)
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return float64(uint32(word))
	case nvml.VALUE_TYPE_SIGNED_INT:
		return float64(int32(word))
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(word))
	}
	return float64(word)
}

// throttleNames are the reasons for clocks below the highest, by their bits.
var throttleNames = []struct {
	bit  uint64
	name string
}{
	{nvml.ClocksThrottleReasonGpuIdle, "gpu_throttle_idle"},
	{nvml.ClocksThrottleReasonApplicationsClocksSetting, "gpu_throttle_clocks_setting"},
	{nvml.ClocksThrottleReasonSwPowerCap, "gpu_throttle_power_cap"},
	{nvml.ClocksThrottleReasonHwSlowdown, "gpu_throttle_hardware"},
	{nvml.ClocksThrottleReasonSyncBoost, "gpu_throttle_sync_boost"},
	{nvml.ClocksThrottleReasonSwThermalSlowdown, "gpu_throttle_thermal"},
	{nvml.ClocksThrottleReasonHwThermalSlowdown, "gpu_throttle_hardware_thermal"},
	{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, "gpu_throttle_power_brake"},
}

func (d *nvmlDevice) throttleReasons(r *round) nvml.Return {
	reasons, result := d.GetCurrentClocksThrottleReasons()
	if result != nvml.SUCCESS {
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
	{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, math.MaxUint32, "gpu_nvlink_sent", 1024},
	{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, math.MaxUint32, "gpu_nvlink_received", 1024},
	{nvml.FI_DEV_PCIE_COUNT_TX_BYTES, 0, "gpu_pcie_sent", 1},
	{nvml.FI_DEV_PCIE_COUNT_RX_BYTES, 0, "gpu_pcie_received", 1},
}

func (d *nvmlDevice) links(r *round) nvml.Return {
	if !d.has("nvmlDeviceGetFieldValues") {
		return d.pcieRates(r)
	}
	values := make([]nvml.FieldValue, len(fields))
	for i, f := range fields {
		values[i].FieldId, values[i].ScopeId = f.id, f.scope
	}
	if result := d.GetFieldValues(values); result != nvml.SUCCESS {
		return result
	}
	pcie := false
	for i, f := range fields {
		valueType := nvml.ValueType(values[i].ValueType)
		// A counter of 32 bits wraps many times a second.
		wide := valueType == nvml.VALUE_TYPE_UNSIGNED_LONG_LONG || valueType == nvml.VALUE_TYPE_UNSIGNED_LONG
		if nvml.Return(values[i].NvmlReturn) != nvml.SUCCESS || !wide {
			continue
		}
		pcie = pcie || f.scope == 0
		r.total(d.at, f.name, Bytes, number(valueType, values[i].Value)*f.factor)
	}
	if pcie {
		return nvml.SUCCESS
	}
	return d.pcieRates(r)
}

// pcieRates is what older drivers have: NVML counts for 20 ms, by its manual.
func (d *nvmlDevice) pcieRates(r *round) nvml.Return {
	for _, c := range []struct {
		kind nvml.PcieUtilCounter
		name string
	}{{nvml.PCIE_UTIL_TX_BYTES, "gpu_pcie_send_rate"}, {nvml.PCIE_UTIL_RX_BYTES, "gpu_pcie_receive_rate"}} {
		kilobytes, result := d.GetPcieThroughput(c.kind)
		if result != nvml.SUCCESS {
			return result
		}
		r.mean(d.at, c.name, PerSecond, float64(kilobytes)*1e3, 0)
	}
	return nvml.SUCCESS
}

// processes is what each process used of the GPU, in NVML's own window. The
// pids are those of the driver: the machine's.
func (d *nvmlDevice) processes(r *round) nvml.Return {
	samples, result := d.GetProcessUtilization(d.process)
	if result != nvml.SUCCESS {
		return result
	}
	for _, s := range samples {
		if s.Pid == 0 || s.TimeStamp <= d.process {
			continue
		}
		r.mean(d.at.of(int32(s.Pid)), "gpu_process_busy", Percent, float64(s.SmUtil), 0)
		r.mean(d.at.of(int32(s.Pid)), "gpu_process_memory_busy", Percent, float64(s.MemUtil), 0)
	}
	for _, s := range samples {
		d.process = max(d.process, s.TimeStamp)
	}
	return result
}
