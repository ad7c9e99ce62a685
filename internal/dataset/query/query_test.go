package query

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/counter"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// begin starts a dataset in dir.
func begin(t testing.TB, dir string) *output.Dataset {
	t.Helper()
	d, err := output.Create(dir, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if err := errors.Join(d.Session(event.Recording{ID: "s1", ToolVersion: "0", StartedNS: 1}), d.Rotate()); err != nil {
		t.Fatal(err)
	}
	return d
}

const start = 1_790_000_000_123_456_789

// record writes a small recording: two forward operators, of which one
// contains the other and threw, one backward node, a launch, allocations.
func record(t testing.TB, dir string) string {
	t.Helper()
	d := begin(t, dir)
	addmm := &event.Call{Layer: "op", Category: "forward", Name: "aten::addmm"}
	mm := &event.Call{Layer: "op", Category: "forward", Name: "aten::mm"}
	node := &event.Call{Layer: "autograd", Category: "backward", Name: "AddmmBackward0"}
	launch := &event.Call{Layer: "runtime", Category: "launch", Runtime: "opencl", Name: "kernel<int, 'x'>"}
	zero, zero32, bytes := int64(0), int32(0), int64(4096)
	rank := int32(0)
	stack, holds, waker := int64(77), true, int32(100)
	err := errors.Join(
		d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 100, StartedNS: 1, Rank: &rank, ContainerID: new(string)}}}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 2, PID: 101, StartedNS: 1}}}),
		d.Write(&event.Batch{Threads: []event.Thread{{PID: 100, TID: 100, Name: "python"}}}),
		d.Write(&event.Batch{Libraries: []event.Library{{PID: 100, Path: "/usr/lib/libtorch_cpu.so", StartAddress: 1 << 46, Deleted: true}}}),
		d.Write(&event.Batch{Spans: []event.Span{
			{ID: 2, ParentID: 1, StartNS: start + 10, DurationNS: 1_000_000, PID: 100, TID: 100, Call: mm, End: event.EndExitSite,
				Status: event.StatusThrew, Weight: 2, SequenceNumber: -1},
			{ID: 1, StartNS: start, DurationNS: 3_000_000, PID: 100, TID: 100, Call: addmm, End: event.EndExitSite, Status: event.StatusOK,
				Weight: 2, SequenceNumber: 0},
			{ID: 3, StartNS: start + 20, DurationNS: -1, PID: 100, TID: 100, Call: launch, End: event.EndUnfinished, Weight: 1, SequenceNumber: -1,
				Detail: &event.Detail{Stream: &zero, DeviceID: &zero32, Grid: &[3]int64{0, 1, 2}}},
			{ID: 4, StartNS: start + 30, DurationNS: 5_000_000, PID: 100, TID: 101, Call: node, End: event.EndReturn, Weight: 1, SequenceNumber: 0},
		}}),
		d.Write(&event.Batch{Stacks: []event.Stack{
			{ID: 77, Folded: "main;step", Status: event.StackComplete, Frames: []event.Frame{
				{Kind: "python", Function: "step", File: "train.py", Line: 12, Offset: 40},
				{Kind: "native", Module: "libc.so.6", BuildID: "ab", Offset: 0},
			}},
			{ID: 78, Status: "native_no_table"},
		}}),
		d.Write(&event.Batch{Samples: []event.Sample{
			{TSNS: start, PID: 100, TID: 100, State: event.OnCPU, WeightNS: 10_101_010, StackID: &stack, SpanID: 1, HoldsGIL: &holds,
				InGC: new(bool)},
			{TSNS: start + 5, PID: 100, TID: 101, CPU: 1, State: event.OffCPU, Cause: event.CauseSyscall, WeightNS: 5_000_000, Syscall: "futex",
				WakerTID: &waker},
		}}),
		d.Write(&event.Batch{Counters: []event.Counter{
			{TSNS: start, PeriodNS: &bytes, Source: "cpu", Device: "cpu0", Name: "cpu_user", Kind: counter.Delta, Unit: counter.Nanoseconds,
				Value: 2048},
			{TSNS: start, Source: "nvidia", DeviceID: &zero32, Device: "GPU-1", Name: "gpu_power", Kind: counter.Gauge, Unit: counter.Watts,
				Value: 300.5},
		}}),
		d.Write(&event.Batch{Flows: []event.Flow{{TSNS: start + 30, FromSpanID: 1, ToSpanID: 4, Kind: "forward_backward",
			Method: "sequence_number"}}}),
		d.Write(&event.Batch{Memory: []event.Memory{
			{TSNS: start + 1, PID: 100, TID: 100, Space: "host", Level: "allocator", Action: "alloc", Address: 64, Bytes: &bytes, SpanID: 1,
				Weight: 2},
			{TSNS: start + 2, PID: 100, TID: 100, Space: "host", Level: "allocator", Action: "alloc", Address: 8192, Bytes: &bytes, Weight: 1},
			{TSNS: start + 3, PID: 100, TID: 100, Space: "host", Level: "allocator", Action: "free", Address: 64, Bytes: &bytes, Weight: 1},
		}}),
		d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: start, Kind: "lost", Source: "ring_full", Count: 7,
			Detail: "the ring buffer was full: raise --buffer-size"}}}),
		d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: start, Kind: "slice", Source: "detail", Count: 9,
			Detail: "9 probes recorded 1 of 2 ms"}}}),
		d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: start, Kind: "incomplete", Source: "foreign_hit", Count: 5, Detail: "5"}}}),
		d.Write(&event.Batch{Probes: []event.Probe{{PID: 100, Library: "libtorch_cpu.so",
			Symbol: "_ZN2at4_ops38_scaled_dot_product_flash_attention_xyz4callEv", Name: "aten::_scaled_dot_product_flash_attention_xyz",
			Layer: "op", Kind: "entry", Site: &zero, SiteCost: "nop5", Attached: true, Hits: 9, Thinned: 70, Lost: 2}}}),
		d.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t testing.TB, dir string) *DB {
	t.Helper()
	db, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func run(t testing.TB, db *DB, query string) [][]any {
	t.Helper()
	r, err := db.Run(context.Background(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return r.Rows
}

// one is the result of a query in the driver's own words.
func one(t testing.TB, db *DB, query string) string {
	t.Helper()
	rows := run(t, db, query)
	if len(rows) != 1 {
		t.Fatalf("%s: %d rows", query, len(rows))
	}
	return words(rows[0])
}

// words joins values with spaces.
func words(values []any) string {
	return strings.TrimSuffix(fmt.Sprintln(values...), "\n")
}

func TestEveryTableHasAViewWithTheColumnsOfTheSchema(t *testing.T) {
	for name, dir := range map[string]string{
		"a recording":       record(t, filepath.Join(t.TempDir(), "d")),
		"an empty one":      begin(t, filepath.Join(t.TempDir(), "d")).Dir(),
		"one without files": withoutFiles(t),
	} {
		db := open(t, dir)
		for _, table := range output.Schema() {
			var got, want []string
			for _, row := range run(t, db, "SELECT column_name, column_type FROM (DESCRIBE "+table.Name+")") {
				got = append(got, words(row))
			}
			for _, c := range table.Columns {
				want = append(want, c.Name+" "+string(c.Type))
				if c.Name == "ts_ns" {
					want = append(want, "ts TIMESTAMP_NS")
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: view %s has %v, want %v", name, table.Name, got, want)
			}
		}
	}
}

// withoutFiles is a dataset of which only the session is left.
func withoutFiles(t *testing.T) string {
	dir := record(t, filepath.Join(t.TempDir(), "d"))
	for _, table := range output.Schema() {
		if table.Name != "session" {
			if err := os.RemoveAll(filepath.Join(dir, table.Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func TestDuckDBReadsZerosAsZerosAndAbsentAsNULL(t *testing.T) {
	db := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	for query, want := range map[string]string{
		"SELECT rank = 0 AND container_id = '' AND cgroup IS NULL AND world_size IS NULL FROM process " +
			"WHERE pid = 100": "true",
		"SELECT rank IS NULL AND container_id IS NULL FROM process " +
			"WHERE pid = 101": "true",
		"SELECT stream = 0 AND device_id = 0 AND grid_x = 0 AND grid_z = 2 AND block_x IS NULL AND duration_ns IS NULL FROM span WHERE " +
			"span_id = 3": "true",
		"SELECT stream IS NULL AND grid_x IS NULL AND parent_id IS NULL AND sequence_number = 0 FROM span WHERE span_id = 1": "true",
		"SELECT sequence_number IS NULL AND parent_id = 1 FROM span WHERE span_id = 2":                                       "true",
		"SELECT site_offset = 0 AND attached AND reason IS NULL FROM probe":                                                  "true",
		"SELECT deleted AND build_id IS NULL FROM library":                                                                   "true",
		"SELECT count(*) FROM memory WHERE span_id IS NULL":                                                                  "2",
		"SELECT ended_ns IS NULL AND schema_version = '" + output.SchemaVersion + "' FROM session":                           "true",
		"SELECT ts::VARCHAR FROM span WHERE span_id = 1":                                                                     "2026-09-21 14:13:20.123456789",
		"SELECT count(*) FROM span WHERE ts >= '2026-09-21' AND ts < '2026-09-22' AND ts_ns > " + fmt.Sprint(start):          "3",
		"SELECT string_agg(name, ' ' ORDER BY ts_ns) FROM span WHERE " +
			"layer = 'op'": "aten::addmm aten::mm",
	} {
		if got := one(t, db, query); got != want {
			t.Errorf("%s = %s, want %s", query, got, want)
		}
	}
}

func TestMoreThanOneRowGroupComesBackWhole(t *testing.T) {
	d := begin(t, filepath.Join(t.TempDir(), "d"))
	const n = output.RowGroupRows + 1000
	call := &event.Call{Layer: "op", Name: "x"}
	spans := make([]event.Span, n)
	for i := range spans {
		spans[i] = event.Span{ID: int64(i + 1), ParentID: int64(i % 3), StartNS: start + int64((i*7919)%n), DurationNS: int64(i % 977), PID: 1,
			TID: int32(i % 5), Call: call, Weight: 1 + float64(i%2)/2, SequenceNumber: int64(i%4) - 1}
	}
	if err := errors.Join(d.Write(&event.Batch{Spans: spans}), d.Close()); err != nil {
		t.Fatal(err)
	}
	db := open(t, d.Dir())
	query := `SELECT count(*), count(DISTINCT span_id), sum(span_id), count(parent_id), sum(duration_ns), sum(tid), sum(weight),
		sum(sequence_number), max(ts_ns) FROM span`
	var parents, durations, tids, weights, sequences int64
	for i, s := range spans {
		if s.ParentID != 0 {
			parents++
		}
		durations += s.DurationNS
		tids += int64(s.TID)
		weights += int64(2 + i%2)
		sequences += max(s.SequenceNumber, 0)
	}
	want := fmt.Sprint(n, n, int64(n)*(n+1)/2, parents, durations, tids, float64(weights)/2, sequences, int64(start+n-1))
	got := run(t, db, query)[0]
	if fmt.Sprint(got...) != want {
		t.Errorf("got %v, want %v", fmt.Sprint(got...), want)
	}
}

func TestNothingButOneSelectIsRun(t *testing.T) {
	dir := record(t, filepath.Join(t.TempDir(), "d"))
	db := open(t, dir)
	before := listing(t, dir)
	evil := filepath.Join(dir, "evil")
	copyOut := "COPY (SELECT 1) TO '" + evil + "'"
	for _, query := range []string{
		"", ";", "-- nothing", "SELECT 1; SELECT 2", copyOut, copyOut + "; SELECT 1", "SELECT 1; " + copyOut,
		"EXPLAIN ANALYZE " + copyOut, "explain /* c */ analyze " + copyOut, "EXPLAIN (ANALYZE) " + copyOut,
		"EXPLAIN (ANALYZE, FORMAT JSON) " + copyOut, "EXPLAIN ANALYZE /* /* */ SELECT 1 --*/ " + copyOut,
		"EXPLAIN ANALYZE SELECT 1; " + copyOut, "EXPLAIN EXPLAIN ANALYZE " + copyOut,
		"COPY span FROM '/etc/passwd'", "EXPORT DATABASE '" + evil + "'", "IMPORT DATABASE '" + evil + "'",
		"ATTACH '" + evil + "' AS evil", "INSTALL httpfs", "LOAD httpfs", "CREATE TABLE t AS SELECT 1", "DROP VIEW span",
		"INSERT INTO span VALUES (1)", "UPDATE span SET pid = 1", "DELETE FROM span", "SET threads = 1", "RESET threads",
		"SET enable_external_access = true", "PRAGMA enable_profiling", "CALL pragma_version()", "CHECKPOINT", "VACUUM", "BEGIN",
		"PREPARE p AS " + copyOut, "CREATE MACRO m() AS 1", "USE memory",
	} {
		if _, err := db.Run(context.Background(), query); !errors.Is(err, ErrNotSelect) && !parseError(err) {
			t.Errorf("%q: %v", query, err)
		}
	}
	if after := listing(t, dir); !reflect.DeepEqual(before, after) {
		t.Errorf("the dataset changed from %v to %v", before, after)
	}
}

func parseError(err error) bool { return err != nil && strings.Contains(err.Error(), "does not parse") }

func TestASelectCannotLeaveTheDataset(t *testing.T) {
	dir := record(t, filepath.Join(t.TempDir(), "d"))
	db := open(t, dir)
	before := listing(t, filepath.Dir(dir))
	for _, query := range []string{
		"SELECT * FROM read_text('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "SELECT * FROM read_csv('/etc/passwd')",
		"SELECT * FROM glob('/etc/*')", "SELECT * FROM read_text('" + dir + "/../outside')", "SELECT getenv('HOME')",
		"SELECT * FROM read_parquet('https://example.com/a.parquet')",
		"SELECT * FROM enable_logging('QueryLog', storage = 'file', storage_path = '" + dir + "/../log')",
		"SELECT * FROM query('COPY (SELECT 1) TO ''" + dir + "/evil''')",
		"FROM query('FROM enable_logging(''QueryLog'')')", "FROM range(1), (SELECT * FROM enable_profiling())", "FROM arrow_scan(1, 2, 3)",
		"WITH c AS (FROM checkpoint()) FROM c", "EXPLAIN ANALYZE FROM truncate_duckdb_logs()",
		"SELECT * FROM sniff_csv('/etc/passwd')", "SELECT * FROM read_blob('/etc/passwd')",
	} {
		if rows, err := db.Run(context.Background(), query); err == nil {
			t.Errorf("%s returned %v", query, rows)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than a line: %v", query, err)
		}
	}
	if after := listing(t, filepath.Dir(dir)); !reflect.DeepEqual(before, after) {
		t.Errorf("files changed from %v to %v", before, after)
	}
}

// listing is every file below dir with its size.
func listing(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	sizes := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && !entry.IsDir() {
			sizes[path] = info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sizes
}

func TestSelectsOfAllSortsRun(t *testing.T) {
	db := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	for _, query := range []string{
		"SELECT 1;", "-- c\nSELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a", "FROM span", "TABLE span", "VALUES (1)",
		"DESCRIBE span", "SHOW TABLES", "SUMMARIZE span", "EXPLAIN SELECT * FROM span", "explain analyze SELECT 1",
		"EXPLAIN (FORMAT JSON) SELECT 1", "EXPLAIN (SELECT 1)", "PIVOT span ON layer IN ('op') USING count(*)",
		"SELECT {'a': 1, 'b': [1, 2]}, MAP {'k': 1}, INTERVAL 1 DAY, 1.5::DECIMAL(4, 2), 'x'::BLOB, uuid(), DATE '2026-01-01', TIME " +
			"'01:02:03', NULL, 'nan'::DOUBLE",
	} {
		if len(run(t, db, query)) == 0 {
			t.Errorf("%s: no rows", query)
		}
	}
}

func TestExamplesCountWithWeights(t *testing.T) {
	db := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	for name, want := range map[string]string{
		"operators":   "[aten::addmm op 2 6 4 3000 3000]",
		"allocations": "[aten::addmm host allocator 2 0.008 4096]",
		"backward":    "[AddmmBackward0 aten::addmm 1 6 5]",
		"losses":      "[7 ring_full the ring buffer was full:\nraise --buffer-size]",
	} {
		e, err := FindExample(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(run(t, db, e.SQL)[0]); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := one(t, db, "SELECT peak_bytes, bytes_at_the_end FROM ("+strings.TrimSuffix(strings.TrimSpace(mustExample(t, "memory-peak")),
		";")+")"); got != "8192 4096" {
		t.Errorf("memory-peak: %s", got)
	}
}

// A screen has 80 columns.
func TestTheExampleOfLossesIsOneScreenWideAndListsLossesAlone(t *testing.T) {
	db := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	var out strings.Builder
	if err := db.Write(t.Context(), &out, mustExample(t, "losses"), "table"); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if rows := run(t, db, mustExample(t, "losses")); len(rows) != 2 || !strings.HasPrefix(fmt.Sprint(rows[1]),
		"[2 aten::_scaled_dot_product_f…") {
		t.Errorf("losses are %v", rows)
	}
}

func mustExample(t *testing.T, name string) string {
	e, err := FindExample(name)
	if err != nil {
		t.Fatal(err)
	}
	return e.SQL
}

func TestWriteCSVIsReadBackByAnyReader(t *testing.T) {
	db := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	var out strings.Builder
	err := db.Write(context.Background(), &out, `SELECT NULL AS "n", '' AS "e", 'a,"b"' || chr(10) AS "q,x", 9007199254740993 AS i, [1,
		NULL] AS l`, "csv")
	if err != nil {
		t.Fatal(err)
	}
	if want := "n,e,\"q,x\",i,l\r\n,\"\",\"a,\"\"b\"\"\n\",9007199254740993,\"[1, null]\"\r\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll(); err != nil || len(rows) != 2 {
		t.Errorf("%v, %v", rows, err)
	}
}

func TestWriteJSONKeepsEveryDigitAndIsJSON(t *testing.T) {
	db := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	var out strings.Builder
	err := db.Write(context.Background(), &out, `SELECT 9007199254740993 AS i, sum(9223372036854775807) AS h, 'nan'::DOUBLE AS f,
		'-inf'::FLOAT AS g, 0.1::DOUBLE AS d,
		1e300 AS big, 'a<b>' AS s, {'x': 1, 'y': [NULL, 'z']} AS st, MAP {'k': 2} AS m, 1 AS i, true AS b, NULL AS n, make_timestamp_ns(1) AS t
		FROM range(2)`, "json")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"i": 9007199254740993`, `"h": 18446744073709551614`, `"f": "NaN"`, `"g": "-Inf"`, `"d": 0.1`,
		`"big": 1e+300`,
		`"s": "a<b>"`, `"st": {"x": 1, "y": [null, "z"]}`, `"m": {"k": 2}`, `"i_1": 1`, `"b": true`, `"n": null`,
		`"t": "1970-01-01 00:00:00.000000001"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
	var parsed []map[string]any
	if err := json.Unmarshal([]byte(out.String()), &parsed); err != nil || len(parsed) != 1 {
		t.Errorf("%v: %s", err, out.String())
	}
	out.Reset()
	if err := db.Write(context.Background(), &out, "SELECT 1 WHERE false", "json"); err != nil || out.String() != "[]\n" {
		t.Errorf("no rows: %q, %v", out.String(), err)
	}
}

func TestWriteTableAlignsNumbersAndShowsNULL(t *testing.T) {
	db := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	query := "SELECT * FROM (VALUES ('a', 5, NULL), ('b|c', 12345, 'x')) AS t(name, n, o)"
	for format, want := range map[string]string{
		"table": `
┌──────┬───────┬──────┐
│ name │     n │ o    │
├──────┼───────┼──────┤
│ a    │     5 │ NULL │
│ b|c  │ 12345 │ x    │
└──────┴───────┴──────┘
`,
		"markdown": `
| name | n | o |
|:--- | ---:|:--- |
| a | 5 | NULL |
| b\|c | 12345 | x |
`,
	} {
		var out strings.Builder
		if err := db.Write(context.Background(), &out, query, format); err != nil {
			t.Fatal(err)
		}
		if "\n"+out.String() != want {
			t.Errorf("%s:\n%s", format, out.String())
		}
	}
	if err := db.Write(context.Background(), nil, query, "xml"); err == nil {
		t.Error("xml accepted")
	}
}

func TestBadSQLIsOneSentence(t *testing.T) {
	db := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	for _, query := range []string{"SELEC 1", "SELECT nope FROM span", "SELECT * FROM nope", "SELECT 1 +", "SELECT 'a'::INTEGER"} {
		if _, err := db.Run(context.Background(), query); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestACancelledQueryStops(t *testing.T) {
	db := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := db.Run(ctx, "SELECT count(*) FROM range(1000000000000)"); err == nil {
		t.Error("it ran to its end")
	}
}

func TestFramesAreListsOfStructures(t *testing.T) {
	db := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	for query, want := range map[string]string{
		"SELECT frames[1].function || ':' || frames[1].line FROM stack WHERE stack_id = 77":                                       "step:12",
		"SELECT frames[2].function FROM stack WHERE stack_id = 77":                                                                "<nil>",
		"SELECT frames[2].offset FROM stack WHERE stack_id = 77":                                                                  "0",
		"SELECT len(frames) FROM stack WHERE stack_id = 78":                                                                       "0",
		"SELECT f.module FROM stack, unnest(frames) AS t(f) WHERE f.kind = 'native'":                                              "libc.so.6",
		"SELECT folded FROM sample JOIN stack USING (stack_id) WHERE holds_gil":                                                   "main;step",
		"SELECT count(*) FROM (DESCRIBE stack) WHERE column_name = 'frames' AND column_type = '" + string(output.FrameList) + "'": "1",
	} {
		if got := one(t, db, query); got != want {
			t.Errorf("%s = %s, want %s", query, got, want)
		}
	}
}
