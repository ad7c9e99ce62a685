package peaks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// models are files in which drivers name their devices, below the root; the line of a key, or all of it.
var models = []struct{ files, key string }{
	{"proc/driver/nvidia/gpus/*/information", "Model"},
	{"sys/class/drm/card*/device/product_name", ""},                                 // amdgpu
	{"sys/devices/virtual/neuron_device/neuron*/info/architecture/device_name", ""}, // Trainium, Inferentia
}

// Accelerators are the models of this machine's devices, each once, as their drivers' files below root name them; "" where
// there is none.
func Accelerators(root string) string {
	var names []string
	for _, m := range models {
		files, _ := filepath.Glob(filepath.Join(root, m.files))
		for _, file := range files {
			text, _ := os.ReadFile(file)
			name := strings.TrimSpace(string(text))
			if m.key != "" {
				name = modelLine(name, m.key)
			}
			if name != "" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

func modelLine(text, key string) string {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
