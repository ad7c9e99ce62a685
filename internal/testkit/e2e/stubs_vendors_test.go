package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// Level Zero and Neuron, on their stubs (testdata/stubs/levelzero.c, nrt.c).

const levelZeroGroups = "level-zero,level-zero-memory,level-zero-sync,level-zero-code"

func levelZeroStub(t *testing.T) string {
	t.Helper()
	program := stub(t, "levelzerocalls")
	if _, err := os.Stat(program); err != nil {
		t.Skip("the header of Level Zero is not installed: run `make deps`")
	}
	return program
}

func TestEveryCallOfLevelZeroIsRecordedWithItsArguments(t *testing.T) {
	harness.Beside(t, "level_zero")
	r, want := traceStub(t, levelZeroGroups, levelZeroStub(t), "all")
	checkCalls(t, r, "level_zero", want.calls)
	checkMemory(t, r, want.memory)
	everyFunction(t, want.calls, strings.Split(levelZeroGroups, ",")...)
	everyArgument(t, want.calls, strings.Split(levelZeroGroups, ",")...)
}

// TestListsOfLevelZeroRunWhenAQueueRunsThem: six launches are recorded in a
// list, and run twice; one is captured from an immediate list, and runs three times.
func TestListsOfLevelZeroRunWhenAQueueRunsThem(t *testing.T) {
	harness.Beside(t, "level_zero")
	r, _ := sharedStub(t, levelZeroGroups, levelZeroStub(t), "times")
	edges := r.Counts(t, `SELECT a.name, count(*) FROM flow f JOIN span a ON f.from_span_id = a.span_id JOIN span b ON f.to_span_id = b.span_id
		WHERE f.kind = 'capture_replay' AND b.category = 'graph' AND b.name = 'scale(float*, int)' GROUP BY ALL`)
	harness.SameCounts(t, "edges from a run to what runs", edges, map[string]int64{
		"zeCommandQueueExecuteCommandLists": 6, "zeCommandListImmediateAppendCommandListsExp": 6, "zeCommandListAppendGraphExt": 3,
	})
	// Recorded launches have not run: they have no time on the device.
	if n := r.Number(t, "SELECT count(*) FROM span WHERE category = 'graph' AND name = 'scale(float*, int)' AND device_time_method "+
		"IS NOT NULL"); n != 0 {
		t.Errorf("%d launches that were only recorded have a time on the device", n)
	}
}

// TestTimesOfLevelZeroHoldTheTruth: the stub's kernels take 2 ms, a list of six runs 12,
// and the one that is asked for while it runs, which has a timestamp, 300.
func TestTimesOfLevelZeroHoldTheTruth(t *testing.T) {
	harness.Beside(t, "level_zero")
	r, _ := sharedStub(t, levelZeroGroups, levelZeroStub(t), "times")
	rows := r.Rows(t, `SELECT name, device_time_lo_ns, device_time_hi_ns, device_time_method FROM span
		WHERE (category = 'launch' OR name = 'zeCommandQueueExecuteCommandLists') AND status = 'ok' AND device_time_method IS NOT NULL`)
	measured := 0
	for _, row := range rows {
		lo, hi, truth := harness.Integer(t, row[1]), harness.Integer(t, row[2]), int64(2_000_000)
		if row[0] == "zeCommandQueueExecuteCommandLists" {
			truth = 12_000_000
		}
		if row[3] == "measured" {
			measured++
			truth = 300_000_000
			if lo != hi || lo < truth || lo > 2*truth {
				t.Errorf("%v: the stub's own clock says %d to %d ns, want one number, at least %d", row[0], lo, hi, truth)
			}
		} else if lo > truth || hi < truth {
			t.Errorf("%v: %d to %d ns, which does not hold the %d that it takes", row[0], lo, hi, truth)
		} else {
			t.Logf("%v: a bound %.2f times the truth wide (stub device)", row[0], float64(hi-lo)/float64(truth))
		}
	}
	if measured != 1 {
		t.Errorf("%d launches have the time of their kernel timestamp, want 1", measured)
	}
	// All launches of the immediate list, and the run that the fence tells of.
	if len(rows) != 8 {
		t.Errorf("%d rows have a time on the device, want 8: %v", len(rows), rows)
	}
}

// TestHandlesOfOtherVendorsOlderThanTheRecordingAreNotGuessed: attached in the
// middle, the tracer knows no name, no device and no block, and says none.
func TestHandlesOfOtherVendorsOlderThanTheRecordingAreNotGuessed(t *testing.T) {
	harness.Beside(t, "level_zero", "hip", "neuron")
	t.Run("level_zero", func(t *testing.T) {
		r, want := traceStub(t, levelZeroGroups, levelZeroStub(t), "late")
		checkCalls(t, r, "level_zero", want.calls)
		if n := r.Number(t, "SELECT count(*) FROM span WHERE category = 'launch' AND device_time_hi_ns >= 2000000 AND "+
			"device_time_lo_ns <= 2000000"); n != 11 {
			t.Errorf("%d launches have a bound that holds their 2 ms, want those 11 that were waited for", n)
		}
	})
	t.Run("hip", func(t *testing.T) {
		r, want := traceStub(t, hipGroups, stub(t, "hipcalls"), "late")
		checkCalls(t, r, "hip", want.calls)
		checkMemory(t, r, want.memory)
	})
	t.Run("neuron", func(t *testing.T) {
		r, want := traceStub(t, neuronGroups, stub(t, "nrtcalls"), "late")
		for i := range want.calls {
			want.calls[i].columns["name"] = want.calls[i].symbol
		}
		checkCalls(t, r, "neuron", want.calls)
	})
}

const neuronGroups = "neuron,neuron-execute,neuron-memory,neuron-code,neuron-profile"

func TestEveryCallOfNeuronIsRecordedWithItsArguments(t *testing.T) {
	harness.Beside(t, "neuron")
	r, want := traceStub(t, neuronGroups, stub(t, "nrtcalls"), "all")
	for i := range want.calls { // collectives have a runtime too, and another layer
		want.calls[i].columns["name"] = want.calls[i].symbol
	}
	checkCalls(t, r, "neuron", want.calls)
	checkMemory(t, r, want.memory)
	everyFunction(t, want.calls, strings.Split(neuronGroups, ",")...)
	everyArgument(t, want.calls, strings.Split(neuronGroups, ",")...)
}

// TestExecutionsOfNeuronBoundTheirDeviceTime: the stub runs 3 ms within the
// call; once the job has a callback for asynchronous ones, no bound is claimed.
func TestExecutionsOfNeuronBoundTheirDeviceTime(t *testing.T) {
	harness.Beside(t, "neuron")
	r, _ := traceStub(t, neuronGroups, stub(t, "nrtcalls"), "times")
	rows := r.Rows(t, `SELECT name, device_time_lo_ns, device_time_hi_ns, duration_ns, device_time_method FROM span
		WHERE name IN ('nrt_execute', 'nrt_execute_repeat') AND status = 'ok' ORDER BY ts_ns`)
	if len(rows) != 3 {
		t.Fatalf("%d executions: %v", len(rows), rows)
	}
	for i, truth := range []int64{3_000_000, 6_000_000} {
		lo, hi := harness.Integer(t, rows[i][1]), harness.Integer(t, rows[i][2])
		if rows[i][4] != "bounded" || lo > truth || hi < truth || hi > harness.Integer(t, rows[i][3]) {
			t.Errorf("%v: %d to %d ns (%v), want a bound that holds %d", rows[i][0], lo, hi, rows[i][4], truth)
		}
		t.Logf("%v: a bound %.2f times the truth wide (stub device)", rows[i][0], float64(hi-lo)/float64(truth))
	}
	if rows[2][4] != nil {
		t.Errorf("an execution that may be asynchronous has a bound: %v", rows[2])
	}
}

// TestTheRealLevelZeroLoaderWithoutADevice: Debian's loader has no driver to call
// here, and says so to each of its functions. Each is called once, and seen.
func TestTheRealLevelZeroLoaderWithoutADevice(t *testing.T) {
	harness.Beside(t, "level_zero")
	python := harness.Torch{Python: "/usr/bin/python3"}
	if err := exec.Command(python.Python, "-c", "import ctypes; ctypes.CDLL('libze_loader.so.1')").Run(); err != nil {
		t.Skip("Debian's Level Zero loader is not installed: run `make deps`")
	}
	var functions []string
	for _, g := range catalog.Groups() {
		for _, f := range g.Functions {
			if f.Runtime == "level_zero" {
				functions = append(functions, f.Symbol)
			}
		}
	}
	job := harness.StartJob(t, python.Job("levelzero.py", functions...)...)
	tracing := harness.Attach(t, append([]string{"--probe", levelZeroGroups}, harness.Unbudgeted...), job.Process.Pid)
	job.GoOn(t)
	told := job.FinishJob(t)
	r := tracing.Finish(t)
	r.Lossless(t)
	rows := r.Rows(t, "SELECT name, status, error_code FROM span WHERE runtime = 'level_zero' ORDER BY ts_ns")
	if len(rows) != len(told.Calls) || len(rows) < 60 {
		t.Fatalf("%d calls recorded, %d made", len(rows), len(told.Calls))
	}
	for i, call := range told.Calls {
		if rows[i][0] != call.Name || rows[i][1] != "error" || harness.Integer(t, rows[i][2]) != call.Status || call.Status == 0 {
			t.Errorf("call %d: recorded %v, want %s and error %d", i, rows[i], call.Name, call.Status)
		}
	}
	if n := r.Number(t, "SELECT count(*) FROM memory"); n != 0 {
		t.Errorf("%d rows of memory of calls that failed", n)
	}
}
