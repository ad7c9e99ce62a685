package counter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHistoryIsOfTheLastSeconds: what is older is forgotten, what was taken is not taken
// again, and of what has ended nothing is known.
func TestHistoryIsOfTheLastSeconds(t *testing.T) {
	root, now := t.TempDir(), int64(time.Hour)
	h := NewHistory(Files(root), func() int64 { return now })
	statm := func(pid int, text string) {
		t.Helper()
		path := filepath.Join(root, "proc", fmt.Sprint(pid), "statm")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page := float64(os.Getpagesize())
	h.Follow(7)
	h.Follow(8)
	h.Follow(9)                 // has no file
	statm(8, "0 0 0 0 0 0 0\n") // its memory is gone
	looks := int(HistoryFor/historyEvery) + 50
	for i := range looks {
		statm(7, fmt.Sprintf("%d %d 10 2 0 300 0\n", 1000+i, 100+i))
		now += int64(historyEvery)
		h.Look()
	}
	now += int64(historyEvery)
	readings := h.Take()
	kept := int(HistoryFor / historyEvery)
	if len(readings) != 3*kept {
		t.Fatalf("%d readings, want 3 of each of %d looks", len(readings), kept)
	}
	last := readings[len(readings)-3:]
	for i, want := range []struct {
		name  string
		value float64
	}{{"process_memory_resident", page * float64(99+looks)}, {"process_memory_shared", page * 10}, {"process_memory_virtual",
		page * float64(999+looks)}} {
		r := last[i]
		if r.Name != want.name || r.Value != want.value || r.Source != "process" || r.PID == nil || *r.PID != 7 || r.TSNS != now ||
			r.PeriodNS == nil || *r.PeriodNS != int64(historyEvery) {
			t.Errorf("%+v, want %s %v of pid 7", r, want.name, want.value)
		}
	}
	if readings[0].TSNS != now-int64(HistoryFor)+int64(historyEvery) {
		t.Errorf("the first reading is %v old", time.Duration(now-readings[0].TSNS))
	}
	if again := h.Take(); len(again) != 0 {
		t.Errorf("%d readings again, at the same moment", len(again))
	}
	now += int64(historyEvery)
	if again := h.Take(); len(again) != 3 {
		t.Errorf("%d readings the second time, want those of one look", len(again))
	}
	h.Forget(7)
	if gone := h.Take(); len(gone) != 0 {
		t.Errorf("%d readings of a process that has ended", len(gone))
	}
}

// TestHistoryOutlivesItsProcessForAWhile: a refusal is read when the job that it was told
// may be gone. What it held is known then, once, and is not another's with its number.
func TestHistoryOutlivesItsProcessForAWhile(t *testing.T) {
	root, now := t.TempDir(), int64(time.Hour)
	h := NewHistory(Files(root), func() int64 { return now })
	statm := func(pid int) {
		t.Helper()
		path := filepath.Join(root, "proc", fmt.Sprint(pid), "statm")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("3 2 1 0 0 0 0\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	statm(7)
	h.Follow(7)
	h.Forget(7)
	now += int64(historyEvery)
	h.Follow(7) // the number again
	if readings := h.Take(); len(readings) != 9 || readings[0].TSNS >= readings[3].TSNS || readings[3].PeriodNS != nil {
		t.Errorf("%+v, want those of two processes with one number, of one look and of two", readings)
	}
	h.Forget(7)
	if again := h.Take(); len(again) != 0 {
		t.Errorf("%d readings twice", len(again))
	}
	h.Follow(7)
	h.Forget(7)
	now += int64(HistoryFor)
	if old := h.Take(); len(old) != 0 {
		t.Errorf("%d readings of what ended %s ago", len(old), HistoryFor)
	}
	for pid := range 2 * historyLooks {
		statm(pid + 1)
		h.Follow(pid + 1)
		h.Forget(pid + 1)
	}
	if kept := len(h.Take()); kept != 3*historyLooks {
		t.Errorf("%d readings of %d processes that have ended, want those of the last %d", kept, 2*historyLooks, historyLooks)
	}
}

// Of many processes each is looked at, in turn.
func TestHistoryLooksAtManyProcessesInTurn(t *testing.T) {
	root, now := t.TempDir(), int64(time.Hour)
	h := NewHistory(Files(root), func() int64 { now += int64(historyEvery) / 9; return now })
	for pid := range 2 * historyLooks {
		path := filepath.Join(root, "proc", fmt.Sprint(pid+1), "statm")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("3 2 1 0 0 0 0\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		h.Follow(pid + 1)
		h.Follow(pid + 1)
	}
	h.Look()
	seen := map[int32]int{}
	for _, r := range h.Take() {
		seen[*r.PID]++
	}
	for pid := range int32(2 * historyLooks) {
		if seen[pid+1] != 6 {
			t.Fatalf("%d readings of pid %d after two looks at half of them, want those of one and the first", seen[pid+1], pid+1)
		}
	}
}

// TestHistoryKeepsNoFileOfWhoHasEnded, nor more than its share, nor any when it is closed.
func TestHistoryKeepsNoFileOfWhoHasEnded(t *testing.T) {
	root := t.TempDir()
	h := NewHistory(Files(root), func() int64 { return 1 })
	open := func() (n int) {
		t.Helper()
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, root) {
				n++
			}
		}
		return n
	}
	for pid := 1; pid <= historyFiles+5; pid++ {
		path := filepath.Join(root, "proc", fmt.Sprint(pid), "statm")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("3 2 1 0 0 0 0\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		h.Follow(pid)
	}
	if n := open(); n != historyFiles {
		t.Errorf("%d files are open, want %d", n, historyFiles)
	}
	if n := len(h.Take()); n != 3*(historyFiles+5) {
		t.Errorf("%d readings, want those of all processes", n)
	}
	h.Forget(1)
	if n := open(); n != historyFiles-1 {
		t.Errorf("%d files are open after one process has ended, want %d", n, historyFiles-1)
	}
	h.Close()
	if n := open(); n != 0 {
		t.Errorf("%d files are open after all", n)
	}
}
