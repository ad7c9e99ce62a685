package query

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func TestExamplesRunOnARecordingAndOnAnEmptyDataset(t *testing.T) {
	full := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	empty := open(t, begin(t, filepath.Join(t.TempDir(), "d")).Dir())
	waiting := open(t, recordWaits(t, filepath.Join(t.TempDir(), "d")))
	compiled := open(t, recordCompiled(t, filepath.Join(t.TempDir(), "d")))
	reading := open(t, recordIO(t, filepath.Join(t.TempDir(), "d")))
	short := open(t, recordShortage(t, filepath.Join(t.TempDir(), "d")))
	for _, e := range Examples() {
		if e.Name == "oom" || e.Name == "allocator-steps" {
			if len(run(t, short, e.SQL)) == 0 {
				t.Errorf("%s finds nothing", e.Name)
			}
		} else if strings.HasPrefix(e.Name, "io") {
			if len(run(t, reading, e.SQL)) == 0 {
				t.Errorf("%s finds nothing", e.Name)
			}
		} else if len(run(t, full, e.SQL)) == 0 && len(run(t, waiting, e.SQL)) == 0 && len(run(t, compiled, e.SQL)) == 0 {
			t.Errorf("%s finds nothing", e.Name)
		}
		run(t, empty, e.SQL)
		if strings.HasPrefix(e.Title, "--") || strings.Contains(e.Title, "SELECT") || e.Title == "" {
			t.Errorf("%s has the title %q", e.Name, e.Title)
		}
	}
}

// recordWaits writes a dataset of a rank that waits.
func recordWaits(t testing.TB, dir string) string {
	t.Helper()
	d := begin(t, dir)
	id, number, rank, ranks := int64(9), int64(4), int32(0), int32(2)
	detail := &event.Detail{Communicator: &id, CommunicatorHandle: &id, Rank: &rank, Ranks: &ranks}
	call := func(category, name string) *event.Call {
		return &event.Call{Layer: "collective", Category: category, Runtime: "gloo", Name: name}
	}
	err := errors.Join(
		d.Write(&event.Batch{Spans: []event.Span{
			{ID: 1, StartNS: start, DurationNS: 10, PID: 100, TID: 100, Call: call("issue", "gloo::allreduce"), SequenceNumber: 3, Weight: 1,
				Detail: detail},
			{ID: 2, StartNS: start + 20, DurationNS: 500, PID: 100, TID: 100, Call: call("wait", "Work::wait"), SequenceNumber: 3, Weight: 1,
				Detail: detail},
		}}),
		d.Write(&event.Batch{OpenCalls: []event.OpenCalls{{SeenNS: start + 2e9,
			Calls: []event.OpenCall{{StartNS: start + 1e9, PID: 100, TID: 100, Call: call("wait", "Work::wait"), SpanID: 4,
				Number: &number}},
			Communicators: []event.Communicator{{PID: 100, ID: &id, Handle: 9, Runtime: "gloo", Rank: &rank, Ranks: &ranks,
				IssuedNumber: &number}}}}}),
		d.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// recordShortage is of a training job that has no memory left in its second step.
func recordShortage(t testing.TB, dir string) string {
	t.Helper()
	d := begin(t, dir)
	pass := &event.Call{Layer: "autograd", Category: "backward", Name: "Engine::execute"}
	bytes, took, stack, pid := int64(1<<30), int64(3000), int64(5), int32(100)
	held := func(ns int64, value float64) event.Counter {
		return event.Counter{TSNS: ns, Source: "process", Name: "process_memory_resident", Kind: event.Gauge, Unit: "bytes", Value: value,
			PID: &pid}
	}
	memory := func(ns int64, action string) event.Memory {
		return event.Memory{TSNS: ns, PID: pid, TID: pid, Space: "host", Level: "allocator", Action: action, Address: 16, Bytes: &bytes,
			Weight: 1}
	}
	alloc, free, none := memory(start+100, "alloc"), memory(start+200, "free"), memory(start+2e9, event.ActionOutOfMemory)
	alloc.DurationNS, free.DurationNS, none.StackID = &took, &took, &stack
	err := errors.Join(
		d.Write(&event.Batch{Spans: []event.Span{
			{ID: 1, StartNS: start, DurationNS: 10, PID: pid, TID: pid, Call: pass, SequenceNumber: -1, Weight: 1},
			{ID: 2, StartNS: start + 1e9, DurationNS: 10, PID: pid, TID: pid, Call: pass, SequenceNumber: -1, Weight: 1},
		}}),
		d.Write(&event.Batch{Stacks: []event.Stack{{ID: stack, Frames: []event.Frame{{Kind: symbolize.Python, Function: "train",
			File: "/job/train.py", Line: 7}}, Folded: "train", Status: event.StackComplete}}}),
		d.Write(&event.Batch{Memory: []event.Memory{alloc, free, none}}),
		d.Write(&event.Batch{Counters: []event.Counter{held(start, 1e6), held(start+19e8, 5e8), held(start+3e9, 2e6)}}),
		d.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Memory that ran out has the line that asked and what was held until then; steps have the
// time in the allocator that falls into them.
func TestAShortageHasItsLineAndHistory(t *testing.T) {
	db := open(t, recordShortage(t, filepath.Join(t.TempDir(), "d")))
	for name, want := range map[string][]any{
		"oom":             {"train", int32(7), 1073.741824, 500.0, 1.0, 2.0},
		"allocator-steps": {int64(1), int64(1), 3.0, int64(1), 3.0},
	} {
		e, err := FindExample(name)
		if err != nil {
			t.Fatal(err)
		}
		columns := map[string]string{
			"oom":             `"function", line, asked_mb, resident_mb, resident_before_mb, before_s`,
			"allocator-steps": "step, allocations, allocations_us, frees, frees_us",
		}[name]
		rows := run(t, db, "SELECT "+columns+" FROM ("+strings.TrimSuffix(strings.TrimSpace(e.SQL), ";")+")")
		if len(rows) != 1 || fmt.Sprint(rows[0]) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", name, rows, want)
		}
	}
}

// recordIO is of a training job that reads a file in each of two steps.
func recordIO(t testing.TB, dir string) string {
	t.Helper()
	d := begin(t, dir)
	pass := &event.Call{Layer: "autograd", Category: "backward", Name: "Engine::execute"}
	err := errors.Join(
		d.Write(&event.Batch{Spans: []event.Span{
			{ID: 1, StartNS: start, DurationNS: 10, PID: 100, TID: 100, Call: pass, SequenceNumber: -1, Weight: 1},
			{ID: 2, StartNS: start + 1e9, DurationNS: 10, PID: 100, TID: 100, Call: pass, SequenceNumber: -1, Weight: 1},
		}}),
		d.Write(&event.Batch{IO: []event.IO{
			{TSNS: start + 1e8, EndNS: start + 2e8, PID: 101, TID: 101, Operation: event.IORead, Kind: event.IOFile, FileSystem: "nfs4",
				Mount: "/data", Path: "/data/train/0", Calls: 2, Bytes: 4096, DurationNS: 1e7},
			{TSNS: start + 11e8, EndNS: start + 12e8, PID: 101, TID: 101, Operation: event.IORead, Kind: event.IOFile, FileSystem: "nfs4",
				Mount: "/data", Calls: 1, Bytes: 100, DurationNS: 1e6},
		}}),
		d.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestStepsHaveTheReadsThatBeganInThem(t *testing.T) {
	rows := run(t, open(t, recordIO(t, filepath.Join(t.TempDir(), "d"))), exampleSQL(t, "io-steps"))
	if len(rows) != 2 || rows[0][0] != rows[1][0].(int64)-1 {
		t.Errorf("%v", rows)
	}
}

func exampleSQL(t *testing.T, name string) string {
	t.Helper()
	for _, e := range Examples() {
		if e.Name == name {
			return e.SQL
		}
	}
	t.Fatalf("no example is called %s", name)
	return ""
}

// recordCompiled is of a job that torch.compile has compiled something for.
func recordCompiled(t testing.TB, dir string) string {
	t.Helper()
	d := begin(t, dir)
	fused := &event.Call{Layer: "op", Category: "fused", Name: "cpp_fused_add_gelu_0"}
	stage := &event.Call{Layer: "scope", Category: "compile", Name: "entire_forward_compile"}
	err := errors.Join(d.Write(&event.Batch{Spans: []event.Span{
		{ID: 1, StartNS: start, DurationNS: 10, PID: 100, TID: 100, Call: stage, SequenceNumber: -1, Weight: 1},
		{ID: 2, StartNS: start + 20, DurationNS: 500, PID: 100, TID: 100, Call: fused, SequenceNumber: -1, Weight: 2,
			Detail: &event.Detail{FusedOperators: `["aten::add","aten::gelu"]`}},
		{ID: 3, StartNS: start + 20, DurationNS: 500, PID: 100, TID: 100, Call: fused, SequenceNumber: -1, Weight: 2},
	}}), d.Close())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
