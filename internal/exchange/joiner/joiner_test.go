package joiner

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// node is one host's part of a job: a rank, whose process has the same number on each host.
type node struct {
	session, host, boot string
	rank, world         int32
	job                 string
	group               int64 // 0: no group of ranks was seen
	ahead               int64 // of its clock
	seed                uint64
	id                  int64 // of its process
}

const (
	began    = int64(1_800_000_000_000_000_000)
	stepTime = int64(20_000_000)
	stepsOf  = 30
)

// record writes what was recorded on the node: steps of 20 ms, each with an operator and an all-reduce, a
// sample and an allocation.
func (n node) record(t *testing.T) string {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), n.host), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(n.seed, 9))
	shared := rand.New(rand.NewPCG(77, 77))
	rank, world, group := n.rank, n.world, n.group
	ended := began + n.ahead + stepsOf*stepTime
	err = d.Session(event.Recording{ID: n.session, Host: n.host, BootID: n.boot, StartedNS: began + n.ahead - 1_000_000, ClockOffsetNS: began +
		n.ahead - 5_000_000_000,
		EndedNS: &ended, Level: "anchor"})
	p := event.Process{ID: n.id, PID: 4711, StartedNS: began + n.ahead - 500_000, Rank: &rank, WorldSize: &world}
	if n.job != "" {
		p.JobID = &n.job
	}
	if n.world == 0 {
		p.Rank, p.WorldSize = nil, nil
	}
	b := &event.Batch{Processes: []event.Process{p}, Threads: []event.Thread{{PID: 4711, TID: 4711}, {PID: 4711, TID: 4712}}}
	if group != 0 {
		ranks := int32(2)
		b.OpenCalls = []event.OpenCalls{{SeenNS: began + n.ahead, Communicators: []event.Communicator{{PID: 4711, ID: &group, Handle: 1,
			Runtime: "gloo", Name: "0", Rank: &rank, Ranks: &ranks}}}}
	}
	mark, mm := &event.Call{Layer: "scope", Name: "ProfilerStep#1"}, &event.Call{Layer: "op", Name: "aten::mm"}
	ask := &event.Call{Layer: "collective", Category: "issue", Runtime: "gloo", Name: "gloo::allreduce"}
	reduce := &event.Call{Layer: "collective", Category: "work", Runtime: "gloo", Name: "gloo::AsyncWork::execute"}
	id := int64(0)
	for i := range int64(stepsOf) {
		at := began + i*stepTime
		came := [2]int64{at + 8_000_000 + shared.Int64N(2_000_000), at + 8_000_000 + shared.Int64N(2_000_000)}
		done := max(came[0], came[1]) + 300_000
		add := func(at, took int64, tid int32, call *event.Call, parent int64, detail *event.Detail, number int64) int64 {
			id++
			b.Spans = append(b.Spans, event.Span{ID: id, ParentID: parent, StartNS: at + n.ahead, DurationNS: took, PID: 4711, TID: tid, Call: call,
				End: event.EndReturn, Weight: 1, SequenceNumber: number, Detail: detail})
			return id
		}
		step := add(at, stepTime, 4711, mark, 0, nil, -1)
		op := add(at+1_000_000, 5_000_000, 4711, mm, step, nil, -1)
		add(came[rank%2]-50_000, 20_000, 4711, ask, step, &event.Detail{Communicator: &group}, i)
		add(came[rank%2], done+r.Int64N(60_000)-came[rank%2], 4712, reduce, 0, &event.Detail{Communicator: &group}, i)
		stack := int64(42)
		b.Samples = append(b.Samples, event.Sample{TSNS: at + 2_000_000 + n.ahead, PID: 4711, TID: 4711, State: "on_cpu", WeightNS: 1e6,
			SpanID: op, StackID: &stack})
		size := int64(64)
		b.Memory = append(b.Memory, event.Memory{TSNS: at + 2_000_000 + n.ahead, PID: 4711, TID: 4711, Space: "host", Level: "allocator",
			Action:  "alloc",
			Address: id, Bytes: &size, SpanID: op, Weight: 1})
	}
	b.Stacks = []event.Stack{{ID: 42, Folded: "main;f", Status: event.StackComplete, Frames: []event.Frame{{Kind: "python", Function: "f",
		File: "train.py", Line: 7, Offset: -1}}}}
	if group == 0 {
		for i := range b.Spans {
			b.Spans[i].Detail = nil
		}
	}
	if err = errors.Join(err, d.Write(b), d.Close()); err != nil {
		t.Fatal(err)
	}
	return d.Dir()
}

func pairOfNodes() (a, b node) {
	a = node{session: "s-a", host: "a", boot: "boot-a", rank: 0, world: 2, job: "j", group: 99, seed: 1, id: 1001}
	b = node{session: "s-b", host: "b", boot: "boot-b", rank: 1, world: 2, job: "j", group: 99, ahead: 3_217_000_000, seed: 2, id: 1002}
	return a, b
}

func joined(t *testing.T, datasets ...string) (*dataset.DB, *Summary) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "joined")
	summary, err := Join(context.Background(), datasets, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, summary
}

func number(t *testing.T, db *dataset.DB, sql string) (n int64) {
	t.Helper()
	if err := db.Row(t.Context(), "SELECT ("+sql+")::BIGINT", nil, &n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func TestTwoHostsBecomeOneDatasetOnOneClock(t *testing.T) {
	a, b := pairOfNodes()
	db, summary := joined(t, b.record(t), a.record(t)) // the rank says which is the first
	if len(db.Warnings()) > 0 || len(summary.Warnings) > 0 || summary.Ranks != 2 {
		t.Errorf("warnings %v and %v, %d ranks", db.Warnings(), summary.Warnings, summary.Ranks)
	}
	clock := summary.Clocks[1]
	if clock.Session != "s-b" || clock.Method != Met || clock.Collectives != stepsOf {
		t.Fatalf("clock %+v", clock)
	}
	if wrong := clock.Ahead - b.ahead; max(wrong, -wrong) > clock.Error || clock.Error > 1_000_000 {
		t.Errorf("the clock is found %d ns wrong, and the stated error is %d", wrong, clock.Error)
	}
	for sql, want := range map[string]int64{
		"SELECT count(*) FROM session": 2, "SELECT count(*) FROM process": 2, "SELECT count(DISTINCT pid) FROM process": 2,
		"SELECT count(*) FROM span": 8 * stepsOf, "SELECT count(DISTINCT span_id) FROM span": 8 * stepsOf,
		"SELECT count(*) FROM span JOIN span p ON span.parent_id = p.span_id AND span.pid = p.pid": 4 * stepsOf,
		"SELECT count(*) FROM sample JOIN span USING (span_id) WHERE span.pid = sample.pid":        2 * stepsOf,
		"SELECT count(*) FROM memory JOIN span USING (span_id) WHERE span.pid = memory.pid":        2 * stepsOf,
		"SELECT count(*) FROM stack WHERE frames[1].function = 'f' AND frames[1].line = 7":         2,
		"SELECT max(pid) FROM process": 4711 + 1<<22, "SELECT count(*) FROM sample WHERE pid = tid": 2 * stepsOf,
		"SELECT error_ns FROM clock WHERE session_id = 's-b'": clock.Error,
		// All ranks leave an all-reduce at about one time, by one clock.
		"SELECT count(*) FROM (SELECT max(ts_ns + duration_ns) - min(ts_ns + duration_ns) AS apart FROM span WHERE category = 'work' GROUP BY " +
			"sequence_number) WHERE apart > 1000000": 0,
		"SELECT max(started_ns) - min(started_ns) > 1000000 FROM session":           0,
		"SELECT max(clock_offset_ns) - min(clock_offset_ns) > 1000000 FROM session": 0,
	} {
		if got := number(t, db, sql); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
	threads, err := timeline.Steps(t.Context(), db)
	if err != nil || len(threads) != 2 {
		t.Fatalf("%d processes have steps, %v", len(threads), err)
	}
	for _, thread := range threads {
		if thread.Rank == nil || len(thread.Steps) != stepsOf || thread.Steps[9].Period != stepTime {
			t.Errorf("rank %v: %d steps, one of %d ns", thread.Rank, len(thread.Steps), thread.Steps[9].Period)
		}
	}
}

// What one kernel's clock says is exact: of two containers' recordings on one host too.
func TestOneKernelHasOneClock(t *testing.T) {
	a, b := pairOfNodes()
	b.boot = a.boot
	_, summary := joined(t, a.record(t), b.record(t))
	if c := summary.Clocks[1]; c.Method != Kernel || c.Ahead != b.ahead || c.Error != 0 {
		t.Errorf("%+v", c)
	}
}

func TestWhatIsNotOneJobIsRefused(t *testing.T) {
	for why, change := range map[string]func(a, b *node){
		"rank 0 is in both":    func(_, b *node) { b.rank = 0 },
		"has 2 ranks":          func(_, b *node) { b.world = 4 },
		"of a job of 2 ranks":  func(_, b *node) { b.rank = 5 },
		"process 4711":         func(a, b *node) { b.id = a.id },
		"is of job \"j\"":      func(_, b *node) { b.job, b.group = "k", 100 },
		"have no group":        func(a, b *node) { a.world, b.world, a.job, a.group = 0, 0, "", 0 },
		"two runs of the job":  func(_, b *node) { b.ahead = 0 }, // see below
		"there is nothing to":  nil,
		"was named twice":      nil,
		"there is no dataset ": nil,
	} {
		a, b := pairOfNodes()
		if change != nil {
			change(&a, &b)
		}
		first, second := a.record(t), b.record(t)
		given := []string{first, second}
		switch why {
		case "two runs of the job":
			run := b
			run.session, run.ahead = "other", 500_000_000
			given[1] = run.late(t)
		case "there is nothing to":
			given = given[:1]
		case "was named twice":
			given[1] = first
		case "there is no dataset ":
			given[1] += "-not"
		}
		dir := filepath.Join(t.TempDir(), "joined")
		_, err := Join(context.Background(), given, dir, Options{})
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: something is left of what was refused", why)
		}
	}
}

// late is a recording of another run of the job, whose steps were longer.
func (n node) late(t *testing.T) string {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "late"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rank, world, ranks := n.rank, n.world, int32(2)
	err = d.Session(event.Recording{ID: n.session, Host: n.host, BootID: n.boot, StartedNS: began})
	b := &event.Batch{Processes: []event.Process{{ID: n.id, PID: 4711, StartedNS: began, Rank: &rank, WorldSize: &world}},
		OpenCalls: []event.OpenCalls{{SeenNS: began, Communicators: []event.Communicator{{PID: 4711, ID: &n.group, Handle: 1, Runtime: "gloo",
			Name: "0", Rank: &rank, Ranks: &ranks}}}}}
	for i := range int64(stepsOf) {
		b.Spans = append(b.Spans, event.Span{ID: i + 1, StartNS: began + n.ahead + i*stepTime*11/10, DurationNS: 400_000, PID: 4711, TID: 4712,
			SequenceNumber: i, Weight: 1,
			End: event.EndReturn, Call: &event.Call{Layer: "collective", Category: "work", Runtime: "gloo", Name: "gloo::allreduce"},
			Detail: &event.Detail{Communicator: &n.group}})
	}
	if err = errors.Join(err, d.Write(b), d.Close()); err != nil {
		t.Fatal(err)
	}
	return d.Dir()
}

func TestAClockThatNothingTellsIsSaidToBeUnknown(t *testing.T) {
	a, b := pairOfNodes()
	a.group, b.group, b.world, a.world = 0, 0, 3, 3
	db, summary := joined(t, a.record(t), b.record(t))
	if c := summary.Clocks[1]; c.Method != Unknown || c.Ahead != 0 {
		t.Errorf("%+v", c)
	}
	text := strings.Join(summary.Warnings, "\n")
	for _, want := range []string{"do not compare times", "1 of the job's 3 ranks", ": 2"} {
		if !strings.Contains(text, want) {
			t.Errorf("warnings %q do not say %q", text, want)
		}
	}
	if n := number(t, db, "SELECT count(*) FROM clock WHERE method = 'unknown' AND ahead_ns IS NULL"); n != 1 {
		t.Errorf("%d clocks are unknown", n)
	}
}

// Imports of files of one name have one session's name, and one process's number.
func TestImportsOfOneNameAreTwoProcesses(t *testing.T) {
	var given []string
	for rank := range 2 {
		text := fmt.Sprintf(`{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": %d, "world_size": 2}, "traceEvents": [`, rank)
		for i := range 10 {
			text += fmt.Sprintf(`{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 100, "tid": 100, "ts": %d, "dur": 4430},
				{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 100, "ts": %d, "dur": 2000},`, i, 1_000_000+i*4430,
				1_000_100+i*4430)
		}
		file, dir := filepath.Join(t.TempDir(), "trace.json"), filepath.Join(t.TempDir(), "d")
		if err := os.WriteFile(file, []byte(text[:len(text)-1]+"]}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := importer.Import(t.Context(), []string{file}, dir, importer.Options{}); err != nil {
			t.Fatal(err)
		}
		given = append(given, dir)
	}
	db, _ := joined(t, given...)
	threads, err := timeline.Steps(t.Context(), db)
	if err != nil || len(threads) != 2 {
		t.Fatalf("%d processes have steps, %v", len(threads), err)
	}
	for _, thread := range threads {
		if len(thread.Steps) != 10 || thread.Steps[5].Period != 4_430_000 {
			t.Errorf("%d steps, one of %d ns", len(thread.Steps), thread.Steps[5].Period)
		}
	}
	ids := map[any]bool{}
	if err := db.Each(t.Context(), "SELECT process_id FROM process UNION ALL SELECT session_id FROM session", func(v []driver.Value) error {
		ids[v[0]] = true
		return nil
	}); err != nil || len(ids) != 4 {
		t.Errorf("%d names of two processes and two sessions, %v", len(ids), err)
	}
}

// A joined file keeps what readers find columns and recordings by.
func TestJoinedFilesSayWhatTheyAre(t *testing.T) {
	a, b := pairOfNodes()
	db, _ := joined(t, a.record(t), b.record(t))
	sessions := map[string]bool{}
	for _, path := range db.Files("span") {
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		info, err := in.Stat()
		if err != nil {
			t.Fatal(err)
		}
		f, err := parquet.OpenFile(in, info.Size())
		if err != nil {
			t.Fatal(err)
		}
		session, _ := f.Lookup(output.MetadataSession)
		sessions[session] = true
		if table, _ := f.Lookup(output.MetadataTable); table != "span" {
			t.Errorf("%s is of table %q", path, table)
		}
		for _, table := range output.Schema() {
			if table.Name != "span" {
				continue
			}
			for _, c := range table.Columns {
				if column := f.Root().Column(c.Name); column == nil || column.ID() != int(c.FieldID) {
					t.Errorf("%s: column %s has lost its field id", path, c.Name)
				}
			}
		}
		if sorted := f.Metadata().RowGroups[0].SortingColumns; len(sorted) != 1 {
			t.Errorf("%s does not say that it is sorted", path)
		}
	}
	if !sessions["s-a"] || !sessions["s-b"] {
		t.Errorf("files of sessions %v", sessions)
	}
}
