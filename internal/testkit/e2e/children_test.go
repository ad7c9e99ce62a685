package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// recordAlone records a job that forks, when no other process maps its libtorch:
// else the probes are attached process by process, and a child's first calls
// may come before its probes.
func recordAlone(t *testing.T, v harness.Torch, argv ...string) *harness.Recording {
	t.Helper()
	for range 3 {
		if !v.Alone(t) {
			break
		}
		r := harness.Record(t, harness.Unbudgeted, argv...)
		if r.Number(t, "SELECT count(*) FROM warning WHERE kind = 'attach'") == 0 {
			r.Lossless(t)
			return r
		}
	}
	t.Skip("other jobs on this machine map the same libtorch: the first calls of a child may be missed")
	return nil
}

// perProcess counts some operators by process.
func perProcess(t *testing.T, r *harness.Recording, operators []string) map[string]map[string]int64 {
	t.Helper()
	counts := map[string]map[string]int64{}
	for _, row := range r.Rows(t, "SELECT pid, name, count(*) FROM span WHERE layer = 'op' AND status = 'ok' AND name IN ('%s') GROUP BY ALL",
		strings.Join(operators, "', '")) {
		pid := fmt.Sprint(row[0])
		if counts[pid] == nil {
			counts[pid] = map[string]int64{}
		}
		counts[pid][fmt.Sprint(row[1])] = harness.Integer(t, row[2])
	}
	return counts
}

func TestDataLoaderWorkersAreCountedEach(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		job := v.Job("dataloader.py", "--epochs", "2", "--samples", "32")
		r := recordAlone(t, v, job...)
		got := perProcess(t, r, []string{"aten::erfinv", "aten::lgamma", "aten::digamma"})
		workers := 0
		for _, epoch := range r.Truth.Workers {
			for pid, want := range epoch {
				workers++
				harness.SameCounts(t, "worker "+pid, got[pid], want)
				if n := r.Number(t, "SELECT count(*) FROM process WHERE pid = %s AND parent_pid = %d AND ended_ns IS NOT NULL", pid,
					r.Truth.PID); n != 1 {
					t.Errorf("worker %s: %d rows of its process, want 1", pid, n)
				}
				delete(got, pid)
			}
		}
		if len(got) > 0 || workers != 4 {
			t.Errorf("%d workers; of others: %v", workers, got)
		}
		parent := perProcess(t, r, slices.Collect(maps.Keys(r.Truth.InParent)))
		harness.SameCounts(t, "parent", parent[strconv.Itoa(r.Truth.PID)], r.Truth.InParent)
		if v == harness.PyPI {
			scopes := r.Counts(t, "SELECT name, count(*) FROM span WHERE layer = 'scope' AND name LIKE 'enumerate(DataLoader)%%' AND %s "+
				"GROUP BY ALL", r.Region(t))
			harness.SameCounts(t, "scopes", scopes, r.Truth.Scopes)
		}
		if bare := harness.RunJob(t, job...); bare.SHA256 != r.Truth.SHA256 {
			t.Errorf("the job's results are %s with the tracer and %s without", r.Truth.SHA256, bare.SHA256)
		}
	})
}

func TestForkedAndExecutedChildrenAreCountedEach(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		job := v.Job("fork_exec.py", "--children", "2", "--count", "50")
		// The children pause before their operators: their probes are in by
		// then, even where other jobs map the library.
		r := harness.Record(t, harness.Unbudgeted, job...)
		r.Lossless(t)
		got := perProcess(t, r, []string{"aten::lgamma", "aten::erfinv", "aten::erfc"})
		want := map[string]map[string]int64{strconv.Itoa(r.Truth.PID): {"aten::erfc": r.Truth.Parent["aten::erfc"]}}
		for pid, operators := range r.Truth.Forked {
			want[pid] = map[string]int64{"aten::lgamma": operators["aten::lgamma"]}
		}
		for pid, operators := range r.Truth.Executed {
			want[pid] = map[string]int64{"aten::erfinv": operators["aten::erfinv"]}
		}
		if len(want) != 5 {
			t.Fatalf("%d processes, want 5", len(want))
		}
		for pid := range want {
			harness.SameCounts(t, "process "+pid, got[pid], want[pid])
		}
		if len(got) != len(want) {
			t.Errorf("recorded %v, want %v", got, want)
		}
		for pid := range r.Truth.Executed {
			if n := r.Number(t, "SELECT count(*) FROM process WHERE pid = %s AND command LIKE '%%-c%%' AND framework = 'pytorch'", pid); n != 1 {
				t.Errorf("process %s: the dataset does not know what it executes", pid)
			}
		}
		if bare := harness.RunJob(t, job...); bare.SHA256 != r.Truth.SHA256 {
			t.Errorf("the job's results are %s with the tracer and %s without", r.Truth.SHA256, bare.SHA256)
		}
	})
}

func TestThreadsAreCountedEach(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		r := harness.Record(t, harness.Unbudgeted, v.Job("threads.py", "--count", "200", "--workers", "3")...)
		r.Lossless(t)
		for tid, want := range r.Truth.Threads {
			got := r.Counts(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND status = 'ok' AND tid = %s AND %s GROUP BY ALL", tid,
				r.Region(t))
			harness.SameCounts(t, "thread "+tid, got, want)
			if n := r.Number(t, "SELECT count(*) FROM thread WHERE tid = %s AND ended_ns IS NOT NULL", tid); n != 1 {
				t.Errorf("%d ended threads %s in the dataset, want 1", n, tid)
			}
		}
	})
}

func TestALibraryLoadedAfterTheAttachIsProbed(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		job := harness.StartJob(t, v.Job("late.py", "--count", "200")...)
		tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
		job.GoOn(t)
		told := job.FinishJob(t)
		r := tracing.Finish(t)
		r.Lossless(t)
		got := r.Counts(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND status = 'ok' AND %s GROUP BY ALL", r.Within(t, told))
		harness.SameCounts(t, "operators", got, told.Operators)
	})
}
