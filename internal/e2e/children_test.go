package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// recordAlone records a job that forks, when no other process maps its libtorch:
// else the probes are attached process by process, and a child's first calls
// may come before its probes.
func (v torch) recordAlone(t *testing.T, argv ...string) *recording {
	t.Helper()
	for range 3 {
		if !v.alone(t) {
			break
		}
		r := mustRecord(t, unbudgeted, argv...)
		if r.number(t, "SELECT count(*) FROM warning WHERE kind = 'attach'") == 0 {
			r.lossless(t)
			return r
		}
	}
	t.Skip("other jobs on this machine map the same libtorch: the first calls of a child may be missed")
	return nil
}

// perProcess counts some operators by process.
func (r *recording) perProcess(t *testing.T, operators []string) map[string]map[string]int64 {
	t.Helper()
	counts := map[string]map[string]int64{}
	for _, row := range r.rows(t, "SELECT pid, name, count(*) FROM span WHERE layer = 'op' AND status = 'ok' AND name IN ('%s') GROUP BY ALL", strings.Join(operators, "', '")) {
		pid := fmt.Sprint(row[0])
		if counts[pid] == nil {
			counts[pid] = map[string]int64{}
		}
		counts[pid][fmt.Sprint(row[1])] = integer(t, row[2])
	}
	return counts
}

func TestDataLoaderWorkersAreCountedEach(t *testing.T) {
	besideEachTorch(t, counting, func(t *testing.T, v torch) {
		job := v.job("dataloader.py", "--epochs", "2", "--samples", "32")
		r := v.recordAlone(t, job...)
		got := r.perProcess(t, []string{"aten::erfinv", "aten::lgamma", "aten::digamma"})
		workers := 0
		for _, epoch := range r.truth.Workers {
			for pid, want := range epoch {
				workers++
				sameCounts(t, "worker "+pid, got[pid], want)
				if n := r.number(t, "SELECT count(*) FROM process WHERE pid = %s AND parent_pid = %d AND ended_ns IS NOT NULL", pid, r.truth.PID); n != 1 {
					t.Errorf("worker %s: %d rows of its process, want 1", pid, n)
				}
				delete(got, pid)
			}
		}
		if len(got) > 0 || workers != 4 {
			t.Errorf("%d workers; of others: %v", workers, got)
		}
		parent := r.perProcess(t, slices.Collect(maps.Keys(r.truth.InParent)))
		sameCounts(t, "parent", parent[strconv.Itoa(r.truth.PID)], r.truth.InParent)
		if v == pypiTorch {
			scopes := r.counts(t, "SELECT name, count(*) FROM span WHERE layer = 'scope' AND name LIKE 'enumerate(DataLoader)%%' AND %s GROUP BY ALL", r.region(t))
			sameCounts(t, "scopes", scopes, r.truth.Scopes)
		}
		if bare := runJob(t, job...); bare.SHA256 != r.truth.SHA256 {
			t.Errorf("the job's results are %s with the tracer and %s without", r.truth.SHA256, bare.SHA256)
		}
	})
}

func TestForkedAndExecutedChildrenAreCountedEach(t *testing.T) {
	besideEachTorch(t, counting, func(t *testing.T, v torch) {
		job := v.job("fork_exec.py", "--children", "2", "--count", "50")
		// The children pause before their operators: their probes are in by
		// then, even where other jobs map the library.
		r := mustRecord(t, unbudgeted, job...)
		r.lossless(t)
		got := r.perProcess(t, []string{"aten::lgamma", "aten::erfinv", "aten::erfc"})
		want := map[string]map[string]int64{strconv.Itoa(r.truth.PID): {"aten::erfc": r.truth.Parent["aten::erfc"]}}
		for pid, operators := range r.truth.Forked {
			want[pid] = map[string]int64{"aten::lgamma": operators["aten::lgamma"]}
		}
		for pid, operators := range r.truth.Executed {
			want[pid] = map[string]int64{"aten::erfinv": operators["aten::erfinv"]}
		}
		if len(want) != 5 {
			t.Fatalf("%d processes, want 5", len(want))
		}
		for pid := range want {
			sameCounts(t, "process "+pid, got[pid], want[pid])
		}
		if len(got) != len(want) {
			t.Errorf("recorded %v, want %v", got, want)
		}
		for pid := range r.truth.Executed {
			if n := r.number(t, "SELECT count(*) FROM process WHERE pid = %s AND command LIKE '%%-c%%' AND framework = 'pytorch'", pid); n != 1 {
				t.Errorf("process %s: the dataset does not know what it executes", pid)
			}
		}
		if bare := runJob(t, job...); bare.SHA256 != r.truth.SHA256 {
			t.Errorf("the job's results are %s with the tracer and %s without", r.truth.SHA256, bare.SHA256)
		}
	})
}

func TestThreadsAreCountedEach(t *testing.T) {
	besideEachTorch(t, counting, func(t *testing.T, v torch) {
		r := mustRecord(t, unbudgeted, v.job("threads.py", "--count", "200", "--workers", "3")...)
		r.lossless(t)
		for tid, want := range r.truth.Threads {
			got := r.counts(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND status = 'ok' AND tid = %s AND %s GROUP BY ALL", tid, r.region(t))
			sameCounts(t, "thread "+tid, got, want)
			if n := r.number(t, "SELECT count(*) FROM thread WHERE tid = %s AND ended_ns IS NOT NULL", tid); n != 1 {
				t.Errorf("%d ended threads %s in the dataset, want 1", n, tid)
			}
		}
	})
}

func TestALibraryLoadedAfterTheAttachIsProbed(t *testing.T) {
	besideEachTorch(t, counting, func(t *testing.T, v torch) {
		job := startJob(t, v.job("late.py", "--count", "200")...)
		tracing := attach(t, unbudgeted, job.Process.Pid)
		job.goOn(t)
		told := job.finishJob(t)
		r := tracing.finish(t)
		r.lossless(t)
		got := r.counts(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND status = 'ok' AND %s GROUP BY ALL", r.within(t, told))
		sameCounts(t, "operators", got, told.Operators)
	})
}
