package output

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/attacker"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// modes lists the modes and owners that are in a dataset.
func modes(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		owner := "root's"
		if info.Sys().(*syscall.Stat_t).Uid == attacker.ID {
			owner = "nobody's"
		}
		found[info.Mode().String()+" "+owner] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func writeSome(t *testing.T, d *Dataset) {
	t.Helper()
	err := errors.Join(d.Session(recording()), d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 1}}}),
		d.Write(&event.Batch{Spans: someSpans(10)}), d.Rotate())
	if err != nil {
		t.Fatal(err)
	}
}

func TestADatasetIsItsOwnersAlone(t *testing.T) {
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	dir := filepath.Join(attacker.Directory(t), "d")
	d, err := Create(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	writeSome(t, d)
	if got := modes(t, dir); len(got) != 2 || !got["drwx------ root's"] || !got["-rw------- root's"] {
		t.Errorf("modes are %v", got)
	}
	if err := attacker.Command(t, "/", `ls "$1" || cat "$1/session/"*`, dir).Run(); err == nil {
		t.Error("another user can read it")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestUnderSudoADatasetBelongsToItsCaller(t *testing.T) {
	home := attacker.Directory(t)
	t.Setenv("SUDO_UID", "65534")
	t.Setenv("SUDO_GID", "65534")
	d, err := Create(filepath.Join(home, "runs", "d"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	writeSome(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if got := modes(t, d.Dir()); len(got) != 2 || !got["drwx------ nobody's"] || !got["-rw------- nobody's"] {
		t.Errorf("modes are %v", got)
	}
	attacker.Do(t, home, "cat runs/d/span/*.parquet > /dev/null && rm -r runs")
}

func TestWhoOwnsTheDirectoryAboveCannotLeadTheTracerToAnotherFile(t *testing.T) {
	treasure, untouched := attacker.Treasure(t)
	home := attacker.Directory(t)
	d, err := Create(filepath.Join(home, "d"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	attacker.Do(t, home, `mv d away && mkdir d d/session d/span && ln -s "$1" d/views.sql && ln -s "$1" d/session/.test.parquet.inprogress &&
		ln -s "$1" d/session/.schema.parquet.inprogress && ln -s "$1" d/span/.test-000001.parquet.inprogress && ln -s "$(dirname "$1")" d/stack`,
		treasure)
	writeSome(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	untouched()
	if entries, _ := os.ReadDir(filepath.Dir(treasure)); len(entries) != 1 {
		t.Errorf("beside root's file there is %v", entries)
	}
	if n := len(readTable(t, filepath.Join(home, "away"), "span")); n != 10 {
		t.Errorf("%d spans in the directory that was begun", n)
	}
}

func TestWhoOwnsTheDatasetCannotLeadTheTracerToAnotherFile(t *testing.T) {
	treasure, untouched := attacker.Treasure(t)
	home := attacker.Directory(t)
	t.Setenv("SUDO_UID", "65534")
	t.Setenv("SUDO_GID", "65534")
	d, err := Create(filepath.Join(home, "d"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	writeSome(t, d)
	attacker.Do(t, d.Dir(), `ln -s "$1" span/.test-000002.parquet.inprogress && rm -r memory && ln -s "$(dirname "$1")" memory`, treasure)
	if err := errors.Join(d.Write(&event.Batch{Spans: someSpans(10)}), d.Rotate()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(d.Write(&event.Batch{Memory: make([]event.Memory, 1)}), d.Rotate()); err == nil {
		t.Error("rows were written where a link leads")
	}
	if err := d.Discard(); err == nil {
		t.Error("the error is gone")
	}
	untouched()
	if entries, _ := os.ReadDir(filepath.Dir(treasure)); len(entries) != 1 {
		t.Errorf("beside root's file there is %v", entries)
	}
}

func TestADirectoryThatIsNotOursIsRefused(t *testing.T) {
	home := attacker.Directory(t)
	attacker.Do(t, home, `mkdir theirs && ln -s "$1" link`, t.TempDir())
	for _, name := range []string{"theirs", "link"} {
		_, err := Create(filepath.Join(home, name), Options{})
		if !errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDiscardTakesAwayWhatWasWrittenAndNothingElse(t *testing.T) {
	treasure, untouched := attacker.Treasure(t)
	base := t.TempDir()
	for _, closed := range []bool{false, true} {
		d, err := Create(filepath.Join(base, "runs", "d"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		writeSome(t, d)
		if closed {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.RemoveAll(filepath.Join(d.Dir(), "flow")), os.Symlink(filepath.Dir(treasure), filepath.Join(d.Dir(),
			"flow"))); err != nil {
			t.Fatal(err)
		}
		_ = d.Discard()
		if left, _ := os.ReadDir(base); len(left) > 0 && closed {
			t.Errorf("left: %v", left)
		}
		untouched()
		os.RemoveAll(filepath.Join(base, "runs"))
	}
}

func TestRewritingFollowsNoLinkAndKeepsTheOwner(t *testing.T) {
	treasure, untouched := attacker.Treasure(t)
	home := attacker.Directory(t)
	t.Setenv("SUDO_UID", "65534")
	t.Setenv("SUDO_GID", "65534")
	d, err := Create(filepath.Join(home, "d"), Options{Access: Access{Mode: 0o640, UID: attacker.ID, GID: attacker.ID}})
	if err != nil {
		t.Fatal(err)
	}
	rows := []event.Stack{{ID: 1, Status: "complete"}}
	if err := errors.Join(d.Session(recording()), d.Write(&event.Batch{Stacks: rows}), d.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(d.Dir(), "stack", "test-000001.parquet")
	attacker.Do(t, d.Dir(),
		`ln -s "$1" stack/.test-000001.parquet.inprogress && ln -s stack other && ln -s test-000001.parquet stack/link.parquet`, treasure)
	t.Setenv("SUDO_UID", "0") // root, in a dataset of somebody's
	if err := RewriteStacks(path, rows); err != nil {
		t.Fatal(err)
	}
	untouched()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != attacker.ID || info.Mode() != 0o640 {
		t.Errorf("the new file is %v of user %d", info.Mode(), stat.Uid)
	}
	for _, link := range []string{"other/test-000001.parquet", "stack/link.parquet"} {
		if err := RewriteStacks(filepath.Join(d.Dir(), link), rows); err == nil {
			t.Errorf("%s was rewritten", link)
		}
	}
}
