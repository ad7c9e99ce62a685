package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// TestMappingsNameADeletedProgramAndItsLibraries names the code of a process
// whose program has been deleted.
func TestMappingsNameADeletedProgramAndItsLibraries(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	content, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "snooze")
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, "100")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	mappings := libcMapped(t, c.Process.Pid)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	names := symbolize.NewNames()
	defer names.Close()
	space := names.Space(mappings)
	seen := map[string]bool{}
	for _, m := range mappings {
		f := space.Frame(m.Start, false)
		seen[f.Module] = true
		switch {
		case m.Path == path:
			if want := fileID(t, sleep); f.BuildID != want && os.Geteuid() == 0 {
				t.Errorf("%+v, want build id %s", f, want)
			}
		case strings.HasPrefix(f.Module, "libc."):
			checkLibc(t, space, m)
		}
	}
	if !seen["snooze"] || !seen["[vdso]"] {
		t.Errorf("modules %v", seen)
	}
}

// libcMapped are the mappings of a process once the loader is done.
func libcMapped(t *testing.T, pid int) []symbolize.Mapping {
	for range 500 {
		if p, err := Open(pid); err == nil {
			mappings, err := p.Mappings()
			for _, m := range mappings {
				if err == nil && strings.HasPrefix(filepath.Base(m.Path), "libc.") {
					return mappings
				}
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("libc is never mapped")
	return nil
}

func fileID(t *testing.T, path string) string {
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return e.FileID()
}

func checkLibc(t *testing.T, space *symbolize.Space, m symbolize.Mapping) {
	e, err := m.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, name := range []string{"printf", "getaddrinfo", "qsort"} {
		s, ok := e.Lookup(name)
		offset, mapped := e.FileOffset(s.Address)
		if !ok || !mapped {
			t.Fatalf("no %s in %s", name, m.Path)
		}
		f := space.Frame(m.Start+offset-m.FileOffset+1, false)
		if f.Function != name || f.Offset != int64(s.Address)+1 || f.BuildID != e.BuildID() {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
