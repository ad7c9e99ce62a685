package accel

import (
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
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
func (a *Arguments) node(layout *catalog.NodeLayout) {
	kind := a.value[catalog.FieldNodeKind]
	if kind != catalog.NodeAlloc {
		a.forget(catalog.FieldBytes)
		a.forget(catalog.FieldAddress)
	}
	switch kind {
	case catalog.NodeKernel:
		a.copy(layout.As, layout.Kernel)
		for i := range layout.Grid {
			a.half(catalog.FieldGridX+catalog.Field(i), layout.Grid[i])
			a.half(catalog.FieldBlockX+catalog.Field(i), layout.Block[i])
		}
	case catalog.NodeSet:
		a.half(catalog.FieldDepth, layout.Element)
		a.copy(catalog.FieldWidth, layout.Width)
		a.copy(catalog.FieldHeight, layout.Height)
	case catalog.NodeGraph:
		a.copy(catalog.FieldChild, catalog.FieldNode16)
	case catalog.NodeAlloc:
		a.copy(catalog.FieldLocation, catalog.FieldNode24)
	case catalog.NodeFree:
		a.copy(catalog.FieldAddress, catalog.FieldNode16)
	case catalog.NodeConditional:
		a.half(catalog.FieldCount, catalog.Half{Field: catalog.FieldNode24, High: true})
	}
}

func (a *Arguments) forget(f catalog.Field) { a.value[f], a.known[f] = 0, false }

func (a *Arguments) copy(to, from catalog.Field) {
	a.value[to], a.known[to] = a.value[from], a.known[from]
}

func (a *Arguments) half(to catalog.Field, from catalog.Half) {
	word := a.value[from.Field]
	if from.High {
		word >>= 32
	}
	a.value[to], a.known[to] = word&(1<<32-1), a.known[from.Field]
}

// locate takes the device out of where memory is asked for, if that is a device.
func (a *Arguments) locate() {
	if a.value[catalog.FieldLocation]&(1<<32-1) == catalog.LocationDevice {
		a.half(catalog.FieldDeviceID, catalog.Half{Field: catalog.FieldLocation, High: true})
	}
}

// onHost reports whether memory is asked for on the host.
func (a *Arguments) onHost() bool {
	switch a.value[catalog.FieldLocation] & (1<<32 - 1) {
	case catalog.LocationHost, catalog.LocationHostNUMA, catalog.LocationHostNUMACurrent:
		return true
	}
	return false
}

// nodeMemory is what the call's node does with memory at each replay, nil for
// the nodes that allocate or free nothing.
func (c *Call) nodeMemory() *event.Memory {
	m := &event.Memory{Space: "device", Level: "driver"}
	switch kind := c.args.value[catalog.FieldNodeKind]; {
	case c.f.Memory != nil && (c.f.Memory.Action == "alloc" || c.f.Memory.Action == "free"):
		m.Action, m.Space = c.f.Memory.Action, c.f.Memory.Space
	case !c.args.Has(catalog.FieldNodeKind):
		return nil
	case kind == catalog.NodeAlloc:
		m.Action = "alloc"
	case kind == catalog.NodeFree:
		m.Action = "free"
	default:
		return nil
	}
	m.Address = int64(c.args.value[catalog.FieldAddress])
	if m.Address == 0 {
		return nil
	}
	m.Pool, m.Bytes = c.args.Int64(catalog.FieldPool), bytesOf(c.span.Detail)
	c.locate(m)
	return m
}

// bodies are the graphs of a conditional node, which are empty yet. The call's
// record has room for two.
func (c *Call) bodies() (bodies []*captured) {
	if c.args.value[catalog.FieldNodeKind] != catalog.NodeConditional {
		return nil
	}
	for _, handle := range c.all(catalog.FieldBody) {
		if handle != 0 {
			body := &captured{id: c.span.ID}
			c.graphs.graph[handle] = body
			bodies = append(bodies, body)
		}
	}
	if count := c.args.value[catalog.FieldCount]; count > uint64(len(bodies)) {
		c.state.BodiesUnread += count - uint64(len(bodies))
	}
	return bodies
}
