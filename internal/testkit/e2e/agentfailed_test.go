package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// An agent says what failed in a job that it watches, by itself: memory without room, which
// the job survives, with its line; then a rank that is killed. The last moments are a dataset
// in its spool, what is left of the job gets a window, and the report of the store begins
// with the rank that died.
func agentsTellWhatFailed(t *testing.T) {
	dir := t.TempDir()
	binary := buildAgent(t, dir)
	store, name := filepath.Join(dir, "store"), fmt.Sprintf("failing-%d", os.Getpid())
	a := startAgent(t, binary, dir, "node", fmt.Sprintf("store: %s\nonly: [%s]\nslower_than: 1000\nbudget: 5%%\n", store, name))
	job := harness.Start(t, harness.PyPI.Job("straggler.py", "--ranks", "2", "--fault", "memory", "--after", "1000000000", "--seconds", "1000",
		"--length", "0.05", "--job", name)...)
	pids := stragglerPIDs(t, job)
	job.Line(t, "running")
	wait(t, "steps", func() bool { return a.steps(t) >= 200 }, a)
	if before, _, _ := strings.Cut(a.Transcript(), "state=watching"); !strings.Contains(before,
		fmt.Sprintf("state=canary reason=\"process %d alone for 1s\"", pids[1])) {
		t.Errorf("no process was recorded alone first:\n%s", before)
	}
	said := func(signal syscall.Signal, kind string) string {
		t.Helper()
		if err := syscall.Kill(pids[1], signal); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("msg=\"job failed\" job=%s kind=%s", name, kind)
		a.says(t, text)
		_, line, _ := strings.Cut(a.Transcript(), text)
		line, _, _ = strings.Cut(line, "\n")
		t.Log(line)
		return line
	}
	line := said(syscall.SIGUSR1, "out_of_memory")
	place := fmt.Sprintf("straggler.py:%d (", lineOf(t, "straggler.py", "torch.empty(1 << 50"))
	for _, want := range []string{fmt.Sprintf("rank 1 (process %d) found no room for 1125899906842624 bytes of host memory", pids[1]), place,
		"-failed"} {
		if !strings.Contains(line, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	_, dump, _ := strings.Cut(line, "last_moments=")
	r := &harness.Recording{Dataset: dump}
	if n := r.Number(t, "SELECT count(*) FROM memory WHERE action = 'out_of_memory' AND pid = %d", pids[1]); n != 1 {
		t.Errorf("%d rows of %s have it", n, dump)
	}
	if n := r.Number(t, "SELECT count(*) FROM span WHERE layer = 'collective' AND pid = %d", pids[1]); n < 20 {
		t.Errorf("%d collectives before it are in %s", n, dump)
	}
	if n := r.Number(t, "SELECT count(*) FROM sample JOIN stack USING (stack_id) WHERE pid = %d AND folded LIKE '%%straggler.py%%'",
		pids[1]); n == 0 {
		t.Error("no sample has its stack")
	}
	a.says(t, "state=window reason=out_of_memory")
	wait(t, "end of the window", func() bool { return strings.Contains(a.Transcript(), "windows=1") }, a)
	if n := strings.Count(a.Transcript(), "kind=out_of_memory"); n != 1 {
		t.Errorf("the log tells of one failure %d times", n)
	}

	line = said(syscall.SIGKILL, "died")
	_, dump, _ = strings.Cut(line, "last_moments=")
	r = &harness.Recording{Dataset: dump}
	if n := r.Number(t, "SELECT count(*) FROM process WHERE pid = %d AND exit_signal = 9", pids[1]); n != 1 {
		t.Errorf("%d processes of %s were killed", n, dump)
	}
	if want := fmt.Sprintf("rank 1 (process %d) was ended by signal 9 (SIGKILL)", pids[1]); !strings.Contains(line, want) {
		t.Errorf("it does not say %q", want)
	}
	wait(t, "report that begins with it", func() bool {
		out, err := exec.Command(harness.Binary, "fleet", "report", store, "--job", name).CombinedOutput()
		t.Logf("%s", out)
		return err == nil && strings.Contains(string(out), "was ended by signal 9 (SIGKILL)") && strings.Contains(string(out),
			"No step of the job was seen since.")
	}, a)
}

// Of a job of two ranks one is recorded alone first. When that dies as a process does that was
// harmed, the other is left alone.
func TestAJobWhoseCanaryDiesIsLeftAlone(t *testing.T) {
	harness.PyPI.Need(t)
	dir := t.TempDir()
	name := fmt.Sprintf("canary-%d", os.Getpid())
	a := startAgent(t, buildAgent(t, dir), dir, "node", fmt.Sprintf("store: %s\nonly: [%s]\ncanary: 10m\n", filepath.Join(dir, "store"), name))
	job := harness.Start(t, harness.PyPI.Job("straggler.py", "--ranks", "2", "--seconds", "1000", "--length", "0.05", "--job", name)...)
	pids := stragglerPIDs(t, job)
	a.says(t, fmt.Sprintf("state=canary reason=\"process %d alone for 10m0s\"", pids[1]))
	wait(t, "probe in the canary", func() bool { return probed(t, pids[1]) }, a)
	if probed(t, pids[0]) {
		t.Error("the other rank has probes, too")
	}
	if err := syscall.Kill(pids[1], syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	a.says(t, fmt.Sprintf("msg=\"job is left alone\" job=%s why=\"process %d was ended by signal 11 (SIGSEGV) while it alone was recorded\"",
		name, pids[1]))
	if strings.Contains(a.Transcript(), "state=watching") {
		t.Errorf("the job is watched all the same:\n%s", a.Transcript())
	}
}

// probed reports whether there are probes in a process's libtorch: a page of code in which the
// kernel has put one is the process's own.
func probed(t *testing.T, pid int) bool {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Fatal(err)
	}
	code := false
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 5 && strings.Contains(fields[0], "-"):
			code = fields[1] == "r-xp" && strings.Contains(fields[5], "libtorch_cpu.so")
		case code && fields[0] == "Anonymous:" && fields[1] != "0":
			return true
		}
	}
	return false
}
