package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testfile"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func TestTheSpoolKeepsTheNewest(t *testing.T) {
	spool := t.TempDir()
	for _, name := range []string{"20260101T000000Z-a", "20260102T000000Z-b", "20260103T000000Z-c"} {
		testfile.Write(t, filepath.Join(spool, name, "span", "0.parquet"), strings.Repeat("x", 1000))
	}
	if err := MakeRoom(spool, 2500); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(spool, "*"))
	if len(left) != 2 || !strings.HasSuffix(left[0], "-b") {
		t.Errorf("%q", left)
	}
}

// Without a spool nothing is kept, and nothing goes wrong.
func TestWithoutASpoolARecordingHasNoBytes(t *testing.T) {
	var none *Raw
	none.Begin(event.Recording{})
	none.Discard()
	if bytes, err := none.End(); bytes != 0 || err != nil {
		t.Errorf("%d, %v", bytes, err)
	}
}

// What goes while the spool is measured is no error.
func TestTheSpoolIsMeasuredWhileItIsEmptied(t *testing.T) {
	if held, err := Bytes(filepath.Join(t.TempDir(), "none")); held != 0 || err != nil {
		t.Errorf("%d, %v", held, err)
	}
	spool := t.TempDir()
	for i := range 3 {
		testfile.Write(t, filepath.Join(spool, fmt.Sprint(i), "f"), "12345")
	}
	if err := os.Symlink("/", filepath.Join(spool, "link")); err != nil {
		t.Fatal(err)
	}
	if held, err := Bytes(spool); held != 15 || err != nil {
		t.Errorf("%d, %v", held, err)
	}
}

// Windows outlast whoever took them; a clock that is put back makes none of them later than it
// is, and jobs that have been over for long leave nothing.
func TestWindowsAreRemembered(t *testing.T) {
	now, spool := time.Unix(1_800_000_000, 0), t.TempDir()
	for _, job := range []string{"train", "../../etc/passwd", strings.Repeat("x", 10<<20), "a\x00\n\xff"} {
		if at, err := LastWindow(spool, job, now); !at.IsZero() || err != nil {
			t.Fatalf("before the first: %v, %v", at, err)
		}
		if err := KeepWindow(spool, job, now); err != nil {
			t.Fatal(err)
		}
		if at, err := LastWindow(spool, job, now.Add(time.Minute)); !at.Equal(now) || err != nil {
			t.Errorf("%v, %v", at, err)
		}
	}
	earlier := now.Add(-time.Hour)
	if at, err := LastWindow(spool, "train", earlier); !at.Equal(earlier) || err != nil {
		t.Errorf("after the clock was put back: %v, %v", at, err)
	}
	if err := KeepWindow(spool, "other", now.Add(forgotten+time.Second)); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Join(spool, windowsName)); len(left) != 1 {
		t.Errorf("%d files are left of jobs that have been over for long", len(left))
	}
	if err := MakeRoom(spool, 0); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Join(spool, windowsName)); len(left) != 1 {
		t.Error("who makes room for raw events ends the cool-down")
	}
}
