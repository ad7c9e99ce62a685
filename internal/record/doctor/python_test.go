package doctor

import (
	"bufio"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// pythonChecksOf starts a program that says a line and waits, and asks the doctor.
func pythonChecksOf(t *testing.T, program string, arguments ...string) []check {
	t.Helper()
	cmd := exec.Command(program, arguments...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); _ = cmd.Wait() })
	if !bufio.NewScanner(stdout).Scan() {
		t.Fatalf("%s ended", program)
	}
	p, err := process.Open(cmd.Process.Pid)
	if errors.Is(err, process.ErrStatic) {
		t.Skip(err) // busybox's shell
	}
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	return pythonChecks(p, libraries)
}

const waits = "import sys; print('ready', flush=True); sys.stdin.read()"

func TestDoctorFindsTheFramesOfEveryInstalledPython(t *testing.T) {
	for _, python := range pythons.Installed() {
		checks := pythonChecksOf(t, python.Path, "-c", waits)
		if last := checks[len(checks)-1]; last.Name != "Python frames" || last.State != stateOK {
			t.Errorf("%s: %v", python.Name(), checks)
		}
	}
}

func TestDoctorSaysWhyThereAreNoPythonFrames(t *testing.T) {
	if checks := pythonChecksOf(t, "/bin/sh", "-c", "echo ready; read line"); checks[0].State != stateInfo {
		t.Errorf("a shell: %v", checks)
	}
	for program, why := range map[string]string{"pypy3": "PyPy", "python3d": "debug build"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Logf("%s is not installed: scripts/system-packages.sh does it", program)
			continue
		}
		checks := pythonChecksOf(t, path, "-c", waits)
		if last := checks[len(checks)-1]; last.State != stateDegraded || !strings.Contains(last.Why, why) {
			t.Errorf("%s: %v", program, checks)
		}
	}
}
