package importer

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// row is one event of a foreign trace. It is used again: whoever keeps
// something of it makes a copy.
type row struct {
	call     *event.Call
	start    int64
	duration int64 // as the file has it: negative where it is damaged, missing where unknown
	pid, tid int32
	// device rows have no thread.
	device bool
	// correlation joins a call and the device's rows that it launched, external
	// an operator and everything under it; 0 is none.
	correlation, external int64
	// candidate: there is a formula for its FLOPs.
	candidate bool
	sequence  int64 // -1 is absent
	detail    event.Detail
	arguments arguments
	status    event.Status
}

// missing is the duration of a row without one.
const missing = -1 << 62

// arguments are as the file has them, JSON.
type arguments struct {
	dims, types, strides, concrete string
}

// edge is one end of a foreign flow.
type edge struct {
	id    int64
	begin bool
	pid   int32
	tid   int32
	ts    int64
}

// calls keeps one Call for each layer, category, runtime and name.
type calls map[event.Call]*event.Call

func (c calls) of(call event.Call) *event.Call {
	if known := c[call]; known != nil {
		return known
	}
	kept := call
	c[call] = &kept
	return &kept
}

// Categories of layer device.
const (
	deviceKernel     = "kernel"
	deviceCollective = "collective"
	deviceCopy       = "copy"
	deviceSet        = "set"
	deviceSync       = "sync"
	deviceAnnotation = "annotation"
)

// kernelCategory tells collectives by the names that their libraries give to
// kernels: NCCL's and RCCL's have nccl in them (as TraceLens looks for them).
func kernelCategory(name string) string {
	if strings.Contains(name, "nccl") || strings.HasPrefix(name, "hccl") || strings.HasPrefix(name, "mscclKernel") {
		return deviceCollective
	}
	return deviceKernel
}

// runtimeOf and runtimeCategory: what a call into a runtime or driver is.
func runtimeOf(name string) string {
	switch {
	case strings.HasPrefix(name, "hip"):
		return "hip"
	case strings.HasPrefix(name, "cu"):
		return "cuda"
	}
	return ""
}

var runtimeWords = []struct{ word, category string }{
	{"Synchronize", "sync"}, {"StreamWaitEvent", "event"}, {"Event", "event"},
	{"GraphLaunch", "graph"}, {"Graph", "graph"}, {"Launch", "launch"},
	{"Memcpy", "copy"}, {"Memset", "set"}, {"Malloc", "alloc"}, {"MemAlloc", "alloc"}, {"HostAlloc", "alloc"},
	{"Free", "free"}, {"Module", "module"}, {"Stream", "stream"},
}

func runtimeCategory(name string) string {
	for _, w := range runtimeWords {
		if strings.Contains(name, w.word) {
			return w.category
		}
	}
	return ""
}

// direction of a copy, from a name like "Memcpy DtoH (Device -> Pinned)".
func direction(name string) string {
	switch {
	case strings.Contains(name, "HtoD"), strings.Contains(name, "HostToDevice"):
		return "host_to_device"
	case strings.Contains(name, "DtoH"), strings.Contains(name, "DeviceToHost"):
		return "device_to_host"
	case strings.Contains(name, "DtoD"), strings.Contains(name, "DeviceToDevice"), strings.Contains(name, "PtoP"):
		return "device_to_device"
	case strings.Contains(name, "HtoH"), strings.Contains(name, "HostToHost"):
		return "host_to_host"
	}
	return ""
}
