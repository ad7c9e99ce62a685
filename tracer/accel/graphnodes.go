package accel

import (
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// graphNode is one piece of work of a graph.
type graphNode struct {
	span   int64         // of the call that was captured, or that added it
	handle uint64        // 0: captured
	child  *captured     // what else runs with it, as it was then
	memory *event.Memory // what it allocates or frees whenever it runs
	// bodies are what a conditional node may run, and how often: the device decides.
	bodies []*captured
}

// node gives the words of a node's parameters their meaning, which depends on
// the node's kind; what its kind has not is forgotten.
func (a *Arguments) node(layout *spec.NodeLayout) {
	kind := a.value[spec.FieldNodeKind]
	if kind != spec.NodeAlloc {
		a.forget(spec.FieldBytes)
		a.forget(spec.FieldAddress)
	}
	switch kind {
	case spec.NodeKernel:
		a.copy(layout.As, layout.Kernel)
		for i := range layout.Grid {
			a.half(spec.FieldGridX+spec.Field(i), layout.Grid[i])
			a.half(spec.FieldBlockX+spec.Field(i), layout.Block[i])
		}
	case spec.NodeSet:
		a.half(spec.FieldDepth, layout.Element)
		a.copy(spec.FieldWidth, layout.Width)
		a.copy(spec.FieldHeight, layout.Height)
	case spec.NodeGraph:
		a.copy(spec.FieldChild, spec.FieldNode16)
	case spec.NodeAlloc:
		a.copy(spec.FieldLocation, spec.FieldNode24)
	case spec.NodeFree:
		a.copy(spec.FieldAddress, spec.FieldNode16)
	case spec.NodeConditional:
		a.half(spec.FieldCount, spec.Half{Field: spec.FieldNode24, High: true})
	}
}

func (a *Arguments) forget(f spec.Field) { a.value[f], a.known[f] = 0, false }

func (a *Arguments) copy(to, from spec.Field) {
	a.value[to], a.known[to] = a.value[from], a.known[from]
}

func (a *Arguments) half(to spec.Field, from spec.Half) {
	word := a.value[from.Field]
	if from.High {
		word >>= 32
	}
	a.value[to], a.known[to] = word&(1<<32-1), a.known[from.Field]
}

// locate takes the device out of where memory is asked for, if that is a device.
func (a *Arguments) locate() {
	if a.value[spec.FieldLocation]&(1<<32-1) == spec.LocationDevice {
		a.half(spec.FieldDeviceID, spec.Half{Field: spec.FieldLocation, High: true})
	}
}

// onHost reports whether memory is asked for on the host.
func (a *Arguments) onHost() bool {
	switch a.value[spec.FieldLocation] & (1<<32 - 1) {
	case spec.LocationHost, spec.LocationHostNUMA, spec.LocationHostNUMACurrent:
		return true
	}
	return false
}

// nodeMemory is what the call's node does with memory at each replay, nil for
// the nodes that allocate or free nothing.
func (c *Call) nodeMemory() *event.Memory {
	m := &event.Memory{Space: "device", Level: "driver"}
	switch kind := c.args.value[spec.FieldNodeKind]; {
	case c.f.Memory != nil && (c.f.Memory.Action == "alloc" || c.f.Memory.Action == "free"):
		m.Action, m.Space = c.f.Memory.Action, c.f.Memory.Space
	case !c.args.Has(spec.FieldNodeKind):
		return nil
	case kind == spec.NodeAlloc:
		m.Action = "alloc"
	case kind == spec.NodeFree:
		m.Action = "free"
	default:
		return nil
	}
	m.Address = int64(c.args.value[spec.FieldAddress])
	if m.Address == 0 {
		return nil
	}
	m.Pool, m.Bytes = c.args.Int64(spec.FieldPool), bytesOf(c.span.Detail)
	c.locate(m)
	return m
}

// bodies are the graphs of a conditional node, which are empty yet. The call's
// record has room for two.
func (c *Call) bodies() (bodies []*captured) {
	if c.args.value[spec.FieldNodeKind] != spec.NodeConditional {
		return nil
	}
	for _, handle := range c.all(spec.FieldBody) {
		if handle != 0 {
			body := &captured{id: c.span.ID}
			c.graphs.graph[handle] = body
			bodies = append(bodies, body)
		}
	}
	if count := c.args.value[spec.FieldCount]; count > uint64(len(bodies)) {
		c.state.BodiesUnread += count - uint64(len(bodies))
	}
	return bodies
}
