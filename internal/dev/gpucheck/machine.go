package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// machine is where the check ran.
type machine struct {
	Stub   bool   `json:"stub"` // the work was a program on a stub libcuda: no GPU was seen
	Kernel string `json:"kernel"`
	CPU    string `json:"architecture"`
	Driver string `json:"driver,omitempty"` // as /proc/driver/nvidia/version has it
	GPUs   int    `json:"gpus"`

	python string
}

// look finds the GPU and the Python; errNoGPU where there is no GPU.
func look(o options) (*machine, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, fmt.Errorf("asking for the kernel's version: %w", err)
	}
	m := &machine{Kernel: unix.ByteSliceToString(name.Release[:]), CPU: unix.ByteSliceToString(name.Machine[:])}
	if o.stub != "" {
		if _, err := os.Stat(filepath.Join(o.stub, "trainstep")); err != nil {
			return nil, fmt.Errorf("%w: %s has no stub devices: run `make native`", errUsage, o.stub)
		}
		m.Stub = true
		return m, nil
	}
	devices, _ := filepath.Glob("/dev/nvidia[0-9]*")
	if len(devices) == 0 {
		return nil, fmt.Errorf("%w: there is no /dev/nvidia0; run it where there is one, or with --stub to check gpucheck itself", errNoGPU)
	}
	m.GPUs = len(devices)
	if version, err := os.ReadFile("/proc/driver/nvidia/version"); err == nil {
		m.Driver, _, _ = strings.Cut(string(version), "\n")
	}
	m.python = findPython(o.python)
	return m, nil
}

// findPython is the first interpreter whose PyTorch sees a GPU; "" if none does.
func findPython(given string) string {
	candidates := []string{"python3", "python", "/opt/conda/bin/python", "/usr/local/bin/python3", "/usr/bin/python3"}
	if given != "" {
		candidates = []string{given}
	}
	for _, python := range candidates {
		if exec.Command(python, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())").Run() == nil {
			return python
		}
	}
	return ""
}
