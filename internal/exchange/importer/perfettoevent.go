package importer

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// happening is a track event.
type happening struct {
	kind, track    uint64
	name, category string
	notes          map[string]any
	durationUS     int64
	phase          byte
	begins, ends   []uint64 // flows
}

func (p *perfettoText) event(s *perfettoSequence, message []byte, at int64) error {
	h := happening{track: s.track, notes: map[string]any{}}
	if err := fieldsOf(message, func(f field) error { return h.take(s, f) }); err != nil {
		return err
	}
	h.rename()
	track := p.track(h.track)
	if track.counter {
		h.kind = sliceCounter
	}
	category, notes := chromeCategory(h.category), h.notes
	if deviceCategories[category] {
		track.becomeDevice(notes["device"])
	}
	pid, tid := p.place(track)
	switch {
	case h.phase == 'X' && h.kind == 0:
		p.write(chromeEvent{ph: "X", name: h.name, cat: category, pid: pid, tid: tid, at: at, duration: h.durationUS * 1000, args: notes})
	case h.kind == sliceBegin || h.phase == 'B':
		p.write(chromeEvent{ph: "B", name: h.name, cat: category, pid: pid, tid: tid, at: at, args: notes, duration: -1})
	case h.kind == sliceEnd || h.phase == 'E':
		p.write(chromeEvent{ph: "E", pid: pid, tid: tid, at: at, args: notes, duration: -1})
	case h.kind == sliceCounter:
		p.write(chromeEvent{ph: "C", name: h.name, pid: pid, tid: tid, at: at, duration: -1})
	default:
		p.write(chromeEvent{ph: "i", name: h.name, pid: pid, tid: tid, at: at, duration: -1})
	}
	// A flow from a call of a runtime to a row of a device is a launch.
	for _, id := range h.begins {
		if category == "cuda_runtime" {
			p.write(chromeEvent{ph: "s", cat: "async_gpu", id: id, pid: pid, tid: tid, at: at, duration: -1})
		}
	}
	for _, id := range h.ends {
		if deviceCategories[category] {
			p.write(chromeEvent{ph: "f", cat: "async_gpu", id: id, pid: pid, tid: tid, at: at, duration: -1})
		}
	}
	return nil
}

// deviceCategories are those of work on a device.
var deviceCategories = map[string]bool{
	"kernel": true, "gpu_memcpy": true, "gpu_memset": true, "gpu_user_annotation": true, "cuda_sync": true,
}

func (h *happening) take(s *perfettoSequence, f field) error {
	switch f.id {
	case 9:
		h.kind = f.number
	case 11:
		h.track = f.number
	case 10:
		h.name = s.events[f.number]
	case 23:
		h.name = string(f.value)
	case 3:
		if f.value != nil { // packed
			for rest := f.value; len(rest) > 0; {
				id, n := protowire.ConsumeVarint(rest)
				if n < 0 {
					return protowire.ParseError(n)
				}
				h.category, rest = s.categories[id], rest[n:]
			}
			return nil
		}
		h.category = s.categories[f.number]
	case 22:
		h.category = string(f.value)
	case 36, 47:
		h.begins = append(h.begins, f.number)
	case 42, 48:
		h.ends = append(h.ends, f.number)
	case 4:
		name, value, err := s.note(f.value)
		if err == nil && name != "" {
			h.notes[name] = value
		}
		return err
	case 6: // legacy_event: phase 2, duration_us 3
		return fieldsOf(f.value, func(f field) error {
			switch f.id {
			case 1:
				h.name = s.events[f.number]
			case 2:
				h.phase = byte(f.number)
			case 3:
				h.durationUS = int64(f.number)
			}
			return nil
		})
	}
	return nil
}

// note is a DebugAnnotation: name_iid 1, bool 2, uint 3, int 4, double 5, string 6, pointer 7, JSON 9, name 10,
// string_value_iid 17.
func (s *perfettoSequence) note(message []byte) (name string, value any, err error) {
	err = fieldsOf(message, func(f field) error {
		switch f.id {
		case 1:
			name = s.notes[f.number]
		case 10:
			name = string(f.value)
		case 2:
			value = f.number != 0
		case 3, 7:
			value = f.number
		case 4:
			value = int64(f.number)
		case 5:
			if v := math.Float64frombits(f.number); !math.IsNaN(v) && !math.IsInf(v, 0) {
				value = v
			}
		case 6:
			value = string(f.value)
		case 9:
			if json.Valid(f.value) {
				value = json.RawMessage(f.value)
			}
		case 17:
			value = s.texts[f.number]
		}
		return nil
	})
	return name, value, err
}

// stage is work on a GPU (GpuRenderStageEvent): event_id 1, duration 2, extra_data 6 (name 1, value 2), gpu_id 11,
// hw_queue_iid 13, stage_iid 14, name 17.
//
// Its process is not in it: the one that launched it is found like that of torch.profiler's rows of devices.
func (p *perfettoText) stage(s *perfettoSequence, message []byte, at int64) error {
	e := chromeEvent{ph: "X", at: at, args: map[string]any{}}
	var queue, stage string
	err := fieldsOf(message, func(f field) error {
		switch f.id {
		case 2:
			e.duration = int64(f.number)
		case 6:
			return extra(f.value, e.args)
		case 11:
			e.pid = int32(f.number & 0xffff)
		case 13:
			queue = s.stages[f.number]
		case 14:
			stage = s.stages[f.number]
		case 17:
			e.name = string(f.value)
		}
		return nil
	})
	if e.name == "" {
		e.name = stage
	}
	if id, there := e.args["launch span_id"]; there {
		e.args["correlation"] = id
		delete(e.args, "correlation_id")
	}
	if e.cat = chromeCategory("device." + stage); !deviceCategories[e.cat] {
		e.cat = "kernel"
	}
	e.tid = p.number(perfettoLane{queue: fmt.Sprint(e.pid, " ", queue)}) - firstLane
	if _, number, ok := strings.Cut(queue, "stream "); ok { // as ours are called
		if n, err := strconv.ParseInt(number, 10, 31); err == nil {
			e.tid = int32(n)
		}
	}
	p.write(e)
	return err
}

func extra(message []byte, into map[string]any) error {
	var name, value string
	err := fieldsOf(message, func(f field) error {
		switch f.id {
		case 1:
			name = string(f.value)
		case 2:
			value = string(f.value)
		}
		return nil
	})
	if n, e := strconv.ParseInt(value, 10, 64); e == nil {
		into[name] = n
	} else if name != "" {
		into[name] = value
	}
	return err
}

// chromeEvent is an event as it is written in Chrome's JSON.
type chromeEvent struct {
	ph, name, cat string
	pid, tid      int32
	at, duration  int64 // ns; a negative duration is none
	id            uint64
	args          map[string]any
}

func (p *perfettoText) write(e chromeEvent) {
	b := p.out
	if p.any {
		b = append(b, ",\n"...)
	}
	p.any = true
	b = fmt.Appendf(b, `{"ph":"%s","pid":%d,"tid":%d,"ts":%s`, e.ph, e.pid, e.tid, micro(e.at))
	if e.name != "" {
		b = append(append(b, `,"name":`...), quote(e.name)...)
	}
	if e.cat != "" {
		b = append(append(b, `,"cat":`...), quote(e.cat)...)
	}
	if e.duration >= 0 {
		b = append(append(b, `,"dur":`...), micro(e.duration)...)
	}
	if e.id != 0 {
		b = fmt.Appendf(b, `,"id":%d`, e.id&(1<<62-1))
	}
	if len(e.args) > 0 {
		if args, err := json.Marshal(e.args); err == nil {
			b = append(append(b, `,"args":`...), args...)
		}
	}
	p.out = append(b, '}')
}

// micro is nanoseconds as Chrome has them.
func micro(ns int64) string {
	if ns < 0 {
		return "-" + micro(-max(ns, math.MinInt64+1))
	}
	return fmt.Sprintf("%d.%03d", ns/1000, ns%1000)
}

func quote(text string) []byte {
	quoted, _ := json.Marshal(text) // a string has no error
	return quoted
}

// named says what a process or thread is called.
func (p *perfettoText) named(what string, pid, tid int32, name string) {
	p.write(chromeEvent{ph: "M", name: what, pid: pid, tid: tid, duration: -1, args: map[string]any{"name": name}})
}

// rename gives notes the names that torch.profiler has for them: rocprofv3 and its relatives have others.
func (h *happening) rename() {
	for from, to := range map[string]string{"corr_id": "correlation", "stream_ID": "stream", "stream_id": "stream", "agent": "device"} {
		if value, there := h.notes[from]; there {
			if _, taken := h.notes[to]; !taken {
				h.notes[to] = value
			}
		}
	}
	// In our own exports a stage of a GPU has its launch by this number: a correlation is one process's.
	if id, there := h.notes["span_id"]; there {
		h.notes["correlation"] = id
		delete(h.notes, "correlation_id")
	}
}

// chromeCategory is torch.profiler's category for one of another tool's: rocprofv3's domains, and ours, which are layer and
// category. One that is not known stays as it is.
func chromeCategory(of string) string {
	layer, category, _ := strings.Cut(of, ".")
	switch layer {
	case "op", "autograd":
		return "cpu_op"
	case "runtime":
		return "cuda_runtime"
	case "scope":
		return "user_annotation"
	case "device":
		switch category {
		case deviceCopy:
			return "gpu_memcpy"
		case deviceSet:
			return "gpu_memset"
		case deviceSync:
			return "cuda_sync"
		case deviceAnnotation:
			return "gpu_user_annotation"
		}
		return "kernel"
	}
	lower := strings.ToLower(of)
	for _, known := range []struct{ word, category string }{
		{"kernel_dispatch", "kernel"}, {"memory_copy", "gpu_memcpy"}, {"hip_api", "cuda_runtime"}, {"hsa_api", "cuda_runtime"},
		{"hip_runtime_api", "cuda_runtime"}, {"marker", "user_annotation"}, {"roctx", "user_annotation"}, {"nvtx", "user_annotation"},
	} {
		if strings.Contains(lower, known.word) {
			return known.category
		}
	}
	return of
}
