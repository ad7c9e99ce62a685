package python

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

const waits = "import sys; print('ready', flush=True); sys.stdin.read()"

func openJob(t *testing.T, pid int) error {
	t.Helper()
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	i, err := Open(p, libraries)
	if err == nil {
		i.Close()
	}
	return err
}

func TestOtherInterpretersAreRefusedByName(t *testing.T) {
	for program, want := range map[string]cpython.Flavour{
		"pypy3":    cpython.FlavourPyPy,
		"python3d": cpython.FlavourDebug,
	} {
		t.Run(program, func(t *testing.T) {
			path, err := exec.LookPath(program)
			if err != nil {
				t.Skipf("%s is not installed: scripts/system-packages.sh does it", program)
			}
			j := startJob(t, pythons.Python{Path: path}, "-c", waits)
			var refused *cpython.UnsupportedError
			if err := openJob(t, j.cmd.Process.Pid); !errors.As(err, &refused) || refused.Flavour != want {
				t.Errorf("%v", err)
			} else {
				t.Log(err)
			}
		})
	}
}

func TestAProcessWithoutPythonHasNone(t *testing.T) {
	j := startJob(t, pythons.Python{Path: "/bin/sh"}, "-c", "echo ready; read line")
	err := openJob(t, j.cmd.Process.Pid)
	if errors.Is(err, process.ErrStatic) {
		t.Skip(err) // busybox's shell
	}
	if !errors.Is(err, ErrNoPython) {
		t.Errorf("%v", err)
	}
}
