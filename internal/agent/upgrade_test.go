package agent

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A package that is upgraded puts another program where the agent was begun from. Until the
// agent itself is restarted its workers are of its own version, as the assignment is that
// they read.
func TestAWorkerIsOfTheAgentsVersion(t *testing.T) {
	const name = "TestAWorkerIsOfTheAgentsVersion"
	if os.Getenv("EBPFPROF_TEST_UPGRADED") != "" { // the agent of before
		self, err := os.Executable()
		if err == nil {
			err = os.Rename(self+".new", self)
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), ownProgram, "-test.list", "^"+name+"$").CombinedOutput()
		if err != nil || !strings.Contains(string(out), name) {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	old := filepath.Join(t.TempDir(), "agent")
	to, err := os.OpenFile(old, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(to, from)
	}
	if err == nil {
		err = to.Close()
	}
	if err == nil {
		err = os.WriteFile(old+".new", []byte("#!/bin/sh\necho another version\n"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), old, "-test.run", "^"+name+"$", "-test.v")
	c.Env = append(os.Environ(), "EBPFPROF_TEST_UPGRADED=1")
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+name) {
		t.Errorf("%v\n%s", err, out)
	}
}
