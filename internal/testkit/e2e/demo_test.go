package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// TestTheDemoEndsWithTheAnswer: the report names the line that makes the built-in job slow, and its page has the pictures.
// Under sudo the job and what the demo leaves behind are the calling user's.
func TestTheDemoEndsWithTheAnswer(t *testing.T) {
	harness.NeedKernel(t)
	const python, nobody = "/usr/bin/python3", 65534
	if exec.Command(python, "-c", "import torch").Run() != nil {
		t.Skip(python + " has no torch")
	}
	// Below the directories of tests nobody but root reaches one.
	dir, err := os.MkdirTemp("", "ebpfprof-demo-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program, err := filepath.Abs(harness.Binary)
	if err == nil {
		err = os.Chown(dir, nobody, nobody)
	}
	if err != nil {
		t.Fatal(err)
	}
	// The user's share of the demo runs the program, too.
	reachable := filepath.Join(dir, "ebpfprof")
	if err := os.Link(program, reachable); err != nil {
		if out, err := exec.Command("cp", program, reachable).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	demo := exec.CommandContext(t.Context(), reachable, "demo", "--python", python, "--duration", "5s")
	demo.Dir = dir
	demo.Env = append(os.Environ(), "SUDO_UID=65534", "SUDO_GID=65534", "HOME="+dir)
	out, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, answer, found := strings.Cut(string(out), "$ ebpfprof report")
	if !found || !strings.Contains(answer, "encode") || !strings.Contains(answer, "train.py:") {
		t.Errorf("the answer does not name the slow line:\n%s", out)
	}
	page, err := os.ReadFile(filepath.Join(dir, "demo-dataset.html"))
	if err != nil || strings.Count(string(page), "<svg") < 2 {
		t.Errorf("the page: %v, %d pictures", err, strings.Count(string(page), "<svg"))
	}
	for _, left := range []string{"demo-dataset", "demo-dataset.html", "demo-dataset-job/train.py"} {
		info, err := os.Stat(filepath.Join(dir, left))
		if err != nil {
			t.Fatal(err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != nobody {
			t.Errorf("%s belongs to %d", left, uid)
		}
	}
}
