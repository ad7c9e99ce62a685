package procfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestReadIsWhatIsInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{0, 1, 4<<10 - 1, 4 << 10, 4<<10 + 1, 100_000} {
		want := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{0, 1, 5000, 1 << 20} {
			expected := want
			if limit > 0 && limit < len(want) {
				expected = want[:limit]
			}
			if got, err := Read(path, limit); err != nil || !bytes.Equal(got, expected) {
				t.Errorf("%d bytes, at most %d: %d, %v", size, limit, len(got), err)
			}
		}
	}
}

func TestReadOfProcIsWhole(t *testing.T) {
	got, err := Read("/proc/self/maps", 0)
	if err != nil || !bytes.Contains(got, []byte("[vdso]")) || got[len(got)-1] != '\n' {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestReadErrorsAreThoseOfTheFile(t *testing.T) {
	for path, want := range map[string]error{
		filepath.Join(t.TempDir(), "none"): fs.ErrNotExist,
		t.TempDir():                        syscall.EISDIR,
	} {
		_, err := Read(path, 0)
		if of := new(fs.PathError); !errors.Is(err, want) || !errors.As(err, &of) || of.Path != path {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

func TestReadOfWhatHasGoneDidNotLast(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	defer ended.Wait()
	maps := fmt.Sprintf("/proc/%d/maps", ended.Process.Pid)
	for {
		content, lasted, err := ReadLasting(maps, 0)
		if !lasted { // a zombie has the file, and nothing in it
			break
		}
		if err != nil || !bytes.Contains(content, []byte("[vdso]")) && !bytes.Contains(content, []byte("[stack]")) {
			t.Fatalf("it lasted, and is %q, %v", content, err)
		}
	}
	if content, lasted, err := ReadLasting("/proc/self/maps", 0); err != nil || !lasted || !bytes.Contains(content, []byte("[vdso]")) {
		t.Errorf("of this process: %d bytes, lasted: %v, %v", len(content), lasted, err)
	}
}
