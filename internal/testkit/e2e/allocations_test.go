package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// TestAllocationsUnderALimit: what the job allocates, and for how long, is within what it
// timed itself; what its address space has no room for is there with its stack, and the
// job lives on.
func TestAllocationsUnderALimit(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		r := harness.RecordReady(t, harness.Unbudgeted, v.Job("allocations.py", "--what", "limited", "--rounds", "20")...)
		r.Lossless(t)
		where := "level = 'allocator' AND " + r.Region(t)
		sum := func(column, action string) int64 {
			return r.Number(t, "SELECT coalesce(sum(%s), 0)::BIGINT FROM memory WHERE action = '%s' AND %s", column, action, where)
		}
		harness.SameCounts(t, "memory", map[string]int64{
			"allocations": sum("1", "alloc"), "bytes allocated": sum("bytes", "alloc"), "bytes freed": sum("bytes", "free"),
			"allocations with times": sum("(duration_ns IS NOT NULL)::INT", "alloc"), "frees with times": sum("(duration_ns IS NOT NULL)::INT",
				"free"),
		}, map[string]int64{
			"allocations": r.Truth.Memory.Allocations, "bytes allocated": r.Truth.Memory.BytesAllocated, "bytes freed": r.Truth.Memory.BytesFreed,
			"allocations with times": r.Truth.Memory.Allocations, "frees with times": r.Truth.Memory.Frees,
		})
		// But for the last one, the job timed them all.
		for action, waited := range map[string]int64{"alloc": r.Truth.Memory.TimedNS, "free": r.Truth.Memory.FreedNS} {
			took := r.Number(t, "SELECT (sum(duration_ns) - max_by(duration_ns, ts_ns))::BIGINT FROM memory WHERE action = '%s' AND %s",
				action, where)
			if took <= 0 || took > waited {
				t.Errorf("%s: %d ns, the job waited %d ns for them", action, took, waited)
			}
		}
		checkRefusals(t, r)
		checkHistory(t, r)
		if v == harness.Debian { // at anchor, where allocations are in slices
			r = harness.RecordReady(t, []string{"--level", "anchor"}, v.Job("allocations.py", "--what", "limited", "--rounds", "20")...)
			checkRefusals(t, r)
			checkHistory(t, r)
		}
	})
}

// checkHistory: what the process held is there until memory ran out, and once.
func checkHistory(t *testing.T, r *harness.Recording) {
	t.Helper()
	asked := r.Number(t, "SELECT min(ts_ns) FROM memory WHERE action = 'out_of_memory'")
	for _, name := range []string{"process_memory_resident", "process_memory_virtual"} {
		where := fmt.Sprintf("FROM counter WHERE source = 'process' AND name = '%s' AND pid = %d", name, r.Truth.PID)
		if n := r.Number(t, "SELECT count(*) %s AND value > 0 AND ts_ns <= %d", where, asked); n == 0 {
			t.Errorf("%s: nothing is known of the time before", name)
		}
		if n := r.Number(t, "SELECT count(*) - count(DISTINCT ts_ns) %s", where); n != 0 {
			t.Errorf("%s: %d readings are there twice", name, n)
		}
	}
}

// checkRefusals: each has its size and the line that asked.
func checkRefusals(t *testing.T, r *harness.Recording) {
	t.Helper()
	line := fmt.Sprintf("limited:%d", lineOf(t, "allocations.py", "torch.empty(REFUSED"))
	refused := int64(0)
	for _, row := range r.Rows(t, `SELECT bytes, %s, stack.status FROM memory JOIN stack USING (stack_id)
			WHERE action = 'out_of_memory' AND level = 'allocator' AND weight = 1 AND %s`, pythonFrames, r.Region(t)) {
		refused++
		if frames := texts(row[1]); harness.Integer(t, row[0]) != r.Truth.Memory.RefusedBytes || !slices.Contains(frames, line) {
			t.Errorf("%v bytes were refused at %v (%v), want %d at %s", row[0], frames, row[2], r.Truth.Memory.RefusedBytes, line)
		}
	}
	if refused != r.Truth.Memory.Refused || refused != 3 {
		t.Errorf("%d refusals with a stack, the job saw %d", refused, r.Truth.Memory.Refused)
	}
}
