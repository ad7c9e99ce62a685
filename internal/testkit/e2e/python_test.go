package e2e

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
)

// root is the repository.
var root = filepath.Join("..", "..", "..")

// TestTheWheelAnswersInPython installs the wheel into an empty environment of three Pythons of this
// machine, the oldest and the newest among them, without a network, and runs testdata/python/answers.py there.
func TestTheWheelAnswersInPython(t *testing.T) {
	harness.NeedKernel(t)
	all := pythons.Installed()
	if len(all) == 0 {
		t.Skip("no Python here")
	}
	wheel := theWheel(t)
	script, _ := filepath.Abs(filepath.Join(root, "testdata", "python", "answers.py"))
	all = slices.DeleteFunc(slices.Clone(all), func(p pythons.Python) bool {
		return exec.Command(p.Path, "-c", "import ensurepip, venv").Run() != nil // makes no environments
	})
	slices.SortFunc(all, func(a, b pythons.Python) int { return cmp.Compare(a.Minor, b.Minor) })
	if len(all) > 3 {
		all = []pythons.Python{all[0], all[len(all)/2], all[len(all)-1]}
	}
	for _, p := range all {
		t.Run(p.Name(), func(t *testing.T) {
			venv := filepath.Join(t.TempDir(), "venv")
			if out, err := exec.CommandContext(t.Context(), p.Path, "-m", "venv", venv).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", p.Path, err, out)
			}
			python := filepath.Join(venv, "bin", "python")
			install := exec.CommandContext(t.Context(), python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
				"--no-index", wheel)
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

// theWheel packs the tests' program.
func theWheel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
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
	return wheels[0]
}

// machine is the processor as Python's platform tags call it.
func machine() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}

// TestTheNotebookRuns executes docs/notebook.ipynb on a recording of a training loop.
func TestTheNotebookRuns(t *testing.T) {
	harness.NeedKernel(t)
	python := filepath.Join(harness.Cache(), "notebook-venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Skip("what runs notebooks is not installed: run `make notebook-tools`")
	}
	harness.Debian.Need(t)
	r := harness.Shared(t, harness.Unbudgeted, training(harness.Debian, "mlp")...)
	packages, out := t.TempDir(), t.TempDir()
	install := exec.CommandContext(t.Context(), python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index",
		"--target", packages, theWheel(t))
	if said, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	convert := exec.CommandContext(t.Context(), python, "-m", "nbconvert", "--to", "html", "--execute",
		"--ExecutePreprocessor.timeout=-1", "--output-dir", out, filepath.Join(root, "docs", "notebook.ipynb"))
	convert.Env = append(os.Environ(), "PYTHONPATH="+packages, "EBPFPROF="+harness.Binary, "DATASET="+r.Dataset, "HOME="+t.TempDir())
	if said, err := convert.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	page, err := os.ReadFile(filepath.Join(out, "notebook.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<iframe sandbox", "aten::addmm", "Neutral"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %q", want)
		}
	}
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
