package accel

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// graphs follows captures: what is submitted to a stream between the begin and the end
// of one has not run. It becomes a graph, the graph an executable one, and each
// launch of that runs all of it.
type graphs struct {
	streams map[uint64]*captured // streams in a capture
	events  map[uint64]*captured // events recorded on such a stream
	graph   map[uint64]*captured
	exec    map[uint64]*captured
	// nodes is how many they had when that was counted last, grown what has come since.
	nodes, grown int
}

// maxReplay is how many edges one replay may have: graphs of graphs grow fast.
const maxReplay = 1 << 16

// captured is one capture: id is that of the span that began it.
type captured struct {
	id    int64
	nodes []graphNode
}

// snapshot is what a graph has now: the graph may get more nodes later, and so
// may the bodies of its conditional nodes.
func (g *captured) snapshot() *captured { return g.copyInto(map[*captured]*captured{}) }

// copyInto copies each graph once. What a process says of its graphs may be
// circular, which no real graph is.
func (g *captured) copyInto(done map[*captured]*captured) *captured {
	if one := done[g]; one != nil {
		return one
	}
	one := &captured{g.id, g.nodes[:len(g.nodes):len(g.nodes)]}
	done[g] = one
	if !slices.ContainsFunc(g.nodes, func(n graphNode) bool { return n.bodies != nil }) {
		return one
	}
	one.nodes = slices.Clone(g.nodes)
	for i := range one.nodes {
		bodies := slices.Clone(one.nodes[i].bodies)
		for j := range bodies {
			bodies[j] = bodies[j].copyInto(done)
		}
		one.nodes[i].bodies = bodies
	}
	return one
}

func newGraphs() graphs {
	return graphs{
		streams: map[uint64]*captured{}, events: map[uint64]*captured{},
		graph: map[uint64]*captured{}, exec: map[uint64]*captured{},
	}
}

// capturable reports whether a call gives a stream something that a capture of
// it keeps as a node: work, allocations in the stream's order, a launch of
// another graph. Events do where they are asked to: else they only order nodes.
func (c *Call) capturable() bool {
	switch c.f.Category {
	case "launch", "copy", "set", "callback", "alloc", "free":
		return true
	case "graph":
		return c.f.Effect == spec.LaunchesGraph
	case "event":
		return (c.f.Effect == spec.RecordsEvent || c.f.Effect == spec.StreamWaits) &&
			c.args.value[spec.FieldFlags]&externalEvent != 0
	}
	return false
}

// externalEvent is CU_EVENT_RECORD_EXTERNAL and CU_EVENT_WAIT_EXTERNAL.
const externalEvent = 1

// capture marks work that goes into a graph instead of to the device: its
// category is graph, its correlation id that of the capture.
func (c *Call) capture() {
	if len(c.graphs.streams) == 0 || !c.args.Has(spec.FieldStream) || !c.capturable() {
		return
	}
	into := c.graphs.streams[c.args.value[spec.FieldStream]]
	if into == nil || c.span.Status == event.StatusError {
		return
	}
	into.add(c, graphNode{child: c.graphs.exec[c.args.value[spec.FieldGraphExec]]})
	c.captured = true
	c.span.Call = c.state.rows.Recategorize(c.r.Spec, c.span.Call, "graph")
}

// add appends the call's node; what the caller knows of it already is in node.
func (g *captured) add(c *Call, node graphNode) {
	node.span, node.handle, node.memory = c.span.ID, c.args.value[spec.FieldHandle], c.nodeMemory()
	g.nodes = append(g.nodes, node)
	c.graphs.grown++
	c.detail().CorrelationID = &g.id
}

// isCaptured reports whether the call's work went into a graph.
func (c *Call) isCaptured() bool { return c.captured }

// isKernel reports whether the call has a kernel to name.
func (c *Call) isKernel() bool {
	return c.f.Name == spec.FromKernel &&
		(!c.args.Has(spec.FieldNodeKind) || c.args.value[spec.FieldNodeKind] == spec.NodeKernel)
}

// apply keeps what a call says of captures and graphs.
func (g *graphs) apply(c *Call) {
	stream, event := c.args.value[spec.FieldStream], c.args.value[spec.FieldEvent]
	graph, exec := c.args.value[spec.FieldGraph], c.args.value[spec.FieldGraphExec]
	switch c.f.Effect {
	case spec.BeginsCapture:
		g.streams[stream] = &captured{id: c.span.ID}
		if graph != 0 { // into one that is there
			g.streams[stream] = g.made(graph, c)
		}
	case spec.RecordsEvent:
		delete(g.events, event)
		if into := g.streams[stream]; into != nil {
			g.events[event] = into
		}
	case spec.StreamWaits:
		// A stream that waits for an event of a capture joins it.
		if into := g.events[event]; into != nil && g.capturing(into) {
			g.streams[stream] = into
		}
	case spec.EndsCapture:
		g.end(stream, graph)
	case spec.AddsNode:
		g.addNode(c, graph)
	case spec.RemovesNode:
		g.remove(c.args.value[spec.FieldHandle])
	case spec.ClonesGraph:
		delete(g.graph, graph)
		if original := g.graph[c.args.value[spec.FieldChild]]; original != nil {
			g.graph[graph] = original.snapshot()
		}
	case spec.InstantiatesGraph, spec.UpdatesGraph:
		delete(g.exec, exec)
		if made := g.graph[graph]; made != nil {
			g.exec[exec] = made.snapshot()
			g.grown += len(made.nodes)
		}
	case spec.LaunchesGraph:
		if !c.captured {
			g.launch(c, g.exec[exec])
		}
	case spec.DestroysGraph:
		delete(g.graph, graph)
	case spec.DestroysGraphExec:
		delete(g.exec, exec)
	}
}

// made is the graph of a handle, which may come from a call that is not probed.
func (g *graphs) made(graph uint64, c *Call) *captured {
	if g.graph[graph] == nil {
		g.graph[graph] = &captured{id: c.span.ID}
	}
	return g.graph[graph]
}

// addNode keeps a node that a call of its own adds, and what its child has now.
func (g *graphs) addNode(c *Call, graph uint64) {
	var node graphNode
	if inside := g.graph[c.args.value[spec.FieldChild]]; inside != nil {
		node.child = inside.snapshot()
	}
	node.bodies = c.bodies()
	g.made(graph, c).add(c, node)
}

// remove forgets a node; graphs that were made of its graph before keep it.
func (g *graphs) remove(handle uint64) {
	for _, one := range g.graph {
		i := slices.IndexFunc(one.nodes, func(n graphNode) bool { return n.handle == handle && handle != 0 })
		if i >= 0 {
			one.nodes = slices.Concat(one.nodes[:i], one.nodes[i+1:])
			return
		}
	}
}

func (g *graphs) capturing(one *captured) bool {
	for _, other := range g.streams {
		if other == one {
			return true
		}
	}
	return false
}

// end closes a capture. Nodes that were added by calls of their own meanwhile
// belong to it: a job can ask for the handle of the graph that it captures.
func (g *graphs) end(stream, graph uint64) {
	one := g.streams[stream]
	if one == nil {
		return // it began before the recording
	}
	g.drop(stream)
	if graph == 0 {
		return
	}
	if added := g.graph[graph]; added != nil && added != one {
		one.nodes = append(one.nodes, added.nodes...)
		g.grown += len(added.nodes)
	}
	g.graph[graph] = one
}

// drop ends the capture of a stream, and of those that joined it.
func (g *graphs) drop(stream uint64) {
	one := g.streams[stream]
	for s, other := range g.streams {
		if other == one {
			delete(g.streams, s)
		}
	}
}

// fail ends a capture that came to nothing: the driver says so where it is to
// end, and the stream runs again what is submitted to it.
func (g *graphs) fail(c *Call) {
	if c.f.Effect != spec.EndsCapture || c.span.Detail == nil || c.span.Detail.ErrorCode == nil {
		return
	}
	switch *c.span.Detail.ErrorCode {
	case captureInvalidated, captureUnjoined:
		g.drop(c.args.value[spec.FieldStream])
	}
}

// CUDA_ERROR_STREAM_CAPTURE_INVALIDATED and …_UNJOINED, and HIP's of those names.
const captureInvalidated, captureUnjoined = 901, 904

// Kinds of flow from a replay to what was captured: it ran, or the device decided
// whether, and how often.
const flowReplay, flowConditional = "capture_replay", "capture_conditional"

// launch draws an edge from a replay to each call whose work runs again, those of
// child graphs among them, and tells what its memory nodes do.
func (g *graphs) launch(c *Call, one *captured) {
	if one == nil {
		return // captured before the recording: what it runs is not known
	}
	c.detail().CorrelationID = &one.id
	room := maxReplay
	var memory []*event.Memory
	one.each(false, func(node graphNode, conditional bool) bool {
		if room--; room < 0 {
			c.state.ReplaysCut++
			return false
		}
		kind := flowReplay
		if conditional {
			kind = flowConditional
		} else if node.memory != nil {
			memory = append(memory, node.memory)
		}
		c.state.rows.Flow(event.Flow{
			TSNS: c.span.StartNS, FromSpanID: c.span.ID, ToSpanID: node.span, Kind: kind, Method: "graph_exec",
		})
		return true
	})
	if len(memory) > 0 {
		c.replayMemory(memory)
	}
}

// each visits the nodes, and after a node those of its child and of its bodies,
// until visit says no.
func (g *captured) each(conditional bool, visit func(node graphNode, conditional bool) bool) bool {
	for _, node := range g.nodes {
		if !visit(node, conditional) || node.child != nil && !node.child.each(conditional, visit) {
			return false
		}
		for _, body := range node.bodies {
			if !body.each(true, visit) {
				return false
			}
		}
	}
	return true
}
