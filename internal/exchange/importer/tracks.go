package importer

import (
	"bytes"
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Rows without a category that is known are what the names of their process and thread say: writers
// other than torch.profiler, and torch.profiler for devices other than NVIDIA's and AMD's, give each
// device a process of its own.

// tracks are what the file says of its processes beside their names.
type tracks struct {
	labels map[int32]string
	plain  bool // rows were classified by names
	// What the names say of a process, worked out once.
	devices  map[int32]device
	streamed map[int32]bool
}

// forget is for names that have changed.
func (t *tracks) forget() { t.devices, t.streamed = map[int32]device{}, map[int32]bool{} }

// device is what a process of a file represents.
type device struct {
	kind  string // GPU, TPU, NPU, XPU, MTIA, …; "" is no device
	id    int32
	model string
	plane bool // of XLA
}

var (
	// JAX and XLA: /device:TPU:0, /device:GPU:1 (NVIDIA A100). Those of kind CUSTOM are of the host.
	devicePlane = regexp.MustCompile(`^/device:([A-Za-z_]+):(\d+)`)
	// torch.profiler and its extensions label processes of devices: GPU 0, NPU, XPU 1.
	deviceLabel = regexp.MustCompile(`^([A-Z]{2,6}) ?(\d*)$`)
	// Group 0 Communication: collectives of Ascend's HCCL.
	groupTrack = regexp.MustCompile(`^Group .*Communication$`)
	// XLA's operators by name, without the number: all-reduce-start.3.
	xlaCollective = regexp.MustCompile(`^(all-reduce|all-gather|reduce-scatter|(ragged-)?all-to-all|collective-(permute|broadcast))` +
		`(-start|-done)?(\.|$)`)
	xlaCopy   = regexp.MustCompile(`^(copy|copy-start|copy-done)(\.|$)`)
	xlaAround = regexp.MustCompile(`^(while|conditional|call)(\.|$)`) // other operators lie in them
	// Tasks of Ascend that wait for others.
	npuWait = regexp.MustCompile(`(?i)^(event|notify)_?(wait|record)`)
)

const (
	legacyHost   = "CPU functions" // torch.autograd.profiler without Kineto
	legacyDevice = "CUDA functions"
)

// deviceOf says which device a process of the file is.
func (k *kineto) deviceOf(pid int32) device {
	d, known := k.tracks.devices[pid]
	if !known {
		if k.tracks.devices == nil {
			k.tracks.forget()
		}
		d = k.readDevice(pid)
		k.tracks.devices[pid] = d
	}
	return d
}

func (k *kineto) readDevice(pid int32) device {
	name, label := k.names[pid], k.tracks.labels[pid]
	switch m := devicePlane.FindStringSubmatch(name); {
	case m != nil && m[1] != "CUSTOM":
		id, _ := strconv.ParseInt(m[2], 10, 32)
		return device{m[1], int32(id), strings.Trim(name[len(m[0]):], " ()"), true}
	case m != nil:
		return device{}
	case name == legacyDevice:
		return device{kind: "GPU"}
	case name == "Ascend Hardware":
		return device{kind: "NPU", id: deviceNumber(label)}
	}
	if m := deviceLabel.FindStringSubmatch(label); m != nil && m[1] != "CPU" {
		return device{kind: m[1], id: deviceNumber(label)}
	}
	return device{}
}

// deviceNumber is the number at the end of a label.
func deviceNumber(label string) int32 {
	id, _ := strconv.ParseInt(label[len(strings.TrimRight(label, "0123456789")):], 10, 16)
	return int32(id)
}

// deviceName is the model of the file's first device, or else what kind of device it is, "" for a GPU.
func (k *kineto) deviceName() string {
	var first device
	for _, names := range []map[int32]string{k.names, k.tracks.labels} {
		for pid := range names {
			if d := k.deviceOf(pid); d.kind != "" && (first.kind == "" || d.id < first.id || d.id == first.id && d.kind > first.kind) {
				first = d
			}
		}
	}
	if first.kind == "GPU" {
		return first.model
	}
	return cmp.Or(first.model, first.kind)
}

// streams says whether a device's process has threads that are streams: then its other threads
// repeat what runs on them.
func (k *kineto) streams(pid int32) bool {
	has, known := k.tracks.streamed[pid]
	if !known {
		for key, name := range k.threads {
			has = has || key[0] == pid && isStream(name)
		}
		k.tracks.streamed[pid] = has
	}
	return has
}

func isStream(thread string) bool {
	return strings.HasPrefix(thread, "Stream ") || strings.HasPrefix(thread, "stream ")
}

// works says whether rows of a device's thread are its work. XLA Modules, Steps, scopes of the
// framework and an analysis of overlaps lie over it.
func (k *kineto) works(pid int32, thread string) bool {
	process := k.names[pid]
	switch {
	case process == legacyDevice:
		return true
	case isStream(thread):
		return true
	case groupTrack.MatchString(thread):
		return true
	case process == "Overlap Analysis", process == "Communication":
		return false
	case k.deviceOf(pid).plane:
		return strings.HasSuffix(thread, "XLA Ops") && !k.streams(pid)
	}
	return !k.streams(pid)
}

// plainCall is the call of a row by the names of its process and thread.
func (p *kinetoPass) plainCall(f *fields, name string) (call event.Call, device, ok bool) {
	p.tracks.plain = true
	pid, tid := p.process(f.pid), p.small(f.tid)
	thread := p.threads[[2]int32{pid, tid}]
	if p.deviceOf(pid).kind == "" {
		if p.names[pid] == legacyHost {
			return legacyCall(name), false, true
		}
		return event.Call{Layer: "scope", Name: name}, false, true
	}
	call = event.Call{Layer: "device", Category: deviceAnnotation, Name: name}
	if !p.works(pid, thread) {
		return call, true, true
	}
	lower := strings.ToLower(name)
	switch {
	case strings.HasPrefix(lower, "memcpy"):
		call.Category = deviceCopy
	case strings.HasPrefix(lower, "memset"):
		call.Category = deviceSet
	case groupTrack.MatchString(thread):
		call.Category = deviceCollective
	case npuWait.MatchString(name):
		call.Category = deviceSync
	case !strings.HasSuffix(thread, "XLA Ops"):
		call.Category = p.kernels.category(name)
	case xlaCollective.MatchString(lower):
		call.Category = deviceCollective
	case xlaCopy.MatchString(lower):
		call.Category = deviceCopy
	case xlaAround.MatchString(lower):
	default:
		call.Category = p.kernels.category(name)
	}
	return call, true, true
}

// legacyCall is a row of "CPU functions": operators, nodes of the backward pass and scopes in one.
func legacyCall(name string) event.Call {
	node := strings.TrimPrefix(name, evaluateFunction)
	switch {
	case node != name, legacyNode.MatchString(name), name == "torch::autograd::AccumulateGrad":
		return event.Call{Layer: "autograd", Category: "node", Name: node}
	case strings.Contains(name, "::"):
		return event.Call{Layer: "op", Name: name}
	case oldScope(name), !legacyOperator.MatchString(name):
		return event.Call{Layer: "scope", Name: name}
	}
	return event.Call{Layer: "op", Name: name} // before PyTorch 1.7 without aten::
}

var (
	legacyNode     = regexp.MustCompile(`^\w+Backward\d*$`)
	legacyOperator = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
)

// launchArrow says whether an arrow leads from a call to the work that it launched, in files
// that do not join them by a number.
func launchArrow(cat []byte) bool {
	switch string(bytes.Trim(cat, `"`)) {
	case "cpu_to_cuda", "async_npu", "async_gpu", "HostToDevice":
		return true
	}
	return false
}

// memoryTimeline is what a list of lists is.
const memoryTimeline = "this is a memory timeline of torch.profiler (export_memory_timeline), which has no call stacks: " +
	"record a snapshot with torch.cuda.memory._dump_snapshot and read it with ebpfprof memory FILE"
