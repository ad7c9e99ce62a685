package tracer

import "github.com/ebpfprof/ebpfprof/tracer/catalog"

// graphs follows captures: what a stream is given between the begin and the end
// of one has not run. It becomes a graph, the graph an executable one, and each
// launch of that runs all of it.
type graphs struct {
	streams map[uint64]*captured // streams in a capture
	events  map[uint64]*captured // events recorded on such a stream
	graph   map[uint64]*captured
	exec    map[uint64]*captured
}

// captured is one capture: id is that of the span that began it.
type captured struct {
	id    int64
	nodes []int64 // spans
}

func newGraphs() graphs {
	return graphs{
		streams: map[uint64]*captured{}, events: map[uint64]*captured{},
		graph: map[uint64]*captured{}, exec: map[uint64]*captured{},
	}
}

// device categories are the calls whose work goes to a stream.
func deviceWork(category string) bool {
	return category == "launch" || category == "copy" || category == "set" || category == "callback"
}

// capture marks work that goes into a graph instead of to the device: its
// category is graph, its correlation id that of the capture.
func (c *acceleratorCall) capture(d *decoder) {
	if len(c.graphs.streams) == 0 || !deviceWork(c.f.Category) || !c.args.has(catalog.FieldStream) {
		return
	}
	into := c.graphs.streams[c.args.value[catalog.FieldStream]]
	if into == nil || c.span.Status == StatusError {
		return
	}
	into.add(c)
	c.span.Call = d.recategorize(c.r.Spec, c.span.Call, "graph")
}

func (g *captured) add(c *acceleratorCall) {
	g.nodes = append(g.nodes, c.span.ID)
	c.detail().CorrelationID = &g.id
}

// isCaptured reports whether the call's work went into a graph.
func (c *acceleratorCall) isCaptured() bool {
	return c.span.Call.Category == "graph" && deviceWork(c.f.Category)
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
	case catalog.AddsKernelNode:
		if g.graph[graph] == nil {
			g.graph[graph] = &captured{id: c.span.ID}
		}
		g.graph[graph].add(c)
	case catalog.InstantiatesGraph, catalog.UpdatesGraph:
		delete(g.exec, exec)
		if made := g.graph[graph]; made != nil {
			g.exec[exec] = &captured{made.id, made.nodes[:len(made.nodes):len(made.nodes)]}
		}
	case catalog.LaunchesGraph:
		g.launch(c, d, g.exec[exec])
	case catalog.DestroysGraph:
		delete(g.graph, graph)
	case catalog.DestroysGraphExec:
		delete(g.exec, exec)
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

// launch draws an edge from a replay to each captured call that runs again.
func (g *graphs) launch(c *acceleratorCall, d *decoder, one *captured) {
	if one == nil {
		return // captured before the recording: what it runs is not known
	}
	c.detail().CorrelationID = &one.id
	for _, node := range one.nodes {
		d.flows = append(d.flows, Flow{
			TSNS: c.span.StartNS, FromSpanID: c.span.ID, ToSpanID: node, Kind: "capture_replay", Method: "graph_exec",
		})
	}
	d.totals.Flows += uint64(len(one.nodes))
}
