package importer

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/flops"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const evaluateFunction = "autograd::engine::evaluate_function: "

// callOf says what a complete event is, by its category. Traces of PyTorch 1.8
// name the categories otherwise.
func (p *kinetoPass) callOf(cat, name string) (call event.Call, device, ok bool) {
	switch cat {
	case "cpu_op", "Operator":
		if node, is := strings.CutPrefix(name, evaluateFunction); is {
			return event.Call{Layer: "autograd", Category: "node", Name: node}, false, true
		}
		if name == "record_param_comms" || strings.HasPrefix(name, "c10d::") {
			return event.Call{Layer: "collective", Category: "issue", Name: name}, false, true
		}
		if oldScope(name) {
			return event.Call{Layer: "scope", Name: name}, false, true
		}
		return event.Call{Layer: "op", Name: name}, false, true
	case "user_annotation":
		if strings.HasPrefix(name, "nccl:") || strings.HasPrefix(name, "gloo:") {
			runtime, _, _ := strings.Cut(name, ":")
			return event.Call{Layer: "collective", Category: "issue", Runtime: runtime, Name: name}, false, true
		}
		return event.Call{Layer: "scope", Name: name}, false, true
	case "python_function":
		return event.Call{Layer: "python", Name: name}, false, true
	case "cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "privateuse1_runtime", "privateuse1_driver", "xpu_runtime", "xpu_driver",
		"mtia_runtime", "glow_runtime":
		return event.Call{Layer: "runtime", Category: runtimeCategory(name), Runtime: runtimeOf(name), Name: name}, false, true
	case "overhead":
		return event.Call{Layer: "runtime", Category: "overhead", Name: name}, false, true
	case "kernel", "Kernel", "mtia_ccp_events", "hpu_op":
		return event.Call{Layer: "device", Category: p.kernels.category(name), Name: name}, true, true
	case "gpu_memcpy", "Memcpy":
		return event.Call{Layer: "device", Category: deviceCopy, Name: name}, true, true
	case "gpu_memset", "Memset":
		return event.Call{Layer: "device", Category: deviceSet, Name: name}, true, true
	case "collective_comm":
		return event.Call{Layer: "device", Category: deviceCollective, Name: name}, true, true
	case "cuda_sync", "xpu_sync":
		return event.Call{Layer: "device", Category: deviceSync, Name: name}, true, true
	case "gpu_user_annotation", "cuda_event": // an event's recording on a stream is no work
		return event.Call{Layer: "device", Category: deviceAnnotation, Name: name}, true, true
	}
	return event.Call{}, false, false
}

// unknownCall is a row of a category that is not known: work of a device where its process is one, else a
// scope. A warning counts them.
func (p *kinetoPass) unknownCall(f *fields, cat, name string) (call event.Call, device bool) {
	call, device, _ = p.plainCall(f, name)
	if p.brief && cat != "" && (len(p.unknown) < mostUnknown || p.unknown[cat] > 0) {
		p.unknown[cat]++
	}
	if !device {
		call.Category = cat
	}
	return call, device
}

// mostUnknown categories are named.
const mostUnknown = 100

// oldScope says whether a row of an operator's category is a scope: up to PyTorch 1.11 they
// had no category of their own.
func oldScope(name string) bool {
	for _, begin := range []string{"ProfilerStep#", "enumerate(DataLoader)", "Optimizer.step#", "Optimizer.zero_grad#"} {
		if strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}

func (p *kinetoPass) span(f *fields) error {
	cat, name := p.kept(f.cat), p.kept(f.name)
	call, device, known := p.callOf(cat, name)
	switch {
	case cat == "Trace":
		return nil
	case !known:
		call, device = p.unknownCall(f, cat, name)
	default:
		p.torch = p.torch || cat != ""
	}
	ts, ok := micros(f.ts)
	if !ok {
		if p.brief {
			p.left[cat+" without a time"]++
		}
		return nil
	}
	r := &p.row
	*r = row{call: p.calls.of(call), start: p.offset() + ts, device: device, sequence: -1, duration: missing, calls: 1}
	if dur, ok := micros(f.dur); ok {
		r.duration = dur
	} else if f.dur != nil {
		r.duration = 1<<62 - 1 // larger than any number of microseconds: lint's business
	}
	if !device {
		r.pid, r.tid = p.process(f.pid), p.small(f.tid)
	} else if id, ok := p.deviceID(f); ok {
		r.track = [2]int32{p.small(f.pid), p.small(f.tid)}
		r.detail.DeviceID = &id
		// Where the arguments name no stream, the thread of a device's row is one.
		isWork := call.Category != deviceAnnotation && call.Category != deviceSync
		if stream := p.number(f.tid); isWork && f.tid != nil && stream < 1<<30 {
			r.detail.Stream = &stream
		}
	}
	r.candidate = call.Layer == "op" && flops.Counted(name)
	p.arguments(r, f.args)
	if r.mark {
		return nil
	}
	return p.h.row(r)
}

// deviceID is the number of the device that a row ran on.
func (p *kinetoPass) deviceID(f *fields) (id int32, ok bool) {
	pid := p.process(f.pid)
	switch d := p.deviceOf(pid); {
	case p.names[pid] == legacyDevice: // its threads are devices
		return p.small(f.tid), true
	case d.kind != "" && d.kind != "GPU" || d.plane:
		return d.id, true
	}
	return pid, pid >= 0 && pid < 1<<16
}

// arguments takes from args what the schema has a column for.
func (p *kinetoPass) arguments(r *row, args []byte) {
	if args == nil {
		return
	}
	members(args, func(key, value []byte) {
		switch string(key) {
		case "correlation", "correlation_id", "Correlation":
			r.correlation = p.number(value)
		case "External id", "external id":
			r.external = p.number(value)
		case "ts_ns": // of our own export: microseconds are not exact
			if n := integer(value); n != nil {
				r.start = *n - p.base + p.offset()
			}
		case "dur_ns":
			if n := integer(value); n != nil {
				r.duration = *n
			}
		case "found by":
			r.mark = true
		case "stands for calls":
			if v, err := strconv.ParseFloat(string(value), 64); err == nil && v > 0 && v < 1e12 {
				r.calls = v
			}
		}
		if p.brief {
			return
		}
		switch string(key) {
		case "Input Dims", "Input dims":
			r.arguments.dims = p.json(value)
		case "Input type":
			r.arguments.types = p.json(value)
		case "Input Strides":
			r.arguments.strides = p.json(value)
		case "Concrete Inputs":
			if r.candidate {
				r.arguments.concrete = p.json(value)
			}
		case "Sequence number":
			r.sequence = p.number(value)
		case "device":
			id := int32(p.number(value))
			r.detail.DeviceID = &id
		case "context":
			r.detail.Context = integer(value)
		case "stream":
			if s := integer(value); s != nil && *s >= 0 {
				r.detail.Stream = s
			}
		case "bytes":
			r.detail.Bytes = integer(value)
		case "grid":
			r.detail.Grid = triple(value)
		case "block":
			r.detail.Block = triple(value)
		case "shared memory":
			r.detail.SharedBytes = integer(value)
		case "wait_on_stream":
			r.detail.MakeWait().Stream = integer(value)
		case "wait_on_cuda_event_record_corr_id":
			r.detail.MakeWait().CorrelationID = integer(value)
		case "dtype":
			r.detail.Dtype = p.kept(value)
		case "In msg nelems", "In msg size":
			r.detail.ElementCount = integer(value)
		case "Process Group Name", "Process Group ID":
			if name := p.kept(value); name != "" && name != "null" && r.detail.Communicator == nil {
				h := fnv.New64a()
				h.Write([]byte(name))
				group := int64(h.Sum64() >> 1)
				r.detail.Communicator = &group
			}
		case "Seq":
			if n := integer(value); n != nil && *n >= 0 {
				r.sequence = *n
			}
		case "Group size":
			if n := integer(value); n != nil {
				ranks := int32(*n)
				r.detail.Ranks = &ranks
			}
		case "Rank":
			if n := integer(value); n != nil {
				rank := int32(*n)
				r.detail.Rank = &rank
			}
		}
	})
	if r.device && r.call.Category == deviceCopy {
		r.detail.Direction = direction(r.call.Name)
	}
	if d := &r.detail; d.Grid != nil && d.Block != nil {
		d.Work = &[3]int64{d.Grid[0] * d.Block[0], d.Grid[1] * d.Block[1], d.Grid[2] * d.Block[2]}
	}
}

// json keeps a value without the white space that some versions put into it,
// each different one once.
func (p *kinetoPass) json(value []byte) string {
	if s, ok := p.texts[string(value)]; ok {
		return s
	}
	var compact bytes.Buffer
	if json.Compact(&compact, value) != nil {
		return ""
	}
	s := strings.ToValidUTF8(compact.String(), "\ufffd")
	if len(p.texts) < 1<<18 {
		p.texts[string(value)] = s
	}
	return s
}

func integer(value []byte) *int64 {
	n, err := strconv.ParseInt(strings.Trim(string(value), `"`), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

func triple(value []byte) *[3]int64 {
	parts := strings.Split(strings.Trim(string(value), "[] "), ",")
	if len(parts) != 3 {
		return nil
	}
	var t [3]int64
	for i, part := range parts {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil
		}
		t[i] = n
	}
	return &t
}

// memory is an instant of the profiler's allocator hook: the size is negative
// for a free.
func (p *kinetoPass) memory(f *fields) error {
	ts, ok := micros(f.ts)
	if !ok || f.args == nil {
		return nil
	}
	m := &event.Memory{
		TSNS: p.offset() + ts, PID: p.small(f.pid), TID: p.small(f.tid),
		Space: "host", Level: "allocator", Action: "alloc", Weight: 1,
	}
	sized := false
	members(f.args, func(key, value []byte) {
		n := integer(value)
		if n == nil {
			return
		}
		switch string(key) {
		case "ts_ns":
			m.TSNS = *n - p.base + p.offset()
		case "Bytes":
			if *n < 0 {
				m.Action = "free"
				*n = -*n
			}
			m.Bytes, sized = n, true
		case "Addr":
			m.Address = *n
		case "Total Allocated":
			m.TotalAllocatedBytes = n
		case "Total Reserved":
			m.TotalReservedBytes = n
		case "Device Id":
			if *n >= 0 {
				id := int32(*n)
				m.DeviceID = &id
			}
		case "Device Type": // of c10: 0 is the CPU
			if *n != 0 {
				m.Space = "device"
			}
		}
	})
	if !sized {
		return nil
	}
	if m.Space == "host" {
		m.DeviceID = nil
	}
	return p.h.memory(m)
}
