package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

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
