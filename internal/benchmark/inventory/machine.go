package inventory

import (
	"bufio"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

func join(values []string) string { return strings.Join(values, ", ") }

// Machine reads what the machine says below a root, which is / but in tests.
func Machine(root fs.FS, host string, cpus int) Inventory {
	var v Inventory
	v.add("host", host)
	v.add("cpu", cpuModel(root))
	v.add("cpus", strconv.Itoa(cpus))
	v.add("memory", memory(root))
	v.add("kernel", line(root, "proc/sys/kernel/osrelease"))
	v.add("governor", line(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
	v.add("gpu", gpus(root))
	v.add("gpu driver", gpuDriver(root))
	v.add("network", network(root))
	v.add("infiniband", infiniband(root))
	return v
}

// line is the only line of a file.
func line(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// field is the value of the first "name : value" of a file whose name begins so.
func field(root fs.FS, file string, names ...string) string {
	f, err := root.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && slices.Contains(names, strings.TrimSpace(key)) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// cpuModel is named differently by x86 and by Arm, of which some kernels give numbers only.
func cpuModel(root fs.FS) string {
	if model := field(root, "proc/cpuinfo", "model name", "cpu", "Processor"); model != "" {
		return model
	}
	if part := field(root, "proc/cpuinfo", "CPU part"); part != "" {
		return fmt.Sprintf("Arm implementer %s part %s", field(root, "proc/cpuinfo", "CPU implementer"), part)
	}
	return ""
}

// memory is rounded to gibibytes, since the kernel keeps another part of it for itself at each start.
func memory(root fs.FS) string {
	number, _, _ := strings.Cut(field(root, "proc/meminfo", "MemTotal"), " ")
	kib, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%.0f GiB", kib/(1<<20))
}

// gpus are those that NVIDIA's driver lists, and AMD's.
func gpus(root fs.FS) string {
	count := map[string]int{}
	files, _ := fs.Glob(root, "proc/driver/nvidia/gpus/*/information")
	for _, file := range files {
		if model := field(root, file, "Model"); model != "" {
			count[model]++
		}
	}
	files, _ = fs.Glob(root, "sys/class/drm/card*/device/product_name")
	for _, file := range files {
		if model := line(root, file); model != "" {
			count[model]++
		}
	}
	var all []string
	for model, n := range count {
		all = append(all, fmt.Sprintf("%d × %s", n, model))
	}
	slices.Sort(all)
	return join(all)
}

func gpuDriver(root fs.FS) string {
	if version := line(root, "sys/module/nvidia/version"); version != "" {
		return "nvidia " + version
	}
	if version := line(root, "sys/module/amdgpu/version"); version != "" {
		return "amdgpu " + version
	}
	return ""
}

// network are the cards that have hardware behind them, with their speed where the driver says one.
func network(root fs.FS) string {
	var all []string
	devices, _ := fs.Glob(root, "sys/class/net/*/device")
	for _, device := range devices {
		card := path.Dir(device)
		text := path.Base(card)
		if speed, err := strconv.Atoi(line(root, card+"/speed")); err == nil && speed > 0 {
			text += fmt.Sprintf(" %d Mbit/s", speed)
		}
		all = append(all, text)
	}
	return join(all)
}

func infiniband(root fs.FS) string {
	var all []string
	ports, _ := fs.Glob(root, "sys/class/infiniband/*/ports/*/rate")
	for _, port := range ports {
		name := path.Base(path.Dir(path.Dir(path.Dir(port))))
		all = append(all, name+":"+path.Base(path.Dir(port))+" "+line(root, port))
	}
	return join(all)
}
