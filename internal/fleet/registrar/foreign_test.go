package registrar

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testcache"
)

// readIceberg prints what pyiceberg reads of a table: all rows, and those from some time on.
const readIceberg = `
import json, sys
from pyiceberg.table import StaticTable
table = StaticTable.from_metadata(sys.argv[1])
rows = table.scan().to_arrow().to_pylist()
late = table.scan(row_filter="begin_ns >= " + sys.argv[2]).to_arrow().num_rows
files = len(list(table.scan(row_filter="begin_ns >= " + sys.argv[2]).plan_files()))
print(json.dumps({"rows": rows, "late": late, "files": files}))
`

// readByDuckDB is the same of DuckDB, with its extension from the Python package.
const readByDuckDB = `
import glob, json, sys
import duckdb
db = duckdb.connect()
for name in "avro", "iceberg":
    found = glob.glob(sys.prefix + "/lib/python*/site-packages/duckdb_extension_" + name + "/extensions/*/" + name + ".duckdb_extension")
    db.execute("LOAD '" + found[0] + "'")
table = "iceberg_scan('" + sys.argv[1].replace("'", "''") + "')"
result = db.execute("SELECT * FROM " + table)
rows = [dict(zip([c[0] for c in result.description], row)) for row in result.fetchall()]
late = db.execute("SELECT count(*) FROM " + table + " WHERE begin_ns >= " + sys.argv[2]).fetchone()[0]
print(json.dumps({"rows": rows, "late": late}))
`

// readBySpark is the same of Apache Spark, to which the store's tables are a catalog.
const readBySpark = `
import json, os, sys
from pyspark.sql import SparkSession
warehouse, name = os.path.split(sys.argv[1])
spark = (SparkSession.builder.master("local[1]").config("spark.jars", sys.argv[3]).config("spark.ui.enabled", "false")
    .config("spark.sql.catalog.store", "org.apache.iceberg.spark.SparkCatalog").config("spark.sql.catalog.store.type", "hadoop")
    .config("spark.sql.catalog.store.warehouse", "file://" + warehouse).config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.codegen.wholeStage", "false").getOrCreate())
rows = [row.asDict() for row in spark.sql("SELECT * FROM store." + name).collect()]
late = spark.sql("SELECT count(*) FROM store." + name + " WHERE begin_ns >= " + sys.argv[2]).collect()[0][0]
print(json.dumps({"rows": rows, "late": late}))
`

// table is what a reader says of one.
type table struct {
	Rows  []map[string]any
	Late  int
	Files int // 0: it does not say
}

// read has a program of Python read a table.
func read(t *testing.T, python, program string, s Store, name string, arguments ...string) (r table) {
	t.Helper()
	address, err := filepath.Abs(s.String())
	if err != nil {
		t.Fatal(err)
	}
	late := jsonText(begin.Add(2 * time.Minute).UnixNano())
	command := exec.Command(python, append([]string{"-c", program, filepath.Join(address, icebergKey, name), late}, arguments...)...)
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SPARK_HOME=") })
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

const icebergJob = "größe/7b=x %41?#"

// patterns checks the rows of table pattern: so many, each function as often.
func (r *table) patterns(t *testing.T, rows, late int) {
	t.Helper()
	if len(r.Rows) != rows || r.Late != late {
		t.Errorf("%d rows, %d late; want %d and %d", len(r.Rows), r.Late, rows, late)
	}
	names := map[any]int{}
	for _, row := range r.Rows {
		names[row["name"]]++
		if row["job"] != icebergJob || row["rank"] != nil || row["begin_ns"].(float64) < 1e18 {
			t.Errorf("%v", row)
		}
	}
	if len(names) != 5 || names["f3"] != rows/5 {
		t.Errorf("%v", names)
	}
}

// TestForeignReadersReadTheIcebergTables: pyiceberg, DuckDB and Spark read the rows that a
// report has, as files come, are merged and removed, of a job whose name needs escapes.
func TestForeignReadersReadTheIcebergTables(t *testing.T) {
	if testing.Short() {
		t.Skip("readers of Iceberg take seconds to start: not in -short")
	}
	const missing = "readers of Iceberg are not installed: run `make readers`"
	pyiceberg := filepath.Join(testcache.Path(t, "dataset-readers/bin", missing), "python")
	tables := testcache.Path(t, "iceberg-readers", missing)
	there := func(pattern string) string {
		found, _ := filepath.Glob(pattern)
		if len(found) == 0 {
			return ""
		}
		return found[0]
	}
	packages := filepath.Join(tables, "lib/python*/site-packages")
	duckdb, spark := there(filepath.Join(packages, "duckdb_extension_iceberg")) != "", there(filepath.Join(packages, "pyspark")) != ""
	runtime := there(filepath.Join(tables, "jars/*.jar"))
	if there(filepath.Join(filepath.Dir(pyiceberg), "../lib/python*/site-packages/pyiceberg")) == "" {
		t.Skip(missing)
	}
	at := places(t)["directory"](t)
	for minute := range 3 {
		for _, host := range []string{"a", "b"} {
			send(t, at.s, icebergJob, host, minute)
		}
	}
	python := filepath.Join(tables, "bin/python")
	for n, c := range []struct {
		after                  time.Duration
		patterns, late, within int // within: files that have rows of late
	}{
		{0, 30, 10, 2},
		{2 * time.Hour, 30, 10, 1}, // merged
		{4 * time.Hour, 35, 15, 2}, // and another
	} {
		if n == 2 {
			send(t, at.s, icebergJob, "c", 2)
		}
		if r := onePass(t, at.s, options(c.after)); r.Tables != 3 || len(r.Notes) != 0 {
			t.Errorf("%d: %+v", n, r)
		}
		r := read(t, pyiceberg, readIceberg, at.s, "pattern")
		if r.patterns(t, c.patterns, c.late); r.Files != c.within {
			t.Errorf("%d: late rows are in %d files", n, r.Files)
		}
		if duckdb {
			r := read(t, python, readByDuckDB, at.s, "pattern")
			r.patterns(t, c.patterns, c.late)
		}
	}
	if again := onePass(t, at.s, options(4*time.Hour)); again.Tables != 0 {
		t.Errorf("what is as it was was changed: %+v", again)
	}
	steps := read(t, pyiceberg, readIceberg, at.s, "worker_step")
	if len(steps.Rows) != 21 || slices.ContainsFunc(steps.Rows, func(row map[string]any) bool {
		return row["load_ns"] != nil ||
			row["rank"] != 1.0
	}) {
		t.Errorf("%v", steps.Rows)
	}
	t.Run("DuckDB", func(t *testing.T) {
		if !duckdb {
			t.Skip("DuckDB's extension for Iceberg is not installed: run `make readers`")
		}
		if r := read(t, python, readByDuckDB, at.s, "worker_step"); len(r.Rows) != 21 {
			t.Errorf("%v", r.Rows)
		}
	})
	t.Run("Spark", func(t *testing.T) {
		if _, err := exec.LookPath("java"); err != nil || !spark || runtime == "" {
			t.Skip("Spark, Java or Iceberg's runtime is not installed: run `make readers`")
		}
		r := read(t, python, readBySpark, at.s, "pattern", runtime)
		r.patterns(t, 35, 15)
	})
}

func jsonText(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
