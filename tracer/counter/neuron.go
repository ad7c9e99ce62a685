package counter

import (
	"fmt"
	"path/filepath"
	"strings"
)

// neuronSource is what AWS's Neuron driver keeps in sysfs for each device and
// core. Its counters are directories: total grows, or, of memory, is what is in
// use. Driver 2.31 moved some of them; what is not found is left out.
// https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-sysfs-user-guide.html
type neuronSource struct{ dir string }

func openNeuron(f Files) (source, error) {
	dir := f.path("sys/devices/virtual/neuron_device")
	if len(list(dir, "neuron")) == 0 {
		return nil, fmt.Errorf("no device in %s: no Neuron driver is loaded", dir)
	}
	return neuronSource{dir}, nil
}

var neuronDeviceMetrics = []metric{
	{"stats/hardware/mem_ecc_uncorrected/total", "neuron_memory_ecc_uncorrected", Count, 1, true},
	{"stats/hardware/sram_ecc_uncorrected/total", "neuron_sram_ecc_uncorrected", Count, 1, true},
	{"stats/memory_usage/host_mem/total", "neuron_host_memory_used", Bytes, 1, false},
}

var neuronCoreMetrics = neuronCore()

func neuronCore() []metric {
	metrics := []metric{
		{"stats/other_info/inference_count/total", "neuron_executions", Count, 1, true},
		{"stats/other_info/flop_count/total", "neuron_flops", Count, 1, true},
		{"stats/other_info/model_load_count/total", "neuron_model_loads", Count, 1, true},
		{"stats/memory_usage/device_mem/total", "gpu_memory_used", Bytes, 1, false},
	}
	for _, status := range []string{"success", "failure", "timeout", "hw_error", "oob_error", "resource_nc_error",
		"infer_completed_with_num_error"} {
		metrics = append(metrics, metric{"stats/status/" + status + "/total", "neuron_status_" + status, Count, 1, true})
	}
	for _, category := range []string{"collectives", "constants", "dma_rings", "model_code", "model_shared_scratchpad", "nonshared_scratchpad",
		"runtime_memory", "tensors"} {
		metrics = append(metrics, metric{"stats/memory_usage/device_mem/" + category + "/total", "neuron_memory_" + category, Bytes, 1, false})
	}
	return metrics
}

func (s neuronSource) read(r *round) (failed error) {
	for _, name := range list(s.dir, "neuron") {
		dir := filepath.Join(s.dir, name)
		id := index(name, "neuron")
		firstOf(&failed, r.addNeuron(accelerator(id, name), dir, neuronDeviceMetrics))
		for _, core := range list(dir, "neuron_core") {
			firstOf(&failed, r.addNeuron(accelerator(id, name+":"+core), filepath.Join(dir, core), neuronCoreMetrics))
		}
	}
	return failed
}

// addNeuron reads metrics that, from one driver to another, are a directory
// with total in it or a plain file.
func (r *round) addNeuron(at place, dir string, metrics []metric) (failed error) {
	for _, m := range metrics {
		value, err := r.number(filepath.Join(dir, m.file))
		if err != nil {
			value, err = r.number(filepath.Join(dir, strings.TrimSuffix(m.file, "/total")))
		}
		if err != nil {
			firstOf(&failed, err)
			continue
		}
		m.add(r, at, value)
	}
	return failed
}
