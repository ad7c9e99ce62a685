package output

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func recording() event.Recording {
	return event.Recording{ID: "test", ToolVersion: "0.0.0", Host: "host", StartedNS: 1, Level: "window"}
}

func begin(t testing.TB, options Options) *Dataset {
	t.Helper()
	d, err := Create(filepath.Join(t.TempDir(), "dataset"), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if err := d.Session(recording()); err != nil {
		t.Fatal(err)
	}
	wait(t, d)
	return d
}

// wait returns when the writer has done what it was given.
func wait(t testing.TB, d *Dataset) {
	t.Helper()
	if err := d.writer.do(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func someSpans(n int) []event.Span {
	call := &event.Call{Layer: "op", Name: "aten::add"}
	spans := make([]event.Span, n)
	for i := range spans {
		spans[i] = event.Span{ID: int64(i + 1), StartNS: int64(1000 * i), DurationNS: -1, SequenceNumber: -1, Call: call, Weight: 1}
	}
	return spans
}

// visible lists the files that a reader's glob finds, without the empty ones
// that only carry the schema.
func visible(t testing.TB, dir, table string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, table, "[^.]*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(paths, func(p string) bool { return filepath.Base(p) == "schema.parquet" })
}

// readTable returns the rows of all visible files of a table; a null is nil.
func readTable(t testing.TB, dir, table string) (rows []map[string]any) {
	t.Helper()
	for _, path := range append(visible(t, dir, table), filepath.Join(dir, table, "schema.parquet")) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parquet.OpenFile(strings.NewReader(string(data)), int64(len(data)))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, g := range f.RowGroups() {
			rows = append(rows, readGroup(t, f.Schema(), g)...)
		}
	}
	return rows
}

func readGroup(t testing.TB, schema *parquet.Schema, g parquet.RowGroup) (rows []map[string]any) {
	t.Helper()
	names := schema.Columns()
	reader := g.Rows()
	defer reader.Close()
	buffer := make([]parquet.Row, 1000)
	for {
		n, err := reader.ReadRows(buffer)
		for _, row := range buffer[:n] {
			values := map[string]any{}
			for _, v := range row {
				values[names[v.Column()][0]] = plainValue(v)
			}
			rows = append(rows, values)
		}
		if err == io.EOF {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func plainValue(v parquet.Value) any {
	switch {
	case v.IsNull():
		return nil
	case v.Kind() == parquet.Boolean:
		return v.Boolean()
	case v.Kind() == parquet.Int32:
		return int64(v.Int32())
	case v.Kind() == parquet.Int64:
		return v.Int64()
	case v.Kind() == parquet.Double:
		return v.Double()
	default:
		return string(v.ByteArray())
	}
}

func TestCreateRefusesADirectoryThatIsNotEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Create(dir, Options{})
	if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("Create = %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("Create left %v", entries)
	}
}

func TestCreateRefusesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, Options{}); err == nil {
		t.Error("Create wrote into a file")
	}
}

func TestNothingIsLeftWhenThereWasNoSession(t *testing.T) {
	dir := t.TempDir()
	d, err := Create(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(&event.Batch{Spans: someSpans(1)}); !errors.Is(err, errNoSession) {
		t.Errorf("Spans before Session = %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left %v", entries)
	}
}

func TestSessionMakesEveryTableReadable(t *testing.T) {
	d := begin(t, Options{})
	for _, table := range Schema() {
		want := map[string]int{"session": 1, "schema_field": len(schemaFields())}[table.Name]
		if rows := readTable(t, d.Dir(), table.Name); len(rows) != want {
			t.Errorf("%s has %d rows, want %d", table.Name, len(rows), want)
		}
	}
	if _, err := os.Stat(filepath.Join(d.Dir(), ViewsFile)); err != nil {
		t.Error(err)
	}
}

func TestSessionIDMustNameAFile(t *testing.T) {
	for _, id := range []string{"", ".", "../up", "a/b", ".hidden", "a b"} {
		d, err := Create(t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Session(event.Recording{ID: id}); err == nil {
			t.Errorf("session %q accepted", id)
		}
		d.Close()
	}
}

func TestUnfinishedFilesAreHidden(t *testing.T) {
	d := begin(t, Options{})
	if err := d.Write(&event.Batch{Spans: someSpans(RowGroupRows + 1)}); err != nil {
		t.Fatal(err)
	}
	wait(t, d) // the row group is in the file now
	if files := visible(t, d.Dir(), "span"); len(files) > 0 {
		t.Errorf("visible before the rotation: %v", files)
	}
	hidden, err := filepath.Glob(filepath.Join(d.Dir(), "span", ".*"+unfinished))
	if err != nil || len(hidden) != 1 {
		t.Errorf("unfinished files: %v, %v", hidden, err)
	}
	if err := d.Rotate(); err != nil {
		t.Fatal(err)
	}
	if n := len(readTable(t, d.Dir(), "span")); n != RowGroupRows+1 {
		t.Errorf("%d rows after the rotation", n)
	}
}

func TestRotationNeverRepeatsRows(t *testing.T) {
	d := begin(t, Options{})
	for i := range 3 {
		for pid := range int32(i + 1) {
			if err := d.Write(&event.Batch{Processes: []event.Process{{ID: int64(pid), PID: pid}}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Write(&event.Batch{Spans: someSpans(10)}); err != nil {
			t.Fatal(err)
		}
		if err := d.Rotate(); err != nil {
			t.Fatal(err)
		}
		if n := len(readTable(t, d.Dir(), "process")); n != i+1 {
			t.Errorf("%d processes after rotation %d", n, i+1)
		}
		if n := len(readTable(t, d.Dir(), "span")); n != 10*(i+1) {
			t.Errorf("%d spans after rotation %d", n, i+1)
		}
	}
	if n := len(visible(t, d.Dir(), "span")); n != 3 {
		t.Errorf("%d files of spans, want 3", n)
	}
}

func TestALaterDescriptionReplacesTheFirst(t *testing.T) {
	d := begin(t, Options{})
	end, site := int64(9), int64(4)
	thread := event.Thread{PID: 1, TID: 2, StartedNS: new(int64)}
	calls := []error{
		d.Write(&event.Batch{Processes: []event.Process{{ID: 7, PID: 1}}}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 7, PID: 1, EndedNS: &end}}}),
		d.Write(&event.Batch{Threads: []event.Thread{thread}}),
		d.Write(&event.Batch{Threads: []event.Thread{{PID: 1, TID: 2, StartedNS: &end}}}), // the tid again, another thread
		d.Write(&event.Batch{Libraries: []event.Library{{PID: 1, Path: "a", StartAddress: 1}}}),
		d.Write(&event.Batch{Libraries: []event.Library{{PID: 1, Path: "a", StartAddress: 1, Deleted: true}}}),
		d.Write(&event.Batch{Probes: []event.Probe{{PID: 1, Symbol: "f", Kind: "exit"}, {PID: 1, Symbol: "f", Kind: "exit", Site: &site}}}),
	}
	recording := recording()
	recording.EndedNS = &end
	if err := errors.Join(append(calls, d.Session(recording), d.Close())...); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{"session": 1, "process": 1, "thread": 2, "library": 1, "probe": 2} {
		if n := len(readTable(t, d.Dir(), table)); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
	for _, table := range []string{"session", "process"} {
		if row := readTable(t, d.Dir(), table)[0]; row["ended_ns"] != int64(9) {
			t.Errorf("%s ended at %v", table, row["ended_ns"])
		}
	}
}

func TestRotationComesWithTime(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, err := Create(dir, Options{RotateEvery: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Session(recording()), d.Write(&event.Batch{Spans: someSpans(1)})); err != nil {
			t.Fatal(err)
		}
		// Not readTable: parquet-go pools decoders, which must not leave the bubble.
		time.Sleep(59 * time.Second)
		if files := visible(t, dir, "span"); len(files) != 0 {
			t.Errorf("%v before the minute is over", files)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if files := visible(t, dir, "span"); len(files) != 1 {
			t.Errorf("%v after the minute", files)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestRotationComesWithSize(t *testing.T) {
	d := begin(t, Options{RotateBytes: 1})
	if err := d.Write(&event.Batch{Spans: someSpans(2*RowGroupRows + 5)}); err != nil {
		t.Fatal(err)
	}
	wait(t, d)
	if n := len(visible(t, d.Dir(), "span")); n != 2 {
		t.Errorf("%d files, want 2", n)
	}
}

func TestEventsAfterCloseAreRefused(t *testing.T) {
	d := begin(t, Options{})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("second Close = %v", err)
	}
	for name, err := range map[string]error{
		"Spans": d.Write(&event.Batch{Spans: someSpans(1)}), "Process": d.Write(&event.Batch{Processes: []event.Process{{}}}),
		"Rotate": d.Rotate(), "Session": d.Session(recording()),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s = %v", name, err)
		}
	}
}

func TestStatsCountWhatIsWritten(t *testing.T) {
	d := begin(t, Options{})
	if err := errors.Join(d.Write(&event.Batch{Spans: someSpans(1000)}), d.Write(&event.Batch{Flows: make([]event.Flow, 3)}),
		d.Close()); err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Stats() {
		var bytes int64
		for _, path := range visible(t, d.Dir(), s.Table) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			bytes += info.Size()
		}
		if rows := len(readTable(t, d.Dir(), s.Table)); int64(rows) != s.Rows || bytes != s.Bytes {
			t.Errorf("%+v, but there are %d rows in %d bytes", s, rows, bytes)
		}
	}
}

func TestSpansAreSortedByTimeWithinARowGroup(t *testing.T) {
	d := begin(t, Options{})
	im := newImitation()
	for _, batch := range im.batches(RowGroupRows+1000, true) {
		if err := d.Write(&event.Batch{Spans: batch}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	f := openParquet(t, visible(t, d.Dir(), "span")[0])
	if n := len(f.RowGroups()); n != 2 {
		t.Fatalf("%d row groups", n)
	}
	for _, g := range f.RowGroups() {
		if s := g.SortingColumns(); len(s) != 1 || s[0].Path()[0] != "ts_ns" || s[0].Descending() {
			t.Errorf("declared order is %v", s)
		}
		last := int64(0)
		for _, row := range readGroup(t, f.Schema(), g) {
			if ts := row["ts_ns"].(int64); ts < last {
				t.Fatalf("%d after %d", ts, last)
			} else {
				last = ts
			}
		}
	}
}

func openParquet(t testing.TB, path string) *parquet.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(strings.NewReader(string(data)), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestEveryFileSaysWhereItIsFrom(t *testing.T) {
	d := begin(t, Options{})
	if err := errors.Join(d.Write(&event.Batch{Spans: someSpans(1)}), d.Close()); err != nil {
		t.Fatal(err)
	}
	f := openParquet(t, visible(t, d.Dir(), "span")[0])
	for key, want := range map[string]string{
		MetadataSchemaVersion: SchemaVersion, MetadataSession: "test", MetadataToolVersion: "0.0.0", MetadataTable: "span",
	} {
		if got, _ := f.Lookup(key); got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	for i, c := range spanTable.Columns {
		if column := f.Root().Column(c.Name); column == nil || column.ID() != int(c.FieldID) || column.Optional() != c.Nullable {
			t.Errorf("column %d of the file is not %+v", i, c)
		}
	}
}

// smallDisk is a directory on a disk of so many bytes.
func smallDisk(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("needs the right to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

func TestAFullDiskIsOneErrorAndLeavesWhatWasClosed(t *testing.T) {
	dir := filepath.Join(smallDisk(t, 2<<20), "dataset")
	d, err := Create(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Session(recording()), d.Write(&event.Batch{Spans: someSpans(100)}), d.Rotate()); err != nil {
		t.Fatal(err)
	}
	batches := newImitation().batches(500_000, true)
	for i := 0; err == nil && i < 4*len(batches); i++ {
		err = d.Write(&event.Batch{Spans: batches[i%len(batches)]})
	}
	if !errors.Is(err, ErrFull) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("error is %v", err)
	}
	if again := d.Write(&event.Batch{Flows: make([]event.Flow, 1)}); again != err {
		t.Errorf("then %v", again)
	}
	if closed := d.Close(); closed == nil || closed.Error() != err.Error() {
		t.Errorf("Close = %v", closed)
	}
	if n := len(readTable(t, dir, "span")); n != 100 {
		t.Errorf("%d spans are left, want the 100 of the first rotation", n)
	}
	if hidden, _ := filepath.Glob(filepath.Join(dir, "*", ".*")); len(hidden) > 0 {
		t.Errorf("unfinished files stay: %v", hidden)
	}
}

// TestSIGKILLLeavesEverythingUpToTheLastRotation kills a process that writes.
func TestSIGKILLLeavesEverythingUpToTheLastRotation(t *testing.T) {
	if dir := os.Getenv("EBPFPROF_TEST_WRITE_UNTIL_KILLED"); dir != "" {
		writeUntilKilled(dir)
	}
	dir := filepath.Join(t.TempDir(), "dataset")
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "EBPFPROF_TEST_WRITE_UNTIL_KILLED="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	rotations := 0
	for lines := bufio.NewScanner(out); rotations < 3 && lines.Scan(); {
		rotations++
	}
	child.Process.Kill()
	child.Wait()
	if n := len(readTable(t, dir, "span")); n < 3*1000 || n%1000 != 0 {
		t.Errorf("%d spans are readable after %d rotations of 1000", n, rotations)
	}
	if n := len(readTable(t, dir, "process")); n != 1 {
		t.Errorf("%d processes", n)
	}
}

func writeUntilKilled(dir string) {
	d, err := Create(dir, Options{})
	if err != nil {
		panic(err)
	}
	err = errors.Join(d.Session(recording()), d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 1}}}))
	for err == nil {
		err = errors.Join(d.Write(&event.Batch{Spans: someSpans(1000)}), d.Rotate())
		fmt.Println("rotated")
	}
	panic(err)
}
