package unwind

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/directory"
	"github.com/ebpfprof/ebpfprof/internal/testkit/attacker"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/threadclock"
)

func TestACacheThatOthersCanWriteIsNeitherReadNorWritten(t *testing.T) {
	treasure, untouched := attacker.Treasure(t)
	home := attacker.Directory(t)
	table := &Table{Pages: 1, Rules: make([]Rule, 1), Leaves: make([]byte, 3*LeafBytes)}
	ours := Cache{Directory: filepath.Join(t.TempDir(), "unwind")}
	if err := ours.Store("key", table); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(ours.Directory, fileName("key")))
	if err != nil {
		t.Fatal(err)
	}
	attacker.Do(t, home, `mkdir unwind && ln -s "$1" link && cat > unwind/key.unwind && ln -s "$2" unwind/other.unwind`, ours.Directory,
		treasure)
	for _, name := range []string{"unwind", "link"} {
		theirs := Cache{Directory: filepath.Join(home, name)}
		if err := os.WriteFile(filepath.Join(home, "unwind", fileName("key")), good, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := theirs.Load("key"); !errors.Is(err, directory.ErrNotOurs) {
			t.Errorf("loading from %s: %v", name, err)
		}
		if err := theirs.Store("other", table); !errors.Is(err, directory.ErrNotOurs) {
			t.Errorf("storing in %s: %v", name, err)
		}
		theirs.prune(0, 0)
	}
	untouched()
	if _, err := os.Stat(filepath.Join(ours.Directory, fileName("key"))); err != nil {
		t.Errorf("pruned through the attacker's link: %v", err)
	}
	if err := os.Chmod(ours.Directory, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Load("key"); !errors.Is(err, directory.ErrNotOurs) {
		t.Errorf("loading from a directory that all may write: %v", err)
	}
}

// A file whose table would take for ever costs its process that table, and the others
// the time that any file may take.
func TestATableThatTakesTooLongIsGivenUp(t *testing.T) {
	found, _ := filepath.Glob("/lib/*-linux-gnu/libc.so.6")
	if len(found) == 0 {
		t.Skip("no libc where Debian has it")
	}
	e, err := elf.Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	contents, address, _ := e.UnwindFrames()
	c := newCompiler(contents, address, e.Machine())
	c.until = threadclock.Now() + time.Hour
	if _, err := c.rows(); err != nil {
		t.Errorf("in time: %v", err)
	}
	c = newCompiler(contents, address, e.Machine())
	c.until = 1
	if _, err := c.rows(); !errors.Is(err, ErrTooSlow) {
		t.Errorf("late: %v, want ErrTooSlow", err)
	}
	// Without a description there is only the code to look at, and that is long.
	c = newCompiler(contents, address, e.Machine())
	c.until = 1
	looked := 0
	c.fill(e, func([]byte, uint64) []InferredRule { looked++; return nil }, 0, 1<<40, func(row) {})
	if looked > 0 || !c.late {
		t.Errorf("%d pieces of code were looked at late", looked)
	}
}
