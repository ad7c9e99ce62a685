package accel

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

const (
	aGraph, aBody = 0x3000, 0x3100
	anExec        = 0x4000
)

func (m *commands) addNode(graph uint64, more map[spec.Field]uint64) {
	values := map[spec.Field]uint64{spec.FieldGraph: graph}
	for field, v := range more {
		values[field] = v
	}
	m.call(spec.Function{Category: "graph", Effect: spec.AddsNode}, values)
}

func (m *commands) replay() {
	m.call(spec.Function{Category: "graph", Effect: spec.InstantiatesGraph},
		map[spec.Field]uint64{spec.FieldGraph: aGraph, spec.FieldGraphExec: anExec})
	m.call(spec.Function{Category: "graph", Effect: spec.LaunchesGraph},
		map[spec.Field]uint64{spec.FieldGraphExec: anExec, spec.FieldStream: aQueue})
}

func (m *commands) flowsOf(kind string) (n int) {
	for _, f := range m.flows {
		if f.Kind == kind {
			n++
		}
	}
	return n
}

var conditionalNode = map[spec.Field]uint64{
	spec.FieldNodeKind: spec.NodeConditional, spec.FieldCount: 1, spec.FieldBody: aBody,
}

func TestNodesOfABodyMayHaveRun(t *testing.T) {
	m := newCommands()
	m.addNode(aGraph, nil)
	m.addNode(aGraph, conditionalNode)
	m.addNode(aBody, nil)
	m.addNode(aBody, nil)
	m.replay()
	if ran, may := m.flowsOf(flowReplay), m.flowsOf(flowConditional); ran != 2 || may != 2 {
		t.Errorf("%d nodes ran and %d may have run, want 2 and 2", ran, may)
	}
	m.addNode(aBody, nil) // not part of what was instantiated
	m.call(spec.Function{Category: "graph", Effect: spec.LaunchesGraph}, map[spec.Field]uint64{spec.FieldGraphExec: anExec})
	if may := m.flowsOf(flowConditional); may != 4 {
		t.Errorf("%d edges to nodes of the body after two replays, want 4", may)
	}
}

// TestGraphsThatHoldThemselvesEnd: no driver makes such, but what a process says
// of its handles may be anything.
func TestGraphsThatHoldThemselvesEnd(t *testing.T) {
	m := newCommands()
	itself := map[spec.Field]uint64{spec.FieldNodeKind: spec.NodeConditional, spec.FieldCount: 1, spec.FieldBody: aGraph}
	m.addNode(aGraph, nil)
	m.addNode(aGraph, itself)
	m.addNode(aGraph, conditionalNode)
	m.addNode(aBody, map[spec.Field]uint64{spec.FieldNodeKind: spec.NodeConditional, spec.FieldCount: 1 << 31, spec.FieldBody: aBody})
	around := m.state.get(1, "opencl").graphs.graph[aGraph]
	around.nodes = append(around.nodes, graphNode{bodies: []*captured{around}})
	m.replay()
	if m.state.ReplaysCut != 1 || len(m.flows) != maxReplay {
		t.Errorf("%d edges, cut %d times; want %d, cut once", len(m.flows), m.state.ReplaysCut, maxReplay)
	}
	if m.state.BodiesUnread != 1<<31-1 {
		t.Errorf("%d bodies are said to be unread, want all but the first", m.state.BodiesUnread)
	}
}

// TestWhatWasAddedToACapturingGraphStays: a job may ask for the graph that its
// stream captures into, and add nodes of its own.
func TestWhatWasAddedToACapturingGraphStays(t *testing.T) {
	for name, into := range map[string]uint64{"a new graph": 0, "a graph that is there": aGraph} {
		m := newCommands()
		m.call(spec.Function{Category: "graph", Effect: spec.BeginsCapture},
			map[spec.Field]uint64{spec.FieldStream: aQueue, spec.FieldGraph: into})
		m.launch(aQueue, 0)
		m.addNode(aGraph, nil)
		m.call(spec.Function{Category: "graph", Effect: spec.EndsCapture},
			map[spec.Field]uint64{spec.FieldStream: aQueue, spec.FieldGraph: aGraph})
		m.replay()
		if ran := m.flowsOf(flowReplay); ran != 2 {
			t.Errorf("a capture into %s: a replay runs %d nodes, want 2", name, ran)
		}
	}
}

func TestALaunchFreesWhatTheOneBeforeLeft(t *testing.T) {
	m := newCommands()
	m.addNode(aGraph, map[spec.Field]uint64{spec.FieldNodeKind: spec.NodeAlloc, spec.FieldAddress: 0x9000, spec.FieldBytes: 64})
	m.replay()
	m.replay()
	var live int64
	for i, row := range m.memory {
		if row.Bytes == nil || row.SpanID == 0 || row.GraphExec == nil || *row.GraphExec != anExec {
			t.Fatalf("row %d: %+v", i, row)
		}
		if live += *row.Bytes; row.Action == "free" {
			live -= 2 * *row.Bytes
		}
	}
	if len(m.memory) != 3 || live != 64 {
		t.Errorf("%d rows that leave %d bytes, want alloc, free, alloc and 64", len(m.memory), live)
	}
}
