package dataset

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const scanStart = int64(1_700_000_000_000_000_000)

// scanned is a dataset of more than one row group. Rows are written when they end, some
// of them long after they began, and many begin at one time.
func scanned(t *testing.T, rows int) string {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 11))
	err = d.Session(event.Recording{ID: "s"})
	var calls []*event.Call
	for i := range 300 {
		calls = append(calls, &event.Call{Layer: []string{"op", "scope", "autograd"}[i%3], Name: fmt.Sprintf("call %d", i)})
	}
	var batch []event.Span
	for i := range int64(rows) {
		begin := scanStart + i/3*1000
		if r.IntN(1000) == 0 {
			begin = scanStart + r.Int64N(i*333+1)
		}
		s := event.Span{ID: i + 1, StartNS: begin, DurationNS: r.Int64N(5000) - 1, PID: int32(r.IntN(3)), TID: 5, Call: calls[r.IntN(len(calls))],
			Weight: 1 + float64(r.IntN(4))/3, SequenceNumber: r.Int64N(4) - 1, ParentID: r.Int64N(2) * i}
		if batch = append(batch, s); len(batch) == 1000 {
			r.Shuffle(len(batch), func(i, k int) { batch[i], batch[k] = batch[k], batch[i] })
			err = errors.Join(err, d.Write(&event.Batch{Spans: batch}))
			batch = batch[:0]
		}
	}
	if err = errors.Join(err, d.Write(&event.Batch{Spans: batch}), d.Close()); err != nil {
		t.Fatal(err)
	}
	return d.Dir()
}

var scanColumns = []string{"span_id", "ts_ns", "duration_ns", "layer", "name", "category", "weight", "sequence_number", "parent_id", "pid",
	"bytes"}

func byDuration(b *Batch, i, k int) bool {
	if x, y := b.Columns[2][i], b.Columns[2][k]; x != y {
		return x == Absent || y != Absent && x > y
	}
	return b.Columns[0][i] < b.Columns[0][k]
}

// asScanned are the rows of a scan, a line each.
func asScanned(t *testing.T, db *DB, s Scan) (lines []string) {
	t.Helper()
	s.Table, s.Columns, s.Before = "span", scanColumns, byDuration
	err := db.Scan(t.Context(), s, func(b *Batch) error {
		for i := range b.Rows {
			var values []string
			for c, name := range s.Columns {
				v := b.Columns[c][i]
				switch {
				case v == Absent:
					values = append(values, "<nil>")
				case slices.Contains([]string{"layer", "name", "category"}, name):
					values = append(values, b.Text(v))
				case name == "weight":
					values = append(values, fmt.Sprint(b.Float(v)))
				default:
					values = append(values, fmt.Sprint(v))
				}
			}
			lines = append(lines, strings.Join(values, " "))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func asQueried(t *testing.T, db *DB, where string) (lines []string) {
	t.Helper()
	query := "SELECT " + strings.Join(scanColumns, ", ") + " FROM span WHERE " + where +
		" ORDER BY ts_ns, duration_ns DESC NULLS FIRST, span_id"
	err := db.Each(t.Context(), query, func(v []driver.Value) error {
		var values []string
		for _, x := range v {
			values = append(values, fmt.Sprint(x))
		}
		lines = append(lines, strings.Join(values, " "))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func sameLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: row %d is %q, want %q", what, i, got[i], want[i])
			return
		}
	}
}

func TestScanIsTheTableInOrderOfTime(t *testing.T) {
	db := open(t, scanned(t, 2*output.RowGroupRows+5000))
	all := asQueried(t, db, "true")
	sameLines(t, "all", asScanned(t, db, Scan{}), all)
	from, until := scanStart+20_000_000, scanStart+60_000_500
	part := asQueried(t, db, fmt.Sprintf("ts_ns >= %d AND ts_ns < %d", from, until))
	if len(part) == 0 || len(part) == len(all) {
		t.Fatalf("a part of %d rows", len(part))
	}
	sameLines(t, "a part", asScanned(t, db, Scan{From: from, Until: until}), part)
	of := map[Process]bool{{"s", 2}: true, {"another", 1}: true}
	sameLines(t, "a process", asScanned(t, db, Scan{Of: of}), asQueried(t, db, "pid = 2"))
	without := map[Row]int64{{"another", 5}: Absent}
	for i := int64(0); i < 200_000; i += 7 {
		without[Row{"s", i}] = Absent
	}
	some := asQueried(t, db, "pid = 2 AND NOT (span_id < 200000 AND span_id % 7 = 0)")
	sameLines(t, "less some rows", asScanned(t, db, Scan{Of: of, Instead: without}), some)
	sameLines(t, "none", asScanned(t, db, Scan{From: scanStart + 1e18}), nil)
}

// TestScanForgetsTexts: names that are all different do not pile up.
func TestScanForgetsTexts(t *testing.T) {
	defer func(n int) { mostTexts = n }(mostTexts)
	mostTexts = 40
	db := open(t, scanned(t, 20_000))
	sameLines(t, "few texts kept", asScanned(t, db, Scan{}), asQueried(t, db, "true"))
	epochs := 0
	err := db.Scan(t.Context(), Scan{Table: "span", Columns: []string{"ts_ns", "name"}}, func(b *Batch) error {
		epochs = b.Epoch
		return nil
	})
	if err != nil || epochs == 0 {
		t.Errorf("texts were numbered %d times anew, %v", epochs, err)
	}
}

// TestScanOfForeignFiles: of other writers, in no order of time, and columns missing.
func TestScanOfForeignFiles(t *testing.T) {
	dir := scanned(t, 30_000)
	files, err := filepath.Glob(filepath.Join(dir, "span", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	duck, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer duck.Close()
	for i, file := range files {
		rewritten := filepath.Join(dir, "span", fmt.Sprintf("foreign-%d.parquet", i))
		_, err := duck.Exec(fmt.Sprintf("COPY (SELECT * EXCLUDE (bytes) FROM read_parquet('%s') ORDER BY hash(span_id)) TO '%s' (FORMAT parquet)",
			file, rewritten))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	db := open(t, dir)
	sameLines(t, "foreign files", asScanned(t, db, Scan{}), asQueried(t, db, "true"))
}

func TestScanEndsWhenItIsTold(t *testing.T) {
	db := open(t, scanned(t, 30_000))
	ctx, cancel := context.WithCancel(t.Context())
	batches := 0
	err := db.Scan(ctx, Scan{Table: "span", Columns: []string{"ts_ns"}}, func(*Batch) error {
		batches++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || batches != 1 {
		t.Errorf("%d batches, %v", batches, err)
	}
	wrong := errors.New("enough")
	if err := db.Scan(t.Context(), Scan{Table: "span", Columns: []string{"ts_ns"}}, func(*Batch) error { return wrong }); !errors.Is(err,
		wrong) {
		t.Errorf("%v", err)
	}
	for _, s := range []Scan{{Table: "span", Columns: []string{"name"}}, {Table: "span", Columns: []string{"ts_ns", "no_such"}},
		{Table: "none", Columns: []string{"ts_ns"}}} {
		if err := db.Scan(t.Context(), s, func(*Batch) error { return nil }); err == nil {
			t.Errorf("%+v was scanned", s)
		}
	}
}
