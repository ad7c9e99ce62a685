package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testcache"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// foreignReaders is where scripts/readers.sh puts readers that are not ours.
func foreignReaders(t *testing.T) string {
	t.Helper()
	return testcache.Path(t, "dataset-readers/bin", "pyarrow, polars, DuckDB's shell and Spark are not installed: run `make readers`")
}

// given is what a table was given, value for value, by the columns' names.
type given map[string][]map[string]any

// give has a table take rows, and keeps what they are.
func give[T any](t *testing.T, g given, table *table[T], rows []T, write func([]T) error) {
	t.Helper()
	for i := range rows {
		row := map[string]any{}
		for _, c := range table.columns {
			row[c.Name] = nil
			if c.rare && !table.rare(&rows[i]) {
				continue
			}
			value, ok := c.value(&rows[i])
			if frames, list := value.([]event.Frame); list {
				row[c.Name] = framesOf(frames)
			} else if ok {
				row[c.Name] = value
			}
		}
		g[table.Name] = append(g[table.Name], row)
	}
	if err := write(rows); err != nil {
		t.Fatal(err)
	}
}

// framesOf are frames by the names of their members.
func framesOf(frames []event.Frame) (all []map[string]any) {
	all = []map[string]any{}
	for i := range frames {
		members := map[string]any{}
		for m, get := range frameGetters {
			var value any
			ok := false
			if get.ints != nil {
				value, ok = get.ints(&frames[i])
			} else {
				value, ok = get.texts(&frames[i])
			}
			if !ok {
				value = nil
			}
			members[FrameFields[m].Name] = value
		}
		all = append(all, members)
	}
	return all
}

// into writes rows as a table of a batch.
func into[T any](d *Dataset, table func(*event.Batch) *[]T) func([]T) error {
	return func(rows []T) error {
		var b event.Batch
		*table(&b) = rows
		return d.Write(&b)
	}
}

// extremes are numbers at which encodings go wrong.
var extremes = []int64{1, -1, 0, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, 1 << 40}

// fill gives every field below v a value, another in each row.
func fill(v reflect.Value, row int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), row)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), row+i)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), row+i)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+row%3, 1+row%3))
		for i := range v.Len() {
			fill(v.Index(i), row+i)
		}
	case reflect.Bool:
		v.SetBool(row%2 == 0)
	case reflect.Int32:
		v.SetInt(int64(int32(extremes[row%len(extremes)])))
	case reflect.Int64:
		v.SetInt(extremes[row%len(extremes)])
	case reflect.Uint8:
		v.SetUint(uint64(row % 2))
	case reflect.Float64:
		v.SetFloat(math.Ldexp(1.1, row%1000-500))
	case reflect.String:
		v.SetString([]string{"", "aten::add", "größer \"und\" \\ 演算子", "line\nbreak\tand\x01", strings.Repeat("long ", 300)}[row%5])
	}
}

// filled are rows with everything in them, and one with nothing; name gives each what
// tells it from the others.
func filled[T any](name func(row *T, n int)) []T {
	rows := make([]T, 9)
	for i := range rows {
		if i > 0 {
			fill(reflect.ValueOf(&rows[i]).Elem(), i)
		}
		name(&rows[i], i)
	}
	return rows
}

// everyValue writes a dataset with all that its tables can hold.
func everyValue(t *testing.T) (dir string, g given) {
	t.Helper()
	d := begin(t, Options{})
	g = given{}
	at := func(n int) int64 { return 1_700_000_000_000_000_000 + int64(n) }
	give(t, g, spanTable, filled(func(s *event.Span, n int) {
		s.ID, s.StartNS = int64(n+1), at(n)
		if s.Call == nil {
			s.Call = &event.Call{}
		}
	}), into(d, func(b *event.Batch) *[]event.Span { return &b.Spans }))
	give(t, g, memoryTable, filled(func(m *event.Memory, n int) { m.TSNS = at(n) }),
		into(d, func(b *event.Batch) *[]event.Memory { return &b.Memory }))
	give(t, g, flowTable, filled(func(f *event.Flow, n int) { f.TSNS = at(n) }),
		into(d, func(b *event.Batch) *[]event.Flow { return &b.Flows }))
	give(t, g, shortProcessTable, filled(func(r *event.ShortProcess, n int) { r.TSNS = at(n) }),
		into(d, func(b *event.Batch) *[]event.ShortProcess { return &b.ShortProcesses }))
	give(t, g, mergedTraceTable, filled(func(r *event.MergedTrace, n int) { r.StartNS = at(n) }),
		into(d, func(b *event.Batch) *[]event.MergedTrace { return &b.MergedTraces }))
	give(t, g, ioTable, filled(func(r *event.IO, n int) { r.TSNS = at(n) }), into(d, func(b *event.Batch) *[]event.IO { return &b.IO }))
	give(t, g, sampleTable, filled(func(s *event.Sample, n int) { s.TSNS = at(n) }),
		into(d, func(b *event.Batch) *[]event.Sample { return &b.Samples }))
	give(t, g, counterTable, filled(func(c *event.Counter, n int) { c.TSNS = at(n) }),
		into(d, func(b *event.Batch) *[]event.Counter { return &b.Counters }))
	give(t, g, sliceTable, filled(func(s *event.Slice, n int) { s.ID = int64(n + 1) }),
		into(d, func(b *event.Batch) *[]event.Slice { return &b.Slices }))
	give(t, g, stackTable, filled(func(s *event.Stack, n int) { s.ID = int64(n + 1) }),
		into(d, func(b *event.Batch) *[]event.Stack { return &b.Stacks }))
	give(t, g, warningTable, filled(func(w *event.Warning, n int) { w.TSNS = at(n) }),
		into(d, func(b *event.Batch) *[]event.Warning { return &b.Warnings }))
	give(t, g, probeTable, filled(func(*event.Probe, int) {}), into(d, func(b *event.Batch) *[]event.Probe { return &b.Probes }))
	give(t, g, libraryTable, filled(func(l *event.Library, n int) { l.PID = int32(n); l.StartAddress = int64(n) }),
		into(d, func(b *event.Batch) *[]event.Library { return &b.Libraries }))
	give(t, g, processTable, filled(func(p *event.Process, n int) { p.ID, p.PID = int64(n+1), int32(n+1) }),
		into(d, func(b *event.Batch) *[]event.Process { return &b.Processes }))
	give(t, g, threadTable, filled(func(p *event.Thread, n int) { p.PID, p.TID = int32(n+1), int32(n+1) }),
		into(d, func(b *event.Batch) *[]event.Thread { return &b.Threads }))
	open := event.OpenCalls{
		SeenNS:        at(0),
		Communicators: filled(func(c *event.Communicator, n int) { c.PID = int32(n) }),
		Calls: filled(func(c *event.OpenCall, n int) {
			if c.StartNS, c.Communicator = at(n), n; c.Call == nil {
				c.Call = &event.Call{}
			}
		}),
	}
	open.Threads = filled(func(s *event.StillThread, n int) { s.SeenNS = at(n) })
	rows := make([]openCall, len(open.Calls))
	for i, c := range open.Calls {
		rows[i] = openCall{OpenCall: c, seenNS: open.SeenNS, in: &open.Communicators[i]}
	}
	give(t, g, communicatorTable, open.Communicators, func([]event.Communicator) error { return nil })
	give(t, g, stillThreadTable, open.Threads, func([]event.StillThread) error { return nil })
	give(t, g, openCallTable, rows, func([]openCall) error { return d.Write(&event.Batch{OpenCalls: []event.OpenCalls{open}}) })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return d.Dir(), g
}

// canonical is a row as text, the same for the same values.
func canonical(t *testing.T, types map[string]Type, row map[string]any) string {
	t.Helper()
	var text strings.Builder
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range types {
			if !yield(name) {
				return
			}
		}
	}) {
		value, ok := row[name]
		if !ok {
			t.Fatalf("no column %s", name)
		}
		if number, ok := value.(json.Number); ok {
			var err error
			if types[name] == Double {
				value, err = number.Float64()
			} else {
				value, err = number.Int64()
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if types[name] == Boolean && value != nil {
			value = value == true || value == int64(1)
		}
		fmt.Fprintf(&text, "%s=%s ", name, plainJSON(t, value))
	}
	return text.String()
}

// plainJSON is a value with its fields in the order of their names.
func plainJSON(t *testing.T, value any) string {
	t.Helper()
	first, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	decoder := json.NewDecoder(bytes.NewReader(first))
	decoder.UseNumber()
	if err := decoder.Decode(&plain); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	return string(again)
}

// compare reads a dataset with a foreign reader.
func compare(t *testing.T, g given, got map[string][]map[string]any) {
	t.Helper()
	for _, table := range Schema() {
		want, ok := g[table.Name]
		if !ok && (table.Name == "session" || table.Name == "schema_field") {
			continue // what a dataset says of itself
		}
		if !ok {
			t.Errorf("nothing was written into %s: give it rows", table.Name)
			continue
		}
		types := map[string]Type{}
		for _, c := range table.Columns {
			if _, ours := want[0][c.Name]; ours {
				types[c.Name] = c.Type
			}
		}
		if len(types) < 3 {
			t.Fatalf("%s: only %d columns are compared", table.Name, len(types))
		}
		lines := func(rows []map[string]any) (lines []string) {
			for _, row := range rows {
				lines = append(lines, canonical(t, types, row))
			}
			slices.Sort(lines)
			return lines
		}
		wantLines, gotLines := lines(want), lines(got[table.Name])
		if len(gotLines) != len(wantLines) {
			t.Errorf("%s: %d rows, want %d", table.Name, len(gotLines), len(wantLines))
			continue
		}
		for i := range wantLines {
			if gotLines[i] != wantLines[i] {
				t.Errorf("%s:\n got %.2000s\nwant %.2000s", table.Name, gotLines[i], wantLines[i])
				break
			}
		}
	}
}

// TestForeignReadersReadEveryValue: what was written is what pyarrow, polars, Spark and
// DuckDB's shell read: four implementations of Parquet, none of which is ours.
func TestForeignReadersReadEveryValue(t *testing.T) {
	bin := foreignReaders(t)
	dir, g := everyValue(t)
	var tables []string
	for table := range g {
		tables = append(tables, table)
	}
	parse := func(t *testing.T, text []byte, into any) {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(into); err != nil {
			t.Fatalf("%v: %.300s", err, text)
		}
	}
	for _, reader := range []string{"pyarrow", "polars", "pyspark"} {
		t.Run(reader, func(t *testing.T) {
			if reader == "pyspark" {
				if testing.Short() {
					t.Skip("Spark takes long to start: not in -short")
				}
				if _, err := exec.LookPath("java"); err != nil {
					t.Skip("Spark needs Java, which is not here")
				}
				if found, _ := filepath.Glob(filepath.Join(bin, "../lib/python*/site-packages/pyspark")); len(found) == 0 {
					t.Skip("pyspark is not installed: run `make readers`")
				}
			}
			command := exec.Command(filepath.Join(bin, "python"), append([]string{"testdata/read.py", reader, dir}, tables...)...)
			var complaints bytes.Buffer
			command.Stderr = &complaints
			out, err := command.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, complaints.String())
			}
			got := map[string][]map[string]any{}
			parse(t, out, &got)
			compare(t, g, got)
		})
	}
	t.Run("duckdb", func(t *testing.T) {
		got := map[string][]map[string]any{}
		for _, table := range tables {
			query := "SELECT to_json(t) AS row FROM read_parquet('" + filepath.Join(dir, table, "*.parquet") + "') t"
			command := exec.Command(filepath.Join(bin, "duckdb"), "-noheader", "-list", "-c", query)
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for line := range bytes.Lines(out) {
				row := map[string]any{}
				parse(t, line, &row)
				got[table] = append(got[table], row)
			}
		}
		compare(t, g, got)
	})
}
