package merge

import (
	"math"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/exchange/cupti"
	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
	"github.com/ebpfprof/ebpfprof/symbolize/demangle"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// names are what calls of layer device are called: there are far fewer than rows.
type names struct {
	kernels map[string]kernelName
	calls   map[event.Call]*event.Call
}

type kernelName struct {
	call   *event.Call
	symbol string // "" where it is the name
}

func newNames() names { return names{map[string]kernelName{}, map[event.Call]*event.Call{}} }

// What CUPTI calls the kinds of copies (CUpti_ActivityMemcpyKind), as Nsight's readers do.
var copyWays = map[uint32][2]string{
	1: {"Memcpy HtoD", "host_to_device"}, 2: {"Memcpy DtoH", "device_to_host"}, 8: {"Memcpy DtoD", "device_to_device"},
	9: {"Memcpy HtoH", "host_to_host"}, 10: {"Memcpy PtoP", "device_to_device"},
}

// What it calls the kinds of waits (CUpti_ActivitySynchronizationType), in torch.profiler's words.
var waitTypes = map[uint32]string{1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}

func (n names) call(c event.Call) *event.Call {
	if known := n.calls[c]; known != nil {
		return known
	}
	n.calls[c] = &c
	return &c
}

func (n names) kernel(symbol string) kernelName {
	k, known := n.kernels[symbol]
	if known {
		return k
	}
	name := strings.Replace(demangle.Full(symbol), "__device_stub__", "", 1)
	if name == "" {
		name = "kernel"
	}
	k.call = n.call(event.Call{Layer: "device", Category: importer.KernelCategory(name), Runtime: "cuda", Name: name})
	if name != symbol {
		k.symbol = symbol
	}
	n.kernels[symbol] = k
	return k
}

// describe is the call and the detail of a row.
func (n names) describe(w cupti.Work) (*event.Call, *event.Detail) {
	d := &event.Detail{Context: number(w.Context)}
	if w.Stream != math.MaxUint32 {
		d.Stream = number(w.Stream)
	}
	device := int32(w.Device)
	switch w.Kind {
	case cupti.Kernel:
		k := n.kernel(w.Name)
		d.DeviceID, d.Symbol = &device, k.symbol
		d.Grid, d.Block, d.Work = three(w.Grid), three(w.Block), three(w.Grid)
		for i := range d.Work {
			d.Work[i] *= d.Block[i]
		}
		d.SharedBytes = number(w.Shared)
		return k.call, d
	case cupti.Wait:
		if d.Stream != nil {
			d.MakeWait().Stream = d.Stream
		}
		name := waitTypes[w.Way]
		if name == "" {
			name = "Sync"
		}
		return n.call(event.Call{Layer: "device", Category: "sync", Runtime: "cuda", Name: name}), d
	}
	d.DeviceID = &device
	bytes := int64(min(w.Bytes, math.MaxInt64))
	d.Bytes = &bytes
	if w.Kind == cupti.Set {
		return n.call(event.Call{Layer: "device", Category: "set", Runtime: "cuda", Name: "Memset"}), d
	}
	way, known := copyWays[w.Way]
	if !known {
		way[0] = "Memcpy"
	}
	d.Direction = way[1]
	return n.call(event.Call{Layer: "device", Category: "copy", Runtime: "cuda", Name: way[0]}), d
}

func number(n uint32) *int64 { wide := int64(n); return &wide }

func three(n [3]uint32) *[3]int64 { return &[3]int64{int64(n[0]), int64(n[1]), int64(n[2])} }
