package badinput

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// native builds testdata/native and returns the path of one of its programs.
func native(t *testing.T, name string) string {
	t.Helper()
	if err := buildNative(); err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "testdata", "native", "build", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("kernel: %s was not built: its headers or this machine are not there for it", name)
	}
	return path
}

var buildNative = sync.OnceValue(func() error {
	out, err := exec.Command("make", "-s", "-C", "../../../testdata/native").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building testdata/native: %w\n%s", err, out)
	}
	return nil
})

// openCL starts an OpenCL job that launches kernels until the test ends.
func openCL(t *testing.T, environment ...string) *background {
	t.Helper()
	b := start(t, environment, native(t, "opencl"), "1000000000")
	b.until(t, "ready ")
	return b
}

// mlp starts a training loop on Debian's PyTorch that runs until the test ends.
func mlp(t *testing.T) *background {
	t.Helper()
	python := "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import torch").Run(); err != nil {
		t.Skip("kernel: Debian's python3-torch is not installed")
	}
	b := start(t, nil, python, filepath.Join("..", "..", "..", "testdata", "jobs", "mlp.py"), "--seconds", "600")
	b.until(t, "ready ")
	return b
}

func pidOf(b *background) string { return fmt.Sprint(b.Process.Pid) }

// rows asks a dataset for one number.
func rows(t *testing.T, dataset, sql string) int {
	t.Helper()
	r := run(t, ebpfprof, "query", dataset, sql, "--format", "csv")
	if r.code != ok {
		t.Fatalf("%s: %s", sql, r.stderr)
	}
	lines := strings.Fields(r.stdout)
	n := -1
	fmt.Sscan(lines[len(lines)-1], &n)
	return n
}
