package dataset

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// The rows are those of a job that calls a compiled f three times, with other types each
// time but the last, and in which the graph breaks at line 8.
func TestCompilationsAreToldByWhatCausedThem(t *testing.T) {
	dir := t.TempDir()
	d, err := output.Create(dir, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const start = 1_700_000_000_000_000_000
	python := func(function, file string, line int32) event.Frame {
		return event.Frame{Kind: "python", Function: function, File: file, Line: line, Offset: -1}
	}
	dynamo := python("_compile", "/venv/torch/_dynamo/convert_frame.py", 2014)
	manager := python("__enter__", "/usr/lib/python3.11/contextlib.py", 137)
	stacks := map[int64][]event.Frame{
		1: {manager, dynamo, python("<module>", "/job/train.py", 14)},
		2: {dynamo, python("f", "/job/train.py", 8), python("<module>", "/job/train.py", 14)},
		3: {dynamo, python("<module>", "/job/train.py", 15)},
		4: {dynamo, python("torch_dynamo_resume_in_f_at_8", "/job/train.py", 9), python("<module>", "/job/train.py", 15)},
		5: {python("torch_dynamo_resume_in_f_at_8", "/job/train.py", 9), python("f", "/job/train.py", 8)},
		6: {python("f", "/other/train.py", 8)}, // where no graph broke
	}
	err = d.Session(event.Recording{ID: "compiled", StartedNS: start})
	for id, frames := range stacks {
		folded := ""
		for _, f := range frames {
			folded = f.Function + ";" + folded
		}
		err = errors.Join(err,
			d.Write(&event.Batch{Stacks: []event.Stack{{ID: id, Frames: frames, Folded: folded, Status: event.StackComplete}}}))
	}
	var rows []event.Span
	add := func(tid int32, name string, at, took, stack, handle int64) {
		s := event.Span{ID: int64(len(rows) + 1), StartNS: start + at, DurationNS: took, PID: 7, TID: tid, PythonStackID: stack,
			Call: &event.Call{Layer: "scope", Category: "compile", Name: name}, Weight: 1, SequenceNumber: -1}
		if handle != 0 {
			s.MakeDetail().Handle = &handle
		}
		rows = append(rows, s)
	}
	const forward, backward, kept = "entire_forward_compile", "entire_backward_compile", "create_cache_entry"
	add(1, forward, 0, 100, 1, 0)
	add(1, "dynamo_compile", 1, 98, 1, 0)
	add(1, kept, 101, 1, 1, 0xf)
	add(1, forward, 110, 50, 2, 0)
	add(2, forward, 120, 5, 6, 0)     // another thread's, meanwhile
	add(1, kept, 161, 1, 2, 0xa)      // what is behind the break
	add(1, forward, 200, 10, 3, 0)    // failed: nothing is kept
	add(1, forward, 300, 70, 3, 0)    // f again
	add(1, kept, 371, 1, 3, 0xf)      //
	add(1, backward, 400, 30, 1, 0)   //
	add(1, forward, 500, -1, 4, 0)    // under way
	add(2, kept, 600, 1, 6, 0x1f)     //
	add(1, "something", 700, 1, 0, 0) //
	if err = errors.Join(err, d.Write(&event.Batch{Spans: rows}), d.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	found, err := db.Query(context.Background(), `SELECT format('{} {} {} {} {}:{} {}', kind, tid, coalesce(duration_ns, -1), function,
		file, line, coalesce(code, 0)) FROM compilation ORDER BY ts_ns`)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	var got []string
	for found.Next() {
		var row string
		if err := found.Scan(&row); err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"first 1 100 <module> /job/train.py:14 15",
		"graph_break 1 50 f /job/train.py:8 10",
		"first 2 5 f /other/train.py:8 31",
		"first 1 10 <module> /job/train.py:15 0",
		"recompilation 1 70 <module> /job/train.py:15 15",
		"backward 1 30 <module> /job/train.py:14 0",
		"first 1 -1 f /job/train.py:9 0",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
