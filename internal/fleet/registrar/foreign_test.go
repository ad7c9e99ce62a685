package registrar

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testcache"
)

// read.py of the tables: all rows, and those from some time on.
const readIceberg = `
import json, sys
from pyiceberg.table import StaticTable
table = StaticTable.from_metadata(sys.argv[1])
rows = table.scan().to_arrow().to_pylist()
late = table.scan(row_filter="begin_ns >= " + sys.argv[2]).to_arrow().num_rows
files = len(list(table.scan(row_filter="begin_ns >= " + sys.argv[2]).plan_files()))
print(json.dumps({"rows": rows, "late": late, "files": files}))
`

// TestForeignReadersReadTheIcebergTables: pyiceberg reads the rows that a report has, as
// files come, are merged and removed, of a job whose name needs escapes.
func TestForeignReadersReadTheIcebergTables(t *testing.T) {
	if testing.Short() {
		t.Skip("pyiceberg takes seconds to start: not in -short")
	}
	bin := testcache.Path(t, "dataset-readers/bin", "pyiceberg is not installed: run `make readers`")
	if found, _ := filepath.Glob(filepath.Join(bin, "../lib/python*/site-packages/pyiceberg")); len(found) == 0 {
		t.Skip("pyiceberg is not installed: run `make readers`")
	}
	at := places(t)["directory"](t)
	const job = "größe/7b=x %41?#"
	for minute := range 3 {
		for _, host := range []string{"a", "b"} {
			send(t, at.s, job, host, minute)
		}
	}
	type read struct {
		Rows  []map[string]any
		Late  int
		Files int
	}
	of := func(table string) (r read) {
		t.Helper()
		address, err := filepath.Abs(at.s.String())
		if err != nil {
			t.Fatal(err)
		}
		late := begin.Add(2 * time.Minute).UnixNano()
		command := exec.Command(filepath.Join(bin, "python"), "-c", readIceberg, filepath.Join(address, icebergKey, table), jsonText(late))
		var complaints bytes.Buffer
		command.Stderr = &complaints
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, complaints.String())
		}
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for n, c := range []struct {
		after                  time.Duration
		patterns, late, within int // within: files that have rows of late
	}{
		{0, 30, 10, 2},
		{2 * time.Hour, 30, 10, 1}, // merged
		{4 * time.Hour, 35, 15, 2}, // and another
	} {
		if n == 2 {
			send(t, at.s, job, "c", 2)
		}
		if r := onePass(t, at.s, options(c.after)); r.Tables != 3 || len(r.Notes) != 0 {
			t.Errorf("%d: %+v", n, r)
		}
		r := of("pattern")
		if len(r.Rows) != c.patterns || r.Late != c.late || r.Files != c.within {
			t.Errorf("%d: %d rows, %d late in %d files", n, len(r.Rows), r.Late, r.Files)
		}
		names := map[any]int{}
		for _, row := range r.Rows {
			names[row["name"]]++
			if row["job"] != job || row["rank"] != nil || row["begin_ns"].(float64) < 1e18 {
				t.Errorf("%d: %v", n, row)
			}
		}
		if len(names) != 5 || names["f3"] != c.patterns/5 {
			t.Errorf("%d: %v", n, names)
		}
	}
	if again := onePass(t, at.s, options(4*time.Hour)); again.Tables != 0 {
		t.Errorf("what is as it was was changed: %+v", again)
	}
	if steps := of("worker_step"); len(steps.Rows) != 21 || slices.ContainsFunc(steps.Rows, func(row map[string]any) bool { return row["load_ns"] != nil || row["rank"] != 1.0 }) {
		t.Errorf("%v", steps.Rows)
	}
}

func jsonText(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
