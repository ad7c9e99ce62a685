package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// daemonsName is held by a test whose recording answers profilers: one process of a network namespace can.
var daemonsName sync.Mutex

// profiled records a job that does not end with --device-times profiler until its profiler has written its trace.
func profiled(t *testing.T, flags ...string) *harness.Recording {
	t.Helper()
	v := harness.PyPI
	c := harness.StartJob(t, append([]string{"env", "KINETO_USE_DAEMON=1"}, v.Job("mlp.py", "--steps", "1000000")...)...)
	c.GoOn(t)
	a := harness.Attach(t, append([]string{"--device-times", "profiler"}, flags...), c.Process.Pid)
	a.Until(t, "word of a trace", func(_ []string, errs string) bool { return strings.Contains(errs, "wrote its trace") })
	return a.Interrupt(t)
}

// PyTorch's own profiler, asked while the job is recorded, sees the operators that the recording has: one to one.
func TestTheJobsOwnProfilerAgrees(t *testing.T) {
	harness.PyPI.Beside(t)
	daemonsName.Lock()
	defer daemonsName.Unlock()
	r := profiled(t, harness.Unbudgeted...)
	rows := r.Rows(t, `SELECT matched, other_thread + outside_slices, unmatched, recorded_only, offset_ns, offset_lo_ns, offset_hi_ns, source,
		method, end_ns - ts_ns
		FROM merged_trace`)
	if len(rows) != 1 {
		t.Fatalf("merged: %v; warnings: %v", rows, r.Rows(t, "SELECT kind, source, detail FROM warning"))
	}
	number := func(i int) int64 { return harness.Integer(t, rows[0][i]) }
	matched, elsewhere, unmatched, alone, offset := number(0), number(1), number(2), number(3), number(4)
	t.Logf("%d calls are in both, offset %d ns (%d to %d); %d of the trace and %d of the recording are not", matched, offset, number(5),
		number(6), unmatched, alone)
	if matched < 1000 || elsewhere != 0 || 50*unmatched > matched || 50*alone > matched {
		t.Errorf("%d calls in both, %d elsewhere, %d of the trace and %d of the recording without a partner", matched, elsewhere,
			unmatched, alone)
	}
	if offset < -1e6 || offset > 1e6 || number(5) > offset || number(6) < offset {
		t.Errorf("offset %d ns (%d to %d)", offset, number(5), number(6))
	}
	if rows[0][7] != "torch.profiler" || rows[0][8] != "profiler" || number(9) <= 0 {
		t.Errorf("%v", rows[0])
	}
	if n := r.Number(t, "SELECT count(*) FROM span WHERE end_method = 'imported' AND layer <> 'device'"); n != 0 {
		t.Errorf("%d calls of the trace are stored again", n)
	}
}

// A job that cannot be asked is recorded as always, and one sentence says why it has no device times.
func TestAJobThatCannotBeAskedSaysWhy(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		daemonsName.Lock()
		defer daemonsName.Unlock()
		want := "not started with KINETO_USE_DAEMON=1"
		if v.Name == harness.Debian.Name {
			want = "no client for traces on demand"
		}
		c := harness.StartJob(t, v.Job("mlp.py", "--steps", "1000000")...)
		c.GoOn(t)
		a := harness.Attach(t, []string{"--device-times", "profiler"}, c.Process.Pid)
		r := a.Interrupt(t)
		rows := r.Rows(t, "SELECT detail FROM warning WHERE kind = 'device_times' AND detail LIKE 'no device times%%'")
		if len(rows) != 1 || !strings.Contains(fmt.Sprint(rows[0][0]), want) {
			t.Errorf("%v, want %q", rows, want)
		}
	})
}
