package query

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testfile"
	"github.com/ebpfprof/ebpfprof/output/columnfile"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	empty := t.TempDir()
	file := filepath.Join(empty, "file")
	testfile.Write(t, file, "")
	corrupt := record(t, filepath.Join(t.TempDir(), "d"))
	damageAll(t, corrupt)
	for name, c := range map[string]struct {
		dir  string
		want error
	}{
		"nothing there":      {filepath.Join(empty, "nothing"), os.ErrNotExist},
		"a file":             {file, dataset.ErrNotDataset},
		"another directory":  {empty, dataset.ErrNotDataset},
		"all files damaged":  {corrupt, dataset.ErrCorrupt},
		"an empty file name": {"", os.ErrNotExist},
	} {
		db, err := Open(c.dir)
		if err == nil {
			db.Close()
		}
		if !errors.Is(err, c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// damageAll cuts every file with rows in half.
func damageAll(t *testing.T, dir string) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "s1*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		truncate(t, path)
	}
}

func truncate(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()/2); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedFileIsLeftOutAndNamed(t *testing.T) {
	dir := record(t, filepath.Join(t.TempDir(), "d"))
	data, err := os.ReadFile(filepath.Join(dir, "span", "s1-000001.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, filepath.Join(dir, "span", "s1-000002.parquet"), string(data[:len(data)-100]))
	testfile.Write(t, filepath.Join(dir, "span", "empty.parquet"), "")
	testfile.Write(t, filepath.Join(dir, "memory", "noise.parquet"), strings.Repeat("PAR1", 100))
	testfile.Write(t, filepath.Join(dir, "span", ".s1-000003.parquet.inprogress"), "PAR1")
	testfile.Write(t, filepath.Join(dir, "span", ".hidden.parquet"), "PAR1")
	testfile.Write(t, filepath.Join(dir, "span", "notes.txt"), "")
	db := open(t, dir)
	if got := one(t, db, "SELECT count(*) FROM span"); got != "4" {
		t.Errorf("%s spans", got)
	}
	if got := one(t, db, "SELECT count(*) FROM memory"); got != "3" {
		t.Errorf("%s allocations", got)
	}
	all := strings.Join(db.Warnings(), "\n")
	for _, name := range []string{"span/s1-000002.parquet", "span/empty.parquet", "memory/noise.parquet"} {
		if !strings.Contains(all, name) {
			t.Errorf("no warning names %s:\n%s", name, all)
		}
	}
	if len(db.Warnings()) != 3 {
		t.Errorf("warnings:\n%s", all)
	}
}

func TestPathsWithQuotesAndPatternsOpen(t *testing.T) {
	dir := record(t, filepath.Join(t.TempDir(), "it's [1]* a?b{c}"))
	if got := one(t, open(t, dir), "SELECT count(*) FROM span"); got != "4" {
		t.Errorf("%s spans", got)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if got := one(t, open(t, link), "SELECT count(*) FROM span"); got != "4" {
		t.Errorf("%s spans through a link", got)
	}
}

func TestHiveKeysBecomeColumns(t *testing.T) {
	dir := record(t, filepath.Join(t.TempDir(), "d"))
	for _, table := range []string{"span", "session"} {
		for i, day := range []string{"2026-11-19", "2026-11-20"} {
			from := filepath.Join(dir, table, map[string]string{"span": "s1-000001.parquet", "session": "s1.parquet"}[table])
			data, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			testfile.Write(t, filepath.Join(dir, table, "date="+day, "job=7", "a.parquet"), string(data))
			if i == 1 {
				os.Remove(from)
			}
		}
	}
	db := open(t, dir)
	if got := one(t, db, "SELECT count(*) FROM span WHERE date = DATE '2026-11-20' AND job = '7'"); got != "4" {
		t.Errorf("%s spans of that day", got)
	}
}

func TestFilesWithAndWithoutHiveKeysOpenTogether(t *testing.T) {
	dir := record(t, filepath.Join(t.TempDir(), "d"))
	data, err := os.ReadFile(filepath.Join(dir, "span", "s1-000001.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, filepath.Join(dir, "span", "date=2026-11-20", "a.parquet"), string(data))
	if got := one(t, open(t, dir), "SELECT count(*) FROM span"); got != "8" {
		t.Errorf("%s spans", got)
	}
}

func TestColumnsOfOtherVersionsAreNULLOrExtra(t *testing.T) {
	dir := record(t, filepath.Join(t.TempDir(), "d"))
	var file bytes.Buffer
	writeOther(t, &file)
	testfile.Write(t, filepath.Join(dir, "warning", "other.parquet"), file.String())
	testfile.Write(t, filepath.Join(dir, "thread", "s1.parquet"), file.String()) // the only one of its table
	testfile.Write(t, filepath.Join(dir, "finding", "a.parquet"), file.String()) // a table unknown to the schema
	db := open(t, dir)
	for query, want := range map[string]string{
		"SELECT count(*), count(kind), count(later) FROM warning":         "6 3 3",
		"SELECT count(*), count(tid), typeof(any_value(tid)) FROM thread": "3 0 INTEGER",
		"SELECT count(*), any_value(later), any_value(ts)::VARCHAR " +
			"FROM finding": "3 x 1970-01-01 00:00:00.000000005",
		"SELECT string_agg(column_name, ' ') FROM (DESCRIBE finding)":                                              "session_id ts_ns later ts",
		"SELECT list_contains(list(column_name), 'later') AND last(column_name) = 'later' FROM (DESCRIBE warning)": "true",
	} {
		if got := one(t, db, query); got != want {
			t.Errorf("%s = %s, want %s", query, got, want)
		}
	}
}

// writeOther writes a file of three rows that lacks most columns and has one
// that no table has.
func writeOther(t *testing.T, out io.Writer) {
	t.Helper()
	e, err := columnfile.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	columns := []columnfile.Column{
		{Name: "session_id", ID: 1, Kind: columnfile.String},
		{Name: "ts_ns", ID: 2, Kind: columnfile.Int64},
		{Name: "later", ID: 99, Kind: columnfile.String, Nullable: true},
	}
	w, err := columnfile.NewWriter(out, e, columns, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	var v columnfile.Values
	rows := []int64{5, 6, 7}
	err = w.WriteRowGroup(3, -1, func(i int) *columnfile.Values {
		if i == 1 {
			v.Reset()
			columnfile.Ints(&v, rows, []int32{0, 1, 2}, func(r *int64) (int64, bool) { return *r, true })
		} else {
			v.Constant("x", 3)
		}
		return &v
	})
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
}
