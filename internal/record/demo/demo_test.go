package demo

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pythonThat writes a program that a demo takes for a Python.
func pythonThat(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWithoutTorchTheDemoNamesWhatToInstall(t *testing.T) {
	without := pythonThat(t, "echo Traceback >&2; echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1")
	with := pythonThat(t, "echo 3.11.2 2.0.1")
	for _, c := range []struct {
		name, wanted, path string
		found, complaint   string
	}{
		{name: "none on PATH has it", path: filepath.Dir(without), complaint: without + " -m pip install torch"},
		{name: "the wanted one has it not", wanted: without, path: filepath.Dir(with), complaint: "No module named 'torch'"},
		{name: "the wanted one is not there", wanted: "/nonexistent/python", path: filepath.Dir(with),
			complaint: "no program /nonexistent/python"},
		{name: "the one on PATH has it", path: filepath.Dir(with), found: with},
		{name: "the wanted one has it", wanted: with, path: filepath.Dir(without), found: with},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			t.Setenv("VIRTUAL_ENV", "")
			// Not those of this machine, which may have a torch.
			d := &demo{candidates: []string{"python3"}}
			python, err := d.findPython(t.Context(), c.wanted)
			if c.found != "" {
				if err != nil || python != (interpreter{c.found, "3.11.2", "2.0.1"}) {
					t.Errorf("%+v, %v", python, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.complaint) {
				t.Errorf("%v, want %q in it", err, c.complaint)
			}
		})
	}
}

func TestOnlyADemosDatasetIsReplaced(t *testing.T) {
	dir := t.TempDir()
	made, others, link := filepath.Join(dir, "made"), filepath.Join(dir, "others"), filepath.Join(dir, "link")
	for _, d := range []string{made, others} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(made, marker), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(made, link); err != nil {
		t.Fatal(err)
	}
	for path, replaceable := range map[string]bool{made: true, others: false, link: false, filepath.Join(dir, "none"): true} {
		if err := (&demo{output: path}).replaceable(); (err == nil) != replaceable {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestAJobThatEndsEarlyIsReportedByItsException: the last line of its traceback, and no waiting.
func TestAJobThatEndsEarlyIsReportedByItsException(t *testing.T) {
	d := &demo{output: filepath.Join(t.TempDir(), "dataset")}
	broken := pythonThat(t, "echo 'Traceback (most recent call last):' >&2; echo 'RuntimeError: no memory' >&2; exit 1")
	if _, err := d.start(t.Context(), interpreter{path: broken}); err == nil || !strings.HasSuffix(err.Error(), "RuntimeError: no memory") {
		t.Error(err)
	}
	written, err := os.ReadFile(d.output + "-job/train.py")
	if err != nil || !bytes.Equal(written, program) {
		t.Errorf("the job's program: %v", err)
	}
}

func TestTheJobIsPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no Python here")
	}
	check := exec.Command(python, "-c", "import ast, sys; ast.parse(sys.stdin.read())")
	check.Stdin = bytes.NewReader(program)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
