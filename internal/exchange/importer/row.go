package importer

import (
	"regexp"
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
	// device rows have no thread; track is the file's process and thread of them.
	device bool
	track  [2]int32
	// correlation joins a call and the device's rows that it launched, external
	// an operator and everything under it; 0 is none.
	correlation, external int64
	// candidate: there is a formula for its FLOPs.
	candidate bool
	sequence  int64 // -1 is absent
	detail    event.Detail
	arguments arguments
	status    event.Status
	// calls are how many the row stands for; ours marks its own steps, which are no calls.
	calls float64
	mark  bool
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
	// launch joins a call and the device's row that it launched, instead of forward and backward.
	launch bool
	pid    int32
	tid    int32
	ts     int64
}

// kernels are the categories of kernels by name, each looked for once: files have far
// fewer names than rows.
type kernels map[string]string

func (k kernels) category(name string) string {
	category, known := k[name]
	if !known {
		category = KernelCategory(name)
		k[name] = category
	}
	return category
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

// collectiveKernel are kernels of collectives: NCCL's and RCCL's have their
// library's name in theirs, vLLM's and SGLang's all-reduce is cross_device_reduce,
// hccl and msccl begin with it.
var collectiveKernel = regexp.MustCompile(`(?i)nccl|rccl|cross_device_reduce|^hccl|^mscclKernel|^oneccl`)

// ROCm before 7.2 traces its runtime's copies and fills as kernels of these names
// (rocclr's blit kernels); later ones, and CUDA, have categories for them.
var (
	blitCopy = regexp.MustCompile(`^(MEMORY_COPY_\w+|__amd_rocclr_copyBuffer\w*)(\.kd)?$`)
	blitFill = regexp.MustCompile(`^__amd_rocclr_fillBuffer\w*(\.kd)?$`)
)

// KernelCategory says by its name what a row of a device that its profiler calls a
// kernel is.
func KernelCategory(name string) string {
	switch {
	case collectiveKernel.MatchString(name):
		return deviceCollective
	case blitCopy.MatchString(name):
		return deviceCopy
	case blitFill.MatchString(name):
		return deviceSet
	}
	return deviceKernel
}

// runtimeOf and runtimeCategory: what a call into a runtime or driver is.
func runtimeOf(name string) string {
	switch {
	case strings.HasPrefix(name, "hip"), strings.HasPrefix(name, "hsa_"):
		return "hip"
	case strings.HasPrefix(name, "ze"), strings.HasPrefix(name, "ur"):
		return "level_zero"
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
	name = strings.ReplaceAll(strings.ToLower(name), "_", "")
	switch {
	case strings.Contains(name, "htod"), strings.Contains(name, "hosttodevice"):
		return "host_to_device"
	case strings.Contains(name, "dtoh"), strings.Contains(name, "devicetohost"):
		return "device_to_host"
	case strings.Contains(name, "dtod"), strings.Contains(name, "devicetodevice"), strings.Contains(name, "ptop"):
		return "device_to_device"
	case strings.Contains(name, "htoh"), strings.Contains(name, "hosttohost"):
		return "host_to_host"
	}
	return ""
}
