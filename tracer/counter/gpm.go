//go:build cgo

package counter

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// gpm is NVIDIA's GPU performance monitoring, on Hopper and later: averages
// between two samples, of which the older is the newer of the reading before.
type gpm struct {
	samples [2]nvml.GpmSample
	taken   int64 // when samples[0] was, 0 before the first
}

// gpmMetrics are percentages of what the GPU could do, and rates in MiB/s.
var gpmMetrics = []struct {
	id     nvml.GpmMetricId
	name   string
	unit   string
	factor float64
}{
	{nvml.GPM_METRIC_GRAPHICS_UTIL, "gpm_gpu_busy", Percent, 1},
	{nvml.GPM_METRIC_SM_UTIL, "gpm_sm_busy", Percent, 1},
	{nvml.GPM_METRIC_SM_OCCUPANCY, "gpm_sm_occupancy", Percent, 1},
	{nvml.GPM_METRIC_ANY_TENSOR_UTIL, "gpm_tensor_busy", Percent, 1},
	{nvml.GPM_METRIC_HMMA_TENSOR_UTIL, "gpm_tensor_half_busy", Percent, 1},
	{nvml.GPM_METRIC_IMMA_TENSOR_UTIL, "gpm_tensor_integer_busy", Percent, 1},
	{nvml.GPM_METRIC_DRAM_BW_UTIL, "gpm_memory_bandwidth", Percent, 1},
	{nvml.GPM_METRIC_FP64_UTIL, "gpm_fp64_busy", Percent, 1},
	{nvml.GPM_METRIC_FP32_UTIL, "gpm_fp32_busy", Percent, 1},
	{nvml.GPM_METRIC_FP16_UTIL, "gpm_fp16_busy", Percent, 1},
	{nvml.GPM_METRIC_PCIE_TX_PER_SEC, "gpm_pcie_send_rate", PerSecond, 1 << 20},
	{nvml.GPM_METRIC_PCIE_RX_PER_SEC, "gpm_pcie_receive_rate", PerSecond, 1 << 20},
	{nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, "gpm_nvlink_send_rate", PerSecond, 1 << 20},
	{nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, "gpm_nvlink_receive_rate", PerSecond, 1 << 20},
}

// openGPM returns nil where the device or the driver has no GPM.
func (s *nvmlSource) openGPM(d nvml.Device) *gpm {
	if !s.has("nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet", "nvmlGpmSampleFree") {
		return nil
	}
	if support, result := s.library.GpmQueryDeviceSupport(d); result != nvml.SUCCESS || support.IsSupportedDevice == 0 {
		return nil
	}
	g := &gpm{}
	for i := range g.samples {
		sample, result := s.library.GpmSampleAlloc()
		if result != nvml.SUCCESS {
			g.close()
			return nil
		}
		g.samples[i] = sample
	}
	return g
}

func (g *gpm) close() {
	if g == nil {
		return
	}
	for _, s := range g.samples {
		if s != nil {
			s.Free()
		}
	}
}

// read takes a sample and tells the averages since the last one.
func (g *gpm) read(library nvml.Interface, d *nvmlDevice, r *round) nvml.Return {
	if g == nil {
		return nvml.SUCCESS
	}
	var result nvml.Return
	r.during(func() error { result = d.GpmSampleGet(g.samples[1]); return nil })
	if result != nvml.SUCCESS {
		return result
	}
	before := g.taken
	g.samples[0], g.samples[1], g.taken = g.samples[1], g.samples[0], r.now
	if before == 0 {
		return nvml.SUCCESS
	}
	ask := &nvml.GpmMetricsGetType{NumMetrics: uint32(len(gpmMetrics)), Sample1: g.samples[1], Sample2: g.samples[0]}
	for i, m := range gpmMetrics {
		ask.Metrics[i].MetricId = uint32(m.id)
	}
	if result := library.GpmMetricsGet(ask); result != nvml.SUCCESS {
		return result
	}
	for i, m := range gpmMetrics {
		if nvml.Return(ask.Metrics[i].NvmlReturn) == nvml.SUCCESS {
			r.mean(d.at, m.name, m.unit, ask.Metrics[i].Value*m.factor, r.now-before)
		}
	}
	return nvml.SUCCESS
}
