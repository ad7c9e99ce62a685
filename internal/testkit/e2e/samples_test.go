package e2e

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// Complete are nearly all: also those that begin in code that no file describes,
// MKL's kernels and those that oneDNN generates (most of a convolution's time).
func TestStacksOfTrainingReachTheThreadsStart(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		transformer := v.Job("transformer.py", "--depth", "2", "--width", "64", "--cpu-seconds", "3")
		for _, c := range []struct {
			name, table string
			flags, job  []string
		}{
			{"samples", "sample", []string{"--frequency", "499"}, transformer},
			{"samples of convolutions", "sample", []string{"--frequency", "499"}, v.Job("resnet.py", "--cpu-seconds", "3")},
			{"spans", "span", []string{"--level", "deep"}, transformer},
		} {
			t.Run(c.name, func(t *testing.T) {
				r := harness.RecordReady(t, c.flags, c.job...)
				r.Lossless(t)
				rows := r.Rows(t, `SELECT count(*), count(*) FILTER (stack.status = 'complete')
					FROM %s JOIN stack USING (stack_id) WHERE %s`, c.table, r.Region(t))
				all, complete := harness.Integer(t, rows[0][0]), harness.Integer(t, rows[0][1])
				t.Logf("%d of %d stacks are complete", complete, all)
				if all < 300 || float64(complete) < 0.99*float64(all) {
					t.Errorf("%d of %d stacks are complete: %v", complete, all,
						r.Counts(t, "SELECT stack.status, count(*) FROM %s JOIN stack USING (stack_id) WHERE %s GROUP BY ALL", c.table, r.Region(t)))
				}
				incompleteIsCounted(t, r)
				if c.table == "sample" && v != harness.Debian {
					generatedCodeIsCalledByTheLibrary(t, r)
				}
			})
		}
	})
}

// generatedCodeIsCalledByTheLibrary: oneDNN's kernels are called by the code of
// oneDNN, which is a part of libtorch_cpu, and by each other. What was inferred of
// their frames must say so.
func generatedCodeIsCalledByTheLibrary(t *testing.T, r *harness.Recording) {
	t.Helper()
	callers := r.Counts(t, `SELECT caller, count(*) FROM (
		SELECT native[list_position([f.module = '[anon]' FOR f IN native], false)].module AS caller
		FROM (SELECT [f FOR f IN frames IF f.kind = 'native'] AS native, status FROM sample JOIN stack USING (stack_id) WHERE %s)
		WHERE native[1].module = '[anon]' AND status = 'complete') GROUP BY ALL`, r.Region(t))
	if n := r.Number(t, `SELECT count(*) FROM stack WHERE inferred_frames = 0 AND status = 'complete' AND
		([f.module FOR f IN frames IF f.kind = 'native'])[1] = '[anon]'`); n != 0 {
		t.Errorf("%d stacks from generated code are not marked as inferred", n)
	}
	if callers["libtorch_cpu.so"] == 0 || len(callers) > 1 {
		t.Errorf("generated code was called from %v, want libtorch_cpu.so alone", callers)
	}
}

// incompleteIsCounted: each reason in the warning table has as many samples and
// spans as have it in the stacks' status.
func incompleteIsCounted(t *testing.T, r *harness.Recording) {
	t.Helper()
	counted := r.Counts(t, "SELECT source, sum(count) FROM warning WHERE kind = 'incomplete' AND source SIMILAR TO '(native|python)_.*' AND "+
		"source NOT LIKE 'python_code%%' GROUP BY ALL")
	found := r.Counts(t, `SELECT status, count(*) FROM (SELECT stack_id FROM sample UNION ALL SELECT stack_id FROM span)
		JOIN stack USING (stack_id) WHERE status <> 'complete' GROUP BY ALL`)
	for status, n := range found {
		if counted[status] != n {
			t.Errorf("%d samples and spans are %s, the warning table says %d", n, status, counted[status])
		}
	}
	for status, n := range counted {
		if found[status] != n {
			t.Errorf("the warning table has %d %s, the samples and spans %d", n, status, found[status])
		}
	}
}

// A recursion of 80 levels is some 160 Python frames and twice as many native ones.
func TestMaxFramesKeepsDeeperStacks(t *testing.T) {
	harness.Beside(t)
	job := []string{"/usr/bin/python3", harness.Script("recursion.py"), "--depth", "80"}
	for _, c := range []struct {
		flags []string
		most  int64
		whole bool
	}{
		{[]string{"--max-frames", "128"}, 128, false},
		{nil, 256, true},
	} {
		// Without a budget: waits that are sampled beside busy processes have stacks of at most 128 frames.
		r := harness.RecordReady(t, append(c.flags, harness.Unbudgeted...), job...)
		rows := r.Rows(t, `SELECT count(*), count(*) FILTER (stack.status NOT LIKE '%%python_max_frames%%'),
			max(len([f FOR f IN frames IF f.kind = 'python'])), count(*) FILTER (stack.status LIKE '%%max_frames%%')
			FROM sample JOIN stack USING (stack_id) WHERE %s = 'leaf' AND %s`, pythonTop, r.Region(t))
		all, whole, longest, cut := harness.Integer(t, rows[0][0]), harness.Integer(t, rows[0][1]), harness.Integer(t, rows[0][2]),
			harness.Integer(t, rows[0][3])
		t.Logf("%v: %d stacks, %d with all their Python frames, %d at the most, %d cut", c.flags, all, whole, longest, cut)
		if all < 50 || c.whole != (whole == all) || c.whole == (whole == 0) {
			t.Errorf("%v: %d of %d stacks have all their Python frames", c.flags, whole, all)
		}
		// The module, main and leaf, and two a level.
		if want := min(c.most, 2*80+4); longest != want {
			t.Errorf("%v: the longest stack has %d Python frames, want %d", c.flags, longest, want)
		}
		incompleteIsCounted(t, r)
	}
}

// pythonTop is the innermost Python function of a stack.
const pythonTop = `[f.function FOR f IN frames IF f.kind = 'python'][1]`

func TestSharesOfTimeAreTheJobsOwn(t *testing.T) {
	harness.NeedKernel(t)
	r := harness.RecordReady(t, nil, "/usr/bin/python3", harness.Script("shares.py"))
	r.Lossless(t)
	for function, spent := range r.Truth.CPUNS {
		rows := r.Rows(t, `SELECT sum(weight_ns), count(*), count(*) FILTER (holds_gil) FROM sample JOIN stack USING (stack_id)
			WHERE state = 'on_cpu' AND %s = '%s' AND %s`, pythonTop, function, r.Region(t))
		got, n, held := harness.Integer(t, rows[0][0]), harness.Integer(t, rows[0][1]), harness.Integer(t, rows[0][2])
		t.Logf("%s: %.0f ms of %.0f by %d samples, %d hold the GIL", function, float64(got)/1e6, float64(spent)/1e6, n, held)
		// Five standard deviations of a Poisson count, and one sample at each edge of a round.
		period := 1e9 / 99.0
		if bound := 5*math.Sqrt(float64(spent)*period) + 0.1*float64(spent); math.Abs(float64(got-spent)) > bound {
			t.Errorf("%s: %d ns by samples, the job counted %d", function, got, spent)
		}
		want := n
		if function == "compress" {
			want = 0
		}
		if math.Abs(float64(held-want)) > 0.1*float64(n) {
			t.Errorf("%s: %d of %d samples hold the GIL, want about %d", function, held, n, want)
		}
	}
}

func TestSleepsAreRecordedWithTheirDurationAndSystemCall(t *testing.T) {
	harness.NeedKernel(t)
	// Beside busy processes waits are sampled, within a budget: the tracer's programs run at each switch of the machine.
	r := harness.RecordReady(t, harness.Unbudgeted, "/usr/bin/python3", harness.Script("shares.py"), "--rounds", "25")
	r.Lossless(t)
	offset := r.Number(t, "SELECT clock_offset_ns FROM session")
	rows := r.Rows(t, `SELECT ts_ns, weight_ns, syscall, waker_tid IS NULL, holds_gil, status, ready_ns FROM sample JOIN stack USING (stack_id)
		WHERE state = 'off_cpu' AND cause = 'syscall' AND %s = 'doze' AND %s ORDER BY ts_ns`, pythonTop, r.Region(t))
	if len(rows) != len(r.Truth.Sleeps) {
		t.Fatalf("%d waits in doze, the job slept %d times", len(rows), len(r.Truth.Sleeps))
	}
	for i, sleep := range r.Truth.Sleeps {
		begin, took := harness.Integer(t, rows[i][0])-offset, harness.Integer(t, rows[i][1])
		// It sleeps until a time that it computes at its begin: what it waits for a CPU before is no sleep.
		if begin < sleep[0] || begin+took > sleep[1] || begin-sleep[0]+took < r.Truth.SleepNS*99/100 {
			t.Errorf("sleep %d: recorded [%d, +%d], the job says [%d, +%d]", i, begin, took, sleep[0], sleep[1]-sleep[0])
		}
		if name := fmt.Sprint(rows[i][2]); !strings.HasSuffix(name, "nanosleep") {
			t.Errorf("sleep %d: in system call %s", i, name)
		}
		if rows[i][3] != true || rows[i][4] != false || rows[i][5] != "complete" {
			t.Errorf("sleep %d: no waker %v, holds the GIL %v, stack %v", i, rows[i][3], rows[i][4], rows[i][5])
		}
		if ready := harness.Integer(t, rows[i][6]); ready <= 0 || ready >= took {
			t.Errorf("sleep %d: of %d ns the thread was ready for %d: it had a CPU before it was woken, or at once", i, took, ready)
		}
	}
	if n := r.Number(t, "SELECT count(*) FROM sample WHERE (ready_ns IS NULL) <> (state = 'on_cpu') OR cause = 'preempted' AND ready_ns <> "+
		"weight_ns OR ready_ns > weight_ns"); n != 0 {
		t.Errorf("%d samples have been without a CPU for another time than they can have been", n)
	}
}

func TestNoSamplesWhenNoneAreAskedFor(t *testing.T) {
	harness.Debian.Beside(t)
	r := harness.Record(t, []string{"--frequency", "0", "--off-cpu-threshold", "0"}, training(harness.Debian, "mlp")...)
	if n := r.Number(t, "SELECT count(*) FROM sample"); n != 0 {
		t.Errorf("%d samples", n)
	}
	if n := r.Number(t, "SELECT count(*) FROM stack"); n != 0 {
		t.Errorf("%d stacks", n)
	}
}
