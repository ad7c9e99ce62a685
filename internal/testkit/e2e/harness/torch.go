package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Torch is a PyTorch whose jobs are traced.
type Torch struct {
	Name    string
	Python  string // the interpreter that has it
	install string // what installs it
	library string // how the path of its libtorch_cpu ends
}

// The two that are traced: Debian's, and PyPI's, of two years and two ABIs.
var (
	Debian = Torch{"torch1.13", "/usr/bin/python3", "make deps", "-linux-gnu/libtorch_cpu.so"}
	PyPI   = Torch{"torch2.15", filepath.Join(Cache(), "torch-venv", "bin", "python"), "make torch", "torch/lib/libtorch_cpu.so"}
)

// EachTorch runs a test under both, with the machine alone.
func EachTorch(t *testing.T, test func(*testing.T, Torch)) {
	t.Helper()
	NeedKernel(t)
	for _, v := range []Torch{Debian, PyPI} {
		t.Run(v.Name, func(t *testing.T) {
			v.Need(t)
			test(t, v)
		})
	}
}

// BesideEachTorch runs a test under both, beside others and itself. It may trace other
// libraries, too.
func BesideEachTorch(t *testing.T, test func(*testing.T, Torch), libraries ...string) {
	t.Helper()
	NeedKernel(t)
	t.Parallel()
	for _, v := range []Torch{Debian, PyPI} {
		t.Run(v.Name, func(t *testing.T) {
			v.Beside(t, libraries...)
			test(t, v)
		})
	}
}

// Beside lets a test trace this torch, and other libraries, beside other tests.
func (v Torch) Beside(t *testing.T, libraries ...string) {
	t.Helper()
	Beside(t, append(libraries, v.Name)...)
	v.Need(t)
}

// Need skips where this torch is not installed. The first test that needs it has it
// warmed up.
func (v Torch) Need(t *testing.T) {
	t.Helper()
	NeedKernel(t)
	find := "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
	if err := exec.Command(v.Python, "-c", find).Run(); err != nil {
		t.Skipf("%s is not installed: run `%s`", v.Name, v.install)
	}
	once, _ := warmed.LoadOrStore(v.Name, &sync.Once{})
	once.(*sync.Once).Do(func() { v.warm(t) })
}

// warmed has a sync.Once for each torch.
var warmed sync.Map

// warm has the libraries planned and their unwind tables compiled, which a new
// build does once and keeps. A job started under `run` may make its first calls
// meanwhile, and they are not recorded: the tests that count come after. On a busy
// machine that takes long: it is done when a job that ends after some seconds was
// probed before.
func (v Torch) warm(t *testing.T) {
	t.Helper()
	for _, seconds := range []int{3, 10, 60} {
		dataset := filepath.Join(Scratch, "warm-"+v.Name)
		script := fmt.Sprintf("import torch, time; time.sleep(%d); torch.ones(3) + 1", seconds)
		c := exec.Command(Binary, "run", "--quiet", "--budget", "off", "--output", dataset, "--", v.Python, "-c", script)
		out, err := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); err != nil && code != 5 { // 5: no call was recorded
			t.Fatalf("warming up: %v\n%s", err, out)
		}
		seen := err == nil && (&Recording{Dataset: dataset}).Number(t, "SELECT count(*) FROM span WHERE layer = 'op' AND name = 'aten::ones'") > 0
		os.RemoveAll(dataset)
		if seen {
			return
		}
	}
	t.Fatalf("%s: no call of a job that makes one after a minute was recorded", v.Name)
}

// Job is the command line of a script of testdata/jobs under this torch.
func (v Torch) Job(script string, args ...string) []string {
	return append([]string{v.Python, Script(script)}, args...)
}

// Script is the path of a job of testdata/jobs.
func Script(name string) string { return filepath.Join("..", "..", "..", "testdata", "jobs", name) }

// Alone waits until no process maps this libtorch, which other work on the
// machine may do, and reports whether that came true.
func (v Torch) Alone(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		pids, _ := filepath.Glob("/proc/[0-9]*/maps")
		mapped := false
		for _, maps := range pids {
			content, _ := os.ReadFile(maps)
			mapped = mapped || bytes.Contains(content, []byte(v.library))
		}
		if !mapped {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(200 * time.Millisecond):
		}
	}
}
