package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
)

// TestTheWheelAnswersInPython installs the wheel into an empty environment of each Python of this
// machine, without a network, and runs testdata/python/answers.py there.
func TestTheWheelAnswersInPython(t *testing.T) {
	harness.NeedKernel(t)
	all := pythons.Installed()
	if len(all) == 0 {
		t.Skip("no Python here")
	}
	dir := t.TempDir()
	root := filepath.Join("..", "..", "..")
	pack := exec.CommandContext(t.Context(), "go", "run", "./internal/dev/wheel", "-program", harness.Binary,
		"-platform", "linux_"+machine(), "-version", "v0.0.1", "-o", dir, "-most", "200") // the tests' program has its symbols
	pack.Dir = root
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wheels, _ := filepath.Glob(filepath.Join(dir, "*.whl"))
	if len(wheels) != 1 {
		t.Fatalf("%d wheels", len(wheels))
	}
	script, _ := filepath.Abs(filepath.Join(root, "testdata", "python", "answers.py"))
	for _, p := range all {
		t.Run(p.Name(), func(t *testing.T) {
			venv := filepath.Join(t.TempDir(), "venv")
			if out, err := exec.CommandContext(t.Context(), p.Path, "-m", "venv", venv).CombinedOutput(); err != nil {
				t.Skipf("%s makes no virtual environments here: %s", p.Path, out)
			}
			python := filepath.Join(venv, "bin", "python")
			install := exec.CommandContext(t.Context(), python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", wheels[0])
			if out, err := install.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			run := exec.CommandContext(t.Context(), python, script, t.TempDir())
			run.Env = append(os.Environ(), "PYTHONPATH="+duckdbFor(p))
			out, err := run.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "ok with") {
				t.Fatalf("%v: %s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// machine is the processor as Python's platform tags call it.
func machine() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}

// duckdbFor is where the package duckdb lies that was fetched with the readers, "" for other Pythons.
func duckdbFor(p pythons.Python) string {
	found, _ := filepath.Glob(filepath.Join(harness.Cache(), "iceberg-readers", "lib", "python3*", "site-packages"))
	for _, dir := range found {
		if strings.HasPrefix(p.Version, strings.TrimPrefix(filepath.Base(filepath.Dir(dir)), "python")+".") {
			return dir
		}
	}
	return ""
}
