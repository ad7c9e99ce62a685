package unwind

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

func TestCacheKeepsWhatWasUsedLast(t *testing.T) {
	c := Cache{Directory: t.TempDir()}
	write := func(name string, size int, age time.Duration) {
		path := filepath.Join(c.Directory, name)
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("today.unwind", 600, time.Hour)
	write("yesterday.unwind", 300, 30*time.Hour)
	write("lastweek.unwind", 200, 170*time.Hour)
	write("lastmonth.unwind", 50, 700*time.Hour)
	write(".unwind-died", 1, 30*time.Hour)
	write(".unwind-writing", 1, time.Minute)
	write("somebody-elses", 5000, 700*time.Hour)
	c.prune(1000, 24*time.Hour)
	var left []string
	entries, err := os.ReadDir(c.Directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".unwind-writing", "somebody-elses", "today.unwind", "yesterday.unwind"}; !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
	c.prune(0, 24*time.Hour)
	if _, err := os.Stat(filepath.Join(c.Directory, "today.unwind")); err != nil {
		t.Errorf("a table that was used today is gone: %v", err)
	}
}

func TestACacheToWhichNothingCameIsNotLookedThrough(t *testing.T) {
	c := Cache{Directory: t.TempDir()}
	abandoned := filepath.Join(c.Directory, temporaryPrefix+"died")
	if err := os.WriteFile(abandoned, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * keptFor)
	if err := os.Chtimes(abandoned, old, old); err != nil {
		t.Fatal(err)
	}
	c.Prune(time.Now().Add(time.Minute))
	if _, err := os.Stat(abandoned); err != nil {
		t.Errorf("it was looked through: %v", err)
	}
	c.Prune(time.Now().Add(-time.Minute))
	if _, err := os.Stat(abandoned); err == nil {
		t.Error("what a writer left that died is still there, though files have come")
	}
}

func TestTableThatIsUsedCountsAsNew(t *testing.T) {
	c := Cache{Directory: t.TempDir()}
	s := &section{}
	s.armCommon("zR")
	s.function(0x10000, 0x20)
	compiler := newCompiler(s.Bytes(), 0, elf.MachineARM64)
	rows, err := compiler.rows()
	if err != nil {
		t.Fatal(err)
	}
	table := &Table{Machine: elf.MachineARM64, Rules: compiler.rules}
	if err := table.layOut(rows); err != nil {
		t.Fatal(err)
	}
	if err := c.Store("key", table); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-100 * time.Hour)
	if err := os.Chtimes(filepath.Join(c.Directory, fileName("key")), old, old); err != nil {
		t.Fatal(err)
	}
	loaded, err := c.Load("key")
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	if info, err := os.Stat(filepath.Join(c.Directory, fileName("key"))); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("a table that was loaded now still counts as unused: %v, %v", info.ModTime(), err)
	}
}
