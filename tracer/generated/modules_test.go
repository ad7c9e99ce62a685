package generated

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// cacheOf is Inductor's directory of one process; reads are what was read of it.
type cacheOf struct {
	files map[string]time.Time
	gone  bool // the process
	left  bool // what it named is there
	reads []string
}

const self = 1

func (c *cacheOf) modules() *Modules {
	return NewModules(Files{
		Read: func(pid int, path string, _ int64) ([]byte, error) {
			if _, there := c.files[path]; !there || pid != self && c.gone || pid == self && !c.left {
				return nil, fs.ErrNotExist
			}
			c.reads = append(c.reads, path)
			return []byte(source), nil
		},
		List: func(_ int, path string) (entries []process.Entry, _ error) {
			seen := map[string]bool{}
			for name, modified := range c.files {
				for ; name != "/"; name = filepath.Dir(name) {
					if filepath.Dir(name) == path && !seen[name] {
						seen[name] = true
						_, file := c.files[name]
						entries = append(entries, process.Entry{Name: filepath.Base(name), Modified: modified, Directory: !file})
					}
				}
			}
			return entries, nil
		},
		Ours: func(int) bool { return c.left },
		Self: self,
	})
}

func mapped(paths ...string) (libraries []*process.Library) {
	for _, path := range paths {
		libraries = append(libraries, &process.Library{Path: path})
	}
	return libraries
}

func known(name string) bool { return name == "add" || name == "gelu" }

// The decoder may come to the first call of a kernel when the job has ended and taken its
// files with it.
func TestAModuleIsReadWhenItsLibraryIsMapped(t *testing.T) {
	now := time.Unix(1e9, 0)
	c := cacheOf{files: map[string]time.Time{
		"/cache/ab/cabc.py": now.Add(-10 * time.Second), "/cache/cd/ccdx.main.so": now, "/cache/cd/ccdx.main.cpp": now.Add(-time.Second),
		"/cache/ef/cefg.py": now.Add(-2 * maxApart), "/cache/fxgraph/xy.py": now, "/cache/notes.py": now,
	}}
	m := c.modules()
	for range 2 { // as often as the maps change
		m.Mapped(7, mapped("/usr/lib/libc.so.6", "/cache/cd/ccdx.main.so"))
	}
	if !slices.Equal(c.reads, []string{"/cache/ab/cabc.py"}) {
		t.Errorf("read: %q", c.reads)
	}
	c.gone = true
	call := lineOf(t, "cpp_fused_add_gelu_0(buf0", 1)
	// The cache may be called otherwise by the job: by a symbolic link.
	for _, path := range []string{"/cache/ab/cabc.py", "/link/ab/cabc.py"} {
		if k, ok := m.Kernel(7, path, call, known); !ok || k.Name != "cpp_fused_add_gelu_0" {
			t.Errorf("%s: %+v, %v", path, k, ok)
		}
	}
	for _, other := range []struct {
		pid  uint32
		path string
	}{{8, "/cache/ab/cabc.py"}, {7, "/cache/ef/cefg.py"}, {7, "/cache/ab/other.py"}} {
		if k, ok := m.Kernel(other.pid, other.path, call, known); ok {
			t.Errorf("%+v was never read, and calls %+v", other, k)
		}
	}
}

// What a process named may still be there when it is not.
func TestAModuleThatOutlastsItsProcessIsReadAfterIt(t *testing.T) {
	for _, ours := range []bool{true, false} {
		c := cacheOf{files: map[string]time.Time{"/cache/cd/ccdx.main.so": {}}, left: ours}
		m := c.modules()
		m.Mapped(7, mapped("/cache/cd/ccdx.main.so"))
		c.files["/cache/ab/cabc.py"], c.gone = time.Time{}, true
		call := lineOf(t, "cpp_fused_add_gelu_0(buf0", 1)
		if k, ok := m.Kernel(7, "/cache/ab/cabc.py", call, known); ok != ours {
			t.Errorf("where the files are ours (%v): %+v, %v", ours, k, ok)
		}
		m.Forget(7)
		if k, ok := m.Kernel(7, "/cache/ab/other.py", call, known); ok {
			t.Errorf("of a process that was forgotten: %+v", k)
		}
	}
}

// That a module could not be read once is not for ever.
func TestAModuleThatCouldNotBeReadIsTriedAgain(t *testing.T) {
	tries := 0
	m := NewModules(Files{Read: func(int, string, int64) ([]byte, error) {
		if tries++; tries < 3 {
			return nil, errors.New("not now")
		}
		return []byte(source), nil
	}})
	call, named := lineOf(t, "cpp_fused_add_gelu_0(buf0", 1), 0
	for range 100 {
		if _, ok := m.Kernel(7, "module.py", call, known); ok {
			named++
		}
	}
	if tries != 3 || named != 97 { // at the first, second and fourth call
		t.Errorf("%d tries, %d calls of 100 have a name", tries, named)
	}
}

// Inductor's directory may be large, and so may be what a job makes of it.
func TestWhatIsReadBesideALibraryIsBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	c := cacheOf{files: map[string]time.Time{"/cache/cd/ccdx.main.so": now}}
	for i := range 4 * maxBeside {
		c.files[fmt.Sprintf("/cache/ab/c%03d.py", i)] = now.Add(time.Duration(i) * time.Second)
	}
	c.modules().Mapped(7, mapped("/cache/cd/ccdx.main.so"))
	if len(c.reads) != maxBeside || c.reads[0] != "/cache/ab/c000.py" || !slices.IsSorted(c.reads) {
		t.Errorf("%d were read: %q", len(c.reads), c.reads)
	}
}
