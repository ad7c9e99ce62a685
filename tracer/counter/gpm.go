package counter

import "github.com/ebpfprof/ebpfprof/tracer/nvml"

// gpm is NVIDIA's GPU performance monitoring, on Hopper and later: averages
// between two samples, of which the older is the newer of the reading before.
type gpm struct {
	samples [2]nvml.GPMSample
	taken   int64 // when samples[0] was, 0 before the first
}

// gpmMetrics are percentages of what the GPU could do, and rates in MiB/s.
var gpmMetrics = []struct {
	id     uint32
	name   string
	unit   string
	factor float64
}{
	{nvml.GPMGraphicsUtil, "gpm_gpu_busy", Percent, 1},
	{nvml.GPMSMUtil, "gpm_sm_busy", Percent, 1},
	{nvml.GPMSMOccupancy, "gpm_sm_occupancy", Percent, 1},
	{nvml.GPMAnyTensorUtil, "gpm_tensor_busy", Percent, 1},
	{nvml.GPMHalfTensorUtil, "gpm_tensor_half_busy", Percent, 1},
	{nvml.GPMIntegerTensorUtil, "gpm_tensor_integer_busy", Percent, 1},
	{nvml.GPMDRAMBandwidth, "gpm_memory_bandwidth", Percent, 1},
	{nvml.GPMFP64Util, "gpm_fp64_busy", Percent, 1},
	{nvml.GPMFP32Util, "gpm_fp32_busy", Percent, 1},
	{nvml.GPMFP16Util, "gpm_fp16_busy", Percent, 1},
	{nvml.GPMPCIeSentRate, "gpm_pcie_send_rate", PerSecond, 1 << 20},
	{nvml.GPMPCIeReceivedRate, "gpm_pcie_receive_rate", PerSecond, 1 << 20},
	{nvml.GPMNVLinkSentRate, "gpm_nvlink_send_rate", PerSecond, 1 << 20},
	{nvml.GPMNVLinkReceivedRate, "gpm_nvlink_receive_rate", PerSecond, 1 << 20},
}

// openGPM returns nil where the device or the driver has no GPM.
func (s *nvmlSource) openGPM(d nvml.Device) *gpm {
	if !d.HasGPM() {
		return nil
	}
	g := &gpm{}
	for i := range g.samples {
		sample, result := s.library.NewGPMSample()
		if result != nvml.Success {
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
		s.Free()
	}
}

// read takes a sample and tells the averages since the last one.
func (g *gpm) read(library *nvml.Library, d *nvmlDevice, r *round) nvml.Return {
	if g == nil {
		return nvml.Success
	}
	var result nvml.Return
	r.during(func() error { result = d.Take(g.samples[1]); return nil })
	if result != nvml.Success {
		return result
	}
	before := g.taken
	g.samples[0], g.samples[1], g.taken = g.samples[1], g.samples[0], r.now
	if before == 0 {
		return nvml.Success
	}
	values := make([]nvml.GPMValue, len(gpmMetrics))
	for i, m := range gpmMetrics {
		values[i].Metric = m.id
	}
	if result := library.GPM(g.samples[1], g.samples[0], values); result != nvml.Success {
		return result
	}
	for i, m := range gpmMetrics {
		if values[i].Result == nvml.Success {
			r.mean(d.at, m.name, m.unit, values[i].Value*m.factor, r.now-before)
		}
	}
	return nvml.Success
}
