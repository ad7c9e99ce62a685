package directory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/attacker"
)

func mustMake(t *testing.T, path string, a Access) *Directory {
	t.Helper()
	d, err := Make(path, a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// check holds what Lstat says of a path against mode and owner.
func check(t *testing.T, path string, mode fs.FileMode, uid, gid int) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	if info.Mode().Perm() != mode || int(stat.Uid) != uid || int(stat.Gid) != gid {
		t.Errorf("%s is %v of %d:%d, want %v of %d:%d", path, info.Mode().Perm(), stat.Uid, stat.Gid, mode, uid, gid)
	}
}

func TestWhatIsMadeIsOursAloneWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o22, 0o77} {
		before := syscall.Umask(umask)
		path := filepath.Join(t.TempDir(), "a", "b")
		d := mustMake(t, path, Private)
		sub, err := d.Directory("table")
		if err != nil {
			t.Fatal(err)
		}
		f, err := sub.Create("file")
		syscall.Umask(before)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		sub.Close()
		check(t, path, 0o700, os.Geteuid(), os.Getegid())
		check(t, filepath.Join(path, "table"), 0o700, os.Geteuid(), os.Getegid())
		check(t, filepath.Join(path, "table", "file"), 0o600, os.Geteuid(), os.Getegid())
	}
}

func TestUnderSudoAllThatIsMadeBelongsToWhoCalledIt(t *testing.T) {
	home := attacker.Directory(t)
	t.Setenv("SUDO_UID", "65534")
	t.Setenv("SUDO_GID", "65534")
	path := filepath.Join(home, "a", "b")
	d := mustMake(t, path, Invoker())
	f, err := d.Create("file")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	check(t, filepath.Join(home, "a"), 0o755, attacker.ID, attacker.ID)
	check(t, path, 0o700, attacker.ID, attacker.ID)
	check(t, filepath.Join(path, "file"), 0o600, attacker.ID, attacker.ID)
	attacker.Do(t, home, "cat a/b/file && rm -r a")

	roots := t.TempDir() // where the user could not have made a directory, those on the way are not his
	mustMake(t, filepath.Join(roots, "a", "b"), Invoker())
	check(t, filepath.Join(roots, "a"), 0o755, 0, 0)
	check(t, filepath.Join(roots, "a", "b"), 0o700, attacker.ID, attacker.ID)
}

func TestAModeOpensToAGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it changes groups")
	}
	path := filepath.Join(t.TempDir(), "d")
	d := mustMake(t, path, Access{Mode: 0o640, UID: -1, GID: attacker.ID})
	f, err := d.Create("file")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	check(t, path, 0o750, 0, attacker.ID)
	check(t, filepath.Join(path, "file"), 0o640, 0, attacker.ID)
}

func TestTheGroupOfADirectoryThatGivesItsOwnStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it changes groups")
	}
	above := t.TempDir()
	if err := errors.Join(os.Chown(above, 0, attacker.ID), os.Chmod(above, 0o750|fs.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	d := mustMake(t, filepath.Join(above, "d"), Access{Mode: 0o640, UID: -1, GID: -1})
	sub, err := d.Directory("table")
	if err != nil {
		t.Fatal(err)
	}
	sub.Close()
	check(t, filepath.Join(above, "d", "table"), 0o750, 0, attacker.ID)
}

func TestADirectoryOfAnotherUserIsRefused(t *testing.T) {
	home := attacker.Directory(t)
	_, untouched := attacker.Treasure(t)
	attacker.Do(t, home, `mkdir theirs && ln -s /etc link && ln -s "$PWD/theirs" down && mkdir open && chmod 777 open`)
	for path, words := range map[string]string{
		"theirs":         "belongs to user nobody",
		"link":           "a link that another user can have made",
		"link/d":         "a link that another user can have made",
		"down/d":         "a link that another user can have made",
		"open/../theirs": "belongs to user nobody",
	} {
		d, err := Make(filepath.Join(home, "x")+"/../"+path, Private)
		if err == nil {
			d.Close()
		}
		if !errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Lstat("/etc/d"); err == nil {
		t.Error("a directory was made where the attacker's link leads")
	}
	untouched()
	d := mustMake(t, filepath.Join(home, "theirs", "d"), Private) // theirs to take away, not to look into
	check(t, filepath.Join(home, "theirs", "d"), 0o700, 0, 0)
	d.Close()
	open := filepath.Join(t.TempDir(), "open")
	if err := errors.Join(os.Mkdir(open, 0o755), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(open, Private); !errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), "every user may write") {
		t.Errorf("a directory that all may write: %v", err)
	}
}

func TestLinksOfOursAreFollowed(t *testing.T) {
	base := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(base, "disk"), 0o755), os.Symlink("disk", filepath.Join(base, "link")),
		os.Symlink(base, filepath.Join(base, "disk", "up")), os.Symlink("loop", filepath.Join(base, "loop"))); err != nil {
		t.Fatal(err)
	}
	mustMake(t, filepath.Join(base, "link", "up", "link", "d"), Private)
	check(t, filepath.Join(base, "disk", "d"), 0o700, os.Geteuid(), os.Getegid())
	if _, err := Make(filepath.Join(base, "loop", "d"), Private); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop of links: %v", err)
	}
}

func TestNamesInADirectoryLeadNowhereElse(t *testing.T) {
	treasure, untouched := attacker.Treasure(t)
	home := attacker.Directory(t)
	t.Setenv("SUDO_UID", "65534") // who may call sudo is not root for that
	t.Setenv("SUDO_GID", "65534")
	d := mustMake(t, filepath.Join(home, "d"), Invoker())
	attacker.Do(t, d.Path(), `ln -s "$1" file && ln -s "$1" other && ln -s "$(dirname "$1")" table && mkfifo pipe`, treasure)
	f, err := d.Create("file")
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("Parquet")
	f.Close()
	check(t, filepath.Join(d.Path(), "file"), 0o600, attacker.ID, attacker.ID)
	if err := d.Rename("file", "other"); err != nil {
		t.Error(err)
	}
	if sub, err := d.Directory("table"); err == nil {
		sub.Close()
		t.Error("a link was opened as a directory")
	}
	for _, name := range []string{"table", "pipe", "..", ".", "", "../d/other"} {
		if f, err := d.Open(name); err == nil {
			f.Close()
			t.Errorf("%q was opened", name)
		}
	}
	if err := d.Remove("table"); err != nil {
		t.Error(err)
	}
	untouched()
}

// An attacker who wins every race: after the directory was made, another one has
// its name.
func TestADirectoryThatWasExchangedIsFoundOut(t *testing.T) {
	home := attacker.Directory(t)
	if err := os.Mkdir(filepath.Join(home, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	attacker.Do(t, home, "mv d away && mkdir d")
	for name, path := range map[string]string{"the attacker's": "d", "one of root's with something in it": "full"} {
		if path == "full" {
			if err := os.MkdirAll(filepath.Join(home, "full", "secret"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Open(filepath.Join(home, path))
		if err != nil {
			t.Fatal(err)
		}
		if err := (&Directory{file: f, access: Access{Mode: 0o600, UID: attacker.ID, GID: attacker.ID}}).adopt(); !errors.Is(err, ErrNotOurs) {
			t.Errorf("%s: %v", name, err)
		}
		f.Close()
	}
	check(t, filepath.Join(home, "full"), 0o700, 0, 0)
}

func TestUnmakeTakesAwayWhatMakeMadeAndNothingElse(t *testing.T) {
	base := t.TempDir()
	mustMake(t, filepath.Join(base, "there"), Private)
	d := mustMake(t, filepath.Join(base, "there", "a", "b"), Private)
	if err := d.Unmake(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Join(base, "there")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	d = mustMake(t, filepath.Join(base, "there", "a", "b"), Private)
	if err := os.WriteFile(filepath.Join(base, "there", "a", "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Unmake(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(base, "there", "a", "mine")); err != nil {
		t.Error(err)
	}
	if _, err := Make(filepath.Join(base, "there", "a", "mine", "d"), Private); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
}

func TestACacheIsBelievedOnlyWhereNobodyElseWrites(t *testing.T) {
	base := t.TempDir()
	path := filepath.Join(base, "cache", "plans")
	if _, err := OpenCache(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	d, err := MakeCache(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Write("a", ".a-", []byte("one")), d.Write("a", ".a-", []byte("two")), d.Close()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(path, "a")); err != nil || string(b) != "two" {
		t.Errorf("%q, %v", b, err)
	}
	if entries, _ := os.ReadDir(path); len(entries) != 1 {
		t.Errorf("in it: %v", entries)
	}
	check(t, filepath.Join(path, "a"), 0o600, os.Geteuid(), os.Getegid())
	for _, mode := range []fs.FileMode{0o720, 0o702, 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenCache(path); !errors.Is(err, ErrNotOurs) {
			t.Errorf("%v: %v", mode, err)
		}
	}
	home := attacker.Directory(t)
	t.Setenv("SUDO_UID", "65534")
	t.Setenv("SUDO_GID", "65534")
	attacker.Do(t, home, "mkdir plans")
	if _, err := OpenCache(filepath.Join(home, "plans")); !errors.Is(err, ErrNotOurs) {
		t.Errorf("of the user who called sudo: %v", err)
	}
}
