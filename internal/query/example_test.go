package query

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func TestExamplesRunOnARecordingAndOnAnEmptyDataset(t *testing.T) {
	full := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	empty := open(t, begin(t, filepath.Join(t.TempDir(), "d")).Dir())
	waiting := open(t, recordWaits(t, filepath.Join(t.TempDir(), "d")))
	compiled := open(t, recordCompiled(t, filepath.Join(t.TempDir(), "d")))
	reading := open(t, recordIO(t, filepath.Join(t.TempDir(), "d")))
	for _, e := range Examples() {
		if strings.HasPrefix(e.Name, "io") {
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
		d.Spans([]event.Span{
			{ID: 1, StartNS: start, DurationNS: 10, PID: 100, TID: 100, Call: call("issue", "gloo::allreduce"), SequenceNumber: 3, Weight: 1, Detail: detail},
			{ID: 2, StartNS: start + 20, DurationNS: 500, PID: 100, TID: 100, Call: call("wait", "Work::wait"), SequenceNumber: 3, Weight: 1, Detail: detail},
		}),
		d.OpenCalls(event.OpenCalls{SeenNS: start + 2e9,
			Calls:         []event.OpenCall{{StartNS: start + 1e9, PID: 100, TID: 100, Call: call("wait", "Work::wait"), SpanID: 4, Number: &number}},
			Communicators: []event.Communicator{{PID: 100, ID: &id, Handle: 9, Runtime: "gloo", Rank: &rank, Ranks: &ranks, IssuedNumber: &number}}}),
		d.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// recordIO is of a training job that reads a file in each of two steps.
func recordIO(t testing.TB, dir string) string {
	t.Helper()
	d := begin(t, dir)
	pass := &event.Call{Layer: "autograd", Category: "backward", Name: "Engine::execute"}
	err := errors.Join(
		d.Spans([]event.Span{
			{ID: 1, StartNS: start, DurationNS: 10, PID: 100, TID: 100, Call: pass, SequenceNumber: -1, Weight: 1},
			{ID: 2, StartNS: start + 1e9, DurationNS: 10, PID: 100, TID: 100, Call: pass, SequenceNumber: -1, Weight: 1},
		}),
		d.IO([]event.IO{
			{TSNS: start + 1e8, EndNS: start + 2e8, PID: 101, TID: 101, Operation: event.IORead, Kind: event.IOFile, FileSystem: "nfs4", Mount: "/data", Calls: 2, Bytes: 4096, DurationNS: 1e7},
			{TSNS: start + 11e8, EndNS: start + 12e8, PID: 101, TID: 101, Operation: event.IORead, Kind: event.IOFile, FileSystem: "nfs4", Mount: "/data", Calls: 1, Bytes: 100, DurationNS: 1e6},
		}),
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
	err := errors.Join(d.Spans([]event.Span{
		{ID: 1, StartNS: start, DurationNS: 10, PID: 100, TID: 100, Call: stage, SequenceNumber: -1, Weight: 1},
		{ID: 2, StartNS: start + 20, DurationNS: 500, PID: 100, TID: 100, Call: fused, SequenceNumber: -1, Weight: 2,
			Detail: &event.Detail{FusedOperators: `["aten::add","aten::gelu"]`}},
		{ID: 3, StartNS: start + 20, DurationNS: 500, PID: 100, TID: 100, Call: fused, SequenceNumber: -1, Weight: 2},
	}), d.Close())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
