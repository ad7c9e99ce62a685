package output

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What has ended is written once, when it has, and is kept no more: a rotation after
// many short lives takes what one after none does.
func TestWhatHasEndedIsWrittenOnceAndForgotten(t *testing.T) {
	d := begin(t, Options{RotateEvery: time.Hour})
	const lives = 500
	ended := int64(2)
	process := func(i int, end *int64) event.Process {
		return event.Process{ID: int64(i), PID: int32(i), StartedNS: 1, EndedNS: end}
	}
	thread := func(i int, end *int64) event.Thread {
		began := int64(i)
		return event.Thread{PID: int32(i), TID: int32(i), StartedNS: &began, EndedNS: end}
	}
	put := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put(d.Write(&event.Batch{Processes: []event.Process{process(0, nil)}})) // lives on
	for round := range 3 {
		for i := 1 + round*lives; i <= (round+1)*lives; i++ {
			put(d.Write(&event.Batch{Processes: []event.Process{process(i, nil)}}))
			put(d.Write(&event.Batch{Threads: []event.Thread{thread(i, nil)}}))
			put(d.Write(&event.Batch{Libraries: []event.Library{{PID: int32(i), Path: "/lib/libc.so.6"}}}))
			put(d.Write(&event.Batch{Processes: []event.Process{process(i, &ended)}}))
			put(d.Write(&event.Batch{Threads: []event.Thread{thread(i, &ended)}}))
			put(d.Write(&event.Batch{Threads: []event.Thread{thread(i, nil)}})) // a sample of it that was read later
		}
		put(d.Rotate())
		if n := len(d.processes.rows) + len(d.processes.leaving); n != 1 {
			t.Errorf("%d processes are kept after rotation %d, one lives", n, round)
		}
		if n := len(d.threads.rows) + len(d.threads.leaving) + len(d.libraries.rows) + len(d.libraries.leaving); n != 0 {
			t.Errorf("%d threads and libraries are kept after rotation %d", n, round)
		}
		for table, least := range map[string]int{"process": 1, "thread": 0, "library": 0} {
			again := rowsOf(t, filepath.Join(d.Dir(), table, recording().ID+".parquet"))
			if again != least {
				t.Errorf("%d rows of %s are written at each rotation, want %d", again, table, least)
			}
		}
	}
	put(d.Write(&event.Batch{Processes: []event.Process{process(1, nil)}})) // told again
	put(d.Write(&event.Batch{Threads: []event.Thread{thread(1, &ended)}}))
	put(d.Close())
	for table, want := range map[string]int{"process": 3*lives + 1, "thread": 3 * lives, "library": 3 * lives} {
		rows := readTable(t, d.Dir(), table)
		if len(rows) != want {
			t.Errorf("%d rows in %s, want %d", len(rows), table, want)
		}
		alive := 0
		for _, row := range rows {
			if row["ended_ns"] == nil {
				alive++
			}
		}
		if table != "library" && alive != map[string]int{"process": 1}[table] {
			t.Errorf("%d rows of %s have no end", alive, table)
		}
	}
	for _, s := range d.Stats() {
		if files := len(visible(t, d.Dir(), s.Table)); s.Table == "process" && (s.Rows != 3*lives+1 || s.Files != files) {
			t.Errorf("the statistics say %+v; %d files", s, files)
		}
	}
}

func rowsOf(t *testing.T, path string) int {
	t.Helper()
	return int(openParquet(t, path).NumRows())
}

// A full disk loses no row of what has ended before what is left of the dataset is
// written at its end.
func TestFinalRowsStayUntilTheyArePublished(t *testing.T) {
	d := begin(t, Options{RotateEvery: time.Hour})
	ended := int64(2)
	if err := d.Write(&event.Batch{Processes: []event.Process{{ID: 6, PID: 6, StartedNS: 1}}}); err != nil {
		t.Fatal(err)
	}
	wait(t, d) // the first is written at once
	if err := d.Write(&event.Batch{Processes: []event.Process{{ID: 7, PID: 7, StartedNS: 1, EndedNS: &ended}}}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(d.Dir(), "process")
	// A directory where the file of final rows is to be: it can not be created.
	hidden := filepath.Join(dir, fmt.Sprintf(".%s-%06d.parquet%s", recording().ID, 1, unfinished))
	if err := os.MkdirAll(filepath.Join(hidden, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if d.Rotate() == nil {
		t.Fatal("nothing failed")
	}
	if err := os.RemoveAll(hidden); err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	if rows := readTable(t, d.Dir(), "process"); len(rows) != 2 {
		t.Errorf("%d rows of a process that lives and one that ended", len(rows))
	}
}
