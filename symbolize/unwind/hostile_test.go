package unwind

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/attacker"
	"github.com/ebpfprof/ebpfprof/internal/directory"
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
	attacker.Do(t, home, `mkdir unwind && ln -s "$1" link && cat > unwind/key.unwind && ln -s "$2" unwind/other.unwind`, ours.Directory, treasure)
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
