package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// limitMemory puts a process into a control group of its own, which may have so much more
// than the process has now. The test is skipped where nobody can make one.
func limitMemory(t *testing.T, pid int, bytes int64) {
	t.Helper()
	root, limit := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(filepath.Join(root, limit)); err != nil { // version 2
		root, limit = "/sys/fs/cgroup", "memory.max"
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0o644); err != nil {
			t.Skipf("no control group can limit memory here: %v", err)
		}
	}
	group := filepath.Join(root, fmt.Sprintf("ebpfprof-e2e-%d", pid))
	err := os.Mkdir(group, 0o755)
	if err == nil {
		t.Cleanup(func() { os.Remove(group) })
		if limit == "memory.max" { // what it has is charged where it had it
			err = os.WriteFile(filepath.Join(group, "memory.swap.max"), []byte("0"), 0o644)
			if errors.Is(err, os.ErrNotExist) { // a kernel without swap
				err = nil
			}
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(group, limit), []byte(fmt.Sprint(bytes)), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(fmt.Sprint(pid)), 0o644)
	}
	if err != nil {
		t.Skipf("no control group can limit memory here: %v", err)
	}
}

// The kernel kills a job that has no memory left: at the level that is always on, with
// nothing set in the job, its end has where it was and what it had held until then.
func TestAJobThatTheKernelKillsForItsMemory(t *testing.T) {
	harness.Beside(t)
	job := harness.StartJob(t, "python3", harness.Script("grower.py"))
	pid := job.ReadyPID(t)
	const limit = 256 << 20
	limitMemory(t, pid, limit)
	tracing := harness.Attach(t, []string{"--level", "anchor"}, pid)
	job.GoOn(t)
	<-job.Done()
	if status, ok := job.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the job ended by itself: %s", job.ProcessState)
	}
	r := tracing.Finish(t)

	var answer struct {
		OutOfMemory []struct {
			PID            int
			Level          string
			Line           string
			Last           bool  `json:"from_last_sample"`
			Resident       int64 `json:"resident_bytes"`
			ResidentBefore int64 `json:"resident_before_bytes"`
			Limit          int64 `json:"cgroup_limit_bytes"`
		} `json:"out_of_memory"`
	}
	harness.Ask(t, &answer, "memory", r.Dataset, "--json")
	if len(answer.OutOfMemory) != 1 {
		t.Fatalf("%+v", answer)
	}
	o := answer.OutOfMemory[0]
	if o.PID != pid || o.Level != "kernel" || !o.Last || !strings.Contains(o.Line, "grower.py:") || !strings.Contains(o.Line, "(grow)") {
		t.Errorf("%+v, want pid %d killed by the kernel in grow", o, pid)
	}
	if grown := o.Resident - o.ResidentBefore; grown < limit/2 || o.Resident > 2*limit || o.Limit != limit {
		t.Errorf("it held %d and before %d bytes, of %d that it may have (%d)", o.Resident, o.ResidentBefore, limit, o.Limit)
	}
	frames := r.Rows(t, `SELECT %s FROM memory JOIN stack USING (stack_id) WHERE level = 'kernel' AND action = 'out_of_memory'
		AND stack_source = 'last_sample'`, pythonFrames)
	if len(frames) != 1 || !slices.ContainsFunc(texts(frames[0][0]), func(f string) bool { return strings.HasPrefix(f, "grow:") }) {
		t.Errorf("the stack of its last sample: %v", frames)
	}
	if n := r.Number(t, "SELECT count(*) FROM process WHERE pid = %d AND ended_ns IS NOT NULL AND exit_signal = 9 AND exit_code IS NULL",
		pid); n != 1 {
		t.Errorf("%d processes were ended by SIGKILL", n)
	}
	if n := r.Number(t, "SELECT count(*) FROM warning WHERE kind = 'process' AND source = '%d' AND detail LIKE '%%the kernel killed it%%'",
		pid); n != 1 {
		t.Errorf("%d warnings tell of it", n)
	}
}
