package process

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestReadFileReadsRegularFilesOfBoundedSize(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	content := bytes.Repeat([]byte("0123456789"), 100)
	if err := os.WriteFile(at("file"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("file"), at("link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "link"} {
		got, err := ReadFile(os.Getpid(), at(name), int64(len(content)))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	for name, limit := range map[string]int64{
		at("file"):      int64(len(content)) - 1,
		at("fifo"):      1 << 20, // to open it would wait for a writer
		at("none"):      1 << 20,
		dir:             1 << 20,
		"/dev/zero":     1 << 20,
		"relative/none": 1 << 20,
		"":              1 << 20,
	} {
		if got, err := ReadFile(os.Getpid(), name, limit); err == nil {
			t.Errorf("%q, at most %d: %d bytes", name, limit, len(got))
		}
	}
	if _, err := ReadFile(os.Getpid(), at("none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestListDirectoryListsWhatAProcessNames(t *testing.T) {
	dir := t.TempDir()
	when := time.Unix(1e9, 0)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), os.Mkdir(filepath.Join(dir, "directory"), 0o700),
		os.Symlink(dir, filepath.Join(dir, "link")), os.Chtimes(filepath.Join(dir, "file"), when, when)); err != nil {
		t.Fatal(err)
	}
	entries, err := ListDirectory(os.Getpid(), dir)
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	if err != nil || len(entries) != 3 || entries[0].Name != "directory" || !entries[0].Directory || entries[1].Directory ||
		!entries[1].Modified.Equal(when) || entries[2].Name != "link" || entries[2].Directory {
		t.Errorf("%+v, %v", entries, err)
	}
	for _, path := range []string{filepath.Join(dir, "file"), filepath.Join(dir, "none"), ""} {
		if entries, err := ListDirectory(os.Getpid(), path); err == nil {
			t.Errorf("%q: %+v", path, entries)
		}
	}
}

func TestWhichProcessesShareOurFiles(t *testing.T) {
	if !SharesFiles(os.Getpid()) {
		t.Error("we do not name the files that we name")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	for name, attributes := range map[string]*syscall.SysProcAttr{"gone": nil, "namespace": {Unshareflags: syscall.CLONE_NEWNS}} {
		sleeping := exec.Command("sleep", "60")
		sleeping.SysProcAttr = attributes
		if err := sleeping.Start(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if shares := SharesFiles(sleeping.Process.Pid); shares != (name == "gone") {
			t.Errorf("%s: it is said to name our files: %v", name, shares)
		}
		_ = sleeping.Process.Kill()
		_ = sleeping.Wait()
		if SharesFiles(sleeping.Process.Pid) {
			t.Error("a process that has gone names our files")
		}
	}
}
