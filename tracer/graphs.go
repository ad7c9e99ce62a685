package tracer

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// graphs follows captures: what a stream is given between the begin and the end
// of one has not run. It becomes a graph, the graph an executable one, and each
// launch of that runs all of it.
type graphs struct {
	streams map[uint64]*captured // streams in a capture
	events  map[uint64]*captured // events recorded on such a stream
	graph   map[uint64]*captured
	exec    map[uint64]*captured
}

// maxReplay is how many edges one replay may have: graphs of graphs grow fast.
const maxReplay = 1 << 16

// captured is one capture: id is that of the span that began it.
type captured struct {
	id    int64
	nodes []graphNode
}

// graphNode is one piece of work of a graph.
type graphNode struct {
	span   int64     // of the call that was captured, or that added it
	handle uint64    // 0: captured
	child  *captured // what else runs with it, as it was then
}

// snapshot is what a graph has now: the graph may get more nodes later.
func (g *captured) snapshot() *captured {
	return &captured{g.id, g.nodes[:len(g.nodes):len(g.nodes)]}
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
func (c *acceleratorCall) capturable() bool {
	switch c.f.Category {
	case "launch", "copy", "set", "callback", "alloc", "free":
		return true
	case "graph":
		return c.f.Effect == catalog.LaunchesGraph
	case "event":
		return (c.f.Effect == catalog.RecordsEvent || c.f.Effect == catalog.StreamWaits) &&
			c.args.value[catalog.FieldFlags]&externalEvent != 0
	}
	return false
}

// externalEvent is CU_EVENT_RECORD_EXTERNAL and CU_EVENT_WAIT_EXTERNAL.
const externalEvent = 1

// capture marks work that goes into a graph instead of to the device: its
// category is graph, its correlation id that of the capture.
func (c *acceleratorCall) capture(d *decoder) {
	if len(c.graphs.streams) == 0 || !c.args.has(catalog.FieldStream) || !c.capturable() {
		return
	}
	into := c.graphs.streams[c.args.value[catalog.FieldStream]]
	if into == nil || c.span.Status == StatusError {
		return
	}
	into.add(c, c.graphs.exec[c.args.value[catalog.FieldGraphExec]])
	c.captured = true
	c.span.Call = d.recategorize(c.r.Spec, c.span.Call, "graph")
}

func (g *captured) add(c *acceleratorCall, child *captured) {
	g.nodes = append(g.nodes, graphNode{c.span.ID, c.args.value[catalog.FieldHandle], child})
	c.detail().CorrelationID = &g.id
}

// isCaptured reports whether the call's work went into a graph.
func (c *acceleratorCall) isCaptured() bool { return c.captured }

// isKernel reports whether the call has a kernel to name. Of a node that may be
// anything, it forgets what its kind has not: a kernel's sizes, a child.
func (c *acceleratorCall) isKernel() bool {
	if c.f.Name != catalog.FromKernel || !c.args.has(catalog.FieldNodeKind) {
		return c.f.Name == catalog.FromKernel
	}
	kind := c.args.value[catalog.FieldNodeKind]
	if kind != catalog.NodeGraph {
		c.args.value[catalog.FieldChild] = 0
	}
	if kind == catalog.NodeKernel {
		return true
	}
	if c.span.Detail != nil {
		c.span.Detail.Handle, c.span.Detail.Grid, c.span.Detail.Block, c.span.Detail.Work = nil, nil, nil, nil
	}
	return false
}

// apply keeps what a call says of captures and graphs.
func (g *graphs) apply(c *acceleratorCall, d *decoder) {
	stream, event := c.args.value[catalog.FieldStream], c.args.value[catalog.FieldEvent]
	graph, exec := c.args.value[catalog.FieldGraph], c.args.value[catalog.FieldGraphExec]
	switch c.f.Effect {
	case catalog.BeginsCapture:
		g.streams[stream] = &captured{id: c.span.ID}
	case catalog.RecordsEvent:
		delete(g.events, event)
		if into := g.streams[stream]; into != nil {
			g.events[event] = into
		}
	case catalog.StreamWaits:
		// A stream that waits for an event of a capture joins it.
		if into := g.events[event]; into != nil && g.capturing(into) {
			g.streams[stream] = into
		}
	case catalog.EndsCapture:
		g.end(stream, graph)
	case catalog.AddsNode:
		g.addNode(c, graph)
	case catalog.RemovesNode:
		g.remove(c.args.value[catalog.FieldHandle])
	case catalog.ClonesGraph:
		delete(g.graph, graph)
		if original := g.graph[c.args.value[catalog.FieldChild]]; original != nil {
			g.graph[graph] = original.snapshot()
		}
	case catalog.InstantiatesGraph, catalog.UpdatesGraph:
		delete(g.exec, exec)
		if made := g.graph[graph]; made != nil {
			g.exec[exec] = made.snapshot()
		}
	case catalog.LaunchesGraph:
		if !c.captured {
			g.launch(c, d, g.exec[exec])
		}
	case catalog.DestroysGraph:
		delete(g.graph, graph)
	case catalog.DestroysGraphExec:
		delete(g.exec, exec)
	}
}

// addNode keeps a node that a call of its own adds, and what its child has now.
func (g *graphs) addNode(c *acceleratorCall, graph uint64) {
	if g.graph[graph] == nil {
		g.graph[graph] = &captured{id: c.span.ID}
	}
	var child *captured
	if inside := g.graph[c.args.value[catalog.FieldChild]]; inside != nil {
		child = inside.snapshot()
	}
	g.graph[graph].add(c, child)
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

func (g *graphs) end(stream, graph uint64) {
	one := g.streams[stream]
	if one == nil {
		return // it began before the recording
	}
	for s, other := range g.streams {
		if other == one {
			delete(g.streams, s)
		}
	}
	if graph != 0 {
		g.graph[graph] = one
	}
}

// launch draws an edge from a replay to each call whose work runs again, those of
// child graphs among them.
func (g *graphs) launch(c *acceleratorCall, d *decoder, one *captured) {
	if one == nil {
		return // captured before the recording: what it runs is not known
	}
	c.detail().CorrelationID = &one.id
	room := maxReplay
	one.each(func(node graphNode) bool {
		if room--; room < 0 {
			d.replaysCut++
			return false
		}
		d.flows = append(d.flows, Flow{
			TSNS: c.span.StartNS, FromSpanID: c.span.ID, ToSpanID: node.span, Kind: "capture_replay", Method: "graph_exec",
		})
		d.totals.Flows++
		return true
	})
}

// each visits the nodes, and after a node those of its child, until visit says no.
func (g *captured) each(visit func(graphNode) bool) bool {
	for _, node := range g.nodes {
		if !visit(node) || node.child != nil && !node.child.each(visit) {
			return false
		}
	}
	return true
}
