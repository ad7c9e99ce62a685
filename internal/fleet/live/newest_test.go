package live

import (
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// kept is what is handed over.
type kept struct {
	batches   int
	spans     []event.Span
	samples   []event.Sample
	stacks    []event.Stack
	memory    []event.Memory
	slices    []event.Slice
	processes []event.Process
	warnings  []event.Warning
}

// Write implements event.Sink.
func (k *kept) Write(b *event.Batch) error {
	k.batches++
	k.processes = append(k.processes, b.Processes...)
	k.slices = append(k.slices, b.Slices...)
	k.stacks = append(k.stacks, b.Stacks...)
	k.samples = append(k.samples, b.Samples...)
	k.spans = append(k.spans, b.Spans...)
	k.memory = append(k.memory, b.Memory...)
	k.warnings = append(k.warnings, b.Warnings...)
	return nil
}

// The last span ends a moment after the last sample, from which half a minute counts.
//
// The rows of the last half minute are there with what they name, however long it was before.
func TestTheLastMomentsAreKeptWithTheirStacks(t *testing.T) {
	e := NewEvidence("a")
	n := NewNewest(e)
	const second = int64(1e9)
	tell := func(at, stack int64) {
		e.Write(&event.Batch{Stacks: []event.Stack{{ID: stack, Status: event.StackComplete, Frames: []symbolize.Frame{{Kind: symbolize.Python,
			Function: "step", File: "/job/train.py", Line: int32(stack)}}}}})
		n.Write(&event.Batch{Spans: []event.Span{{ID: at, StartNS: at, DurationNS: 10, PID: 1, Call: work, PythonStackID: stack,
			SliceID: stack}}})
		n.Write(&event.Batch{Slices: []event.Slice{{ID: stack, PID: 1}}})
		n.Write(&event.Batch{Samples: []event.Sample{{TSNS: at, PID: 1, StackID: &stack}}})
		n.Write(&event.Batch{Memory: []event.Memory{{TSNS: at, PID: 1, PythonStackID: stack}}})
	}
	ended := second
	n.Write(&event.Batch{Processes: []event.Process{{PID: 7, EndedNS: &ended}}})
	n.Write(&event.Batch{Processes: []event.Process{{PID: 1}}})
	for i := range int64(100) {
		tell((i+1)*second, i+1)
	}
	var k kept
	if err := n.CopyTo(&k); err != nil {
		t.Fatal(err)
	}
	if len(k.spans) != 31 || k.spans[0].StartNS != 70*second || k.spans[30].StartNS != 100*second {
		t.Errorf("%d spans, from %d", len(k.spans), k.spans[0].StartNS)
	}
	if len(k.samples) != 30 || len(k.memory) != 30 || len(k.slices) != 31 || len(k.stacks) != 31 {
		t.Errorf("%d samples, %d of memory, %d slices, %d stacks", len(k.samples), len(k.memory), len(k.slices), len(k.stacks))
	}
	if s := k.stacks[0]; s.Status != event.StackComplete || len(s.Frames) != 1 || s.Frames[0].Line < 70 || s.Folded == "" {
		t.Errorf("a stack is %+v", s)
	}
	if len(k.processes) != 1 || k.processes[0].PID != 1 {
		t.Errorf("processes are %+v", k.processes)
	}
	// A dataset takes stacks and slices before the rows that name them, or with them.
	if k.batches != 1 {
		t.Errorf("%d batches", k.batches)
	}
}

func TestNewestIsBoundedAndKeepsTheLast(t *testing.T) {
	n := NewNewest(NewEvidence("a"))
	for i := range int64(3 * keptSpans) {
		n.Write(&event.Batch{Spans: []event.Span{{ID: i, StartNS: i, PID: 1, Call: work}}})
	}
	for i := range int32(5 * mostProcesses) {
		at := int64(i)
		n.Write(&event.Batch{Processes: []event.Process{{PID: i, EndedNS: &at}}})
		n.Write(&event.Batch{Threads: []event.Thread{{PID: i, TID: i, EndedNS: &at}}})
	}
	if len(n.spans.rows) != keptSpans || len(n.processes) != mostProcesses || len(n.threads) > keptThreads {
		t.Errorf("%d spans, %d processes, %d threads", len(n.spans.rows), len(n.processes), len(n.threads))
	}
	var k kept
	if err := n.CopyTo(&k); err != nil {
		t.Fatal(err)
	}
	if len(k.spans) != keptSpans || k.spans[0].ID != 2*keptSpans || !slices.IsSortedFunc(k.spans,
		func(a, b event.Span) int { return int(a.ID - b.ID) }) {
		t.Errorf("%d spans from %d", len(k.spans), k.spans[0].ID)
	}
	if len(k.warnings) != 1 || k.warnings[0].Source != "newest_rows" || !strings.HasSuffix(k.warnings[0].Detail, "not here: span") {
		t.Errorf("%+v", k.warnings)
	}
}

// What rows name and is not there is counted.
func TestStacksThatAreNotKeptAreCounted(t *testing.T) {
	e := NewEvidence("a")
	n := NewNewest(e)
	there, gone := int64(1), int64(2)
	e.Write(&event.Batch{Stacks: []event.Stack{{ID: there, Status: event.StackComplete, Frames: []symbolize.Frame{{Kind: symbolize.Python,
		Function: "step"}}}}})
	n.Write(&event.Batch{Samples: []event.Sample{{TSNS: 5, PID: 1, StackID: &there}, {TSNS: 6, PID: 1, StackID: &gone}, {TSNS: 7, PID: 1}}})
	n.Write(&event.Batch{Spans: []event.Span{{ID: 1, StartNS: 7, PID: 1, Call: work, PythonStackID: gone}, {ID: 2, StartNS: 8, PID: 1,
		Call: work}}})
	var k kept
	if err := n.CopyTo(&k); err != nil {
		t.Fatal(err)
	}
	if len(k.stacks) != 1 || len(k.warnings) != 1 || k.warnings[0].Source != "newest_stacks" || k.warnings[0].Count != 2 {
		t.Errorf("%d stacks, %+v", len(k.stacks), k.warnings)
	}
}
