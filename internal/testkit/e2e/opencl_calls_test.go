package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// nextEntry are functions that may call the caller back: no return probe, and
// so no status.
var nextEntry = []string{"clBuildProgram", "clCompileProgram", "clLinkProgram"}

// notCalled says why the program leaves a function of the catalog out.
var notCalled = map[string]string{
	"clEnqueueNDRangeKernel": "told by the kernel's name", "clEnqueueTask": "told by the kernel's name",
	"clEnqueueWaitForEvents":      "PoCL ends the process: not implemented",
	"clCreateImageWithProperties": "Debian's ICD loader has it, PoCL 3.1 has not",
}

// TestEveryOpenCLCall compares each call of a program that makes all of them, on
// PoCL, with what the program says it asked for and was told.
func TestEveryOpenCLCall(t *testing.T) {
	harness.Beside(t, "opencl")
	program := filepath.Join("..", "..", "..", "testdata", "native", "build", "opencl_calls")
	if _, err := os.Stat(program); err != nil {
		t.Skip("the native programs are not built: run `make native`")
	}
	job := harness.Start(t, program, "wait")
	job.Line(t, "ready ")
	tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
	job.GoOn(t)
	told := job.FinishJob(t)
	r := tracing.Finish(t)
	r.Lossless(t)

	var got []harness.RuntimeCall
	for _, row := range r.Rows(t, `SELECT name, status, error_code, bytes, direction FROM span WHERE runtime = 'opencl' ORDER BY ts_ns`) {
		call := harness.RuntimeCall{Name: fmt.Sprint(row[0]), Bytes: -1}
		switch {
		case slices.Contains(nextEntry, call.Name):
		case row[1] == "error" && row[2] != nil:
			call.Status = harness.Integer(t, row[2])
		case row[1] != "ok":
			call.Status = -1
		}
		if row[3] != nil {
			call.Bytes = harness.Integer(t, row[3])
		}
		if row[4] != nil {
			call.Direction = fmt.Sprint(row[4])
		}
		got = append(got, call)
	}
	t.Logf("opencl: %d of %d calls recorded", len(got), len(told.Calls)) // internal/dev/matrix reads it
	for i := range min(len(got), len(told.Calls)) {
		if got[i] != told.Calls[i] {
			t.Fatalf("call %d: recorded %s, want %s", i, got[i], told.Calls[i])
		}
	}
	if len(got) != len(told.Calls) {
		t.Errorf("%d calls recorded, %d made", len(got), len(told.Calls))
	}
	checkAllCalled(t, told.Calls)
	checkOpenCLMemory(t, r)
	checkOpenCLTimes(t, r)
	// All commands go to the program's one queue.
	queues := r.Rows(t, "SELECT DISTINCT stream FROM span WHERE name LIKE 'clEnqueue%%' OR name IN ('clFinish', 'clFlush', 'square', 'twice')")
	made := r.Rows(t, "SELECT stream FROM span WHERE name = 'clCreateCommandQueue' AND status = 'ok'")
	if len(queues) != 1 || len(made) != 1 || fmt.Sprint(queues) != fmt.Sprint(made) {
		t.Errorf("commands went to the queues %v, of which %v was made", queues, made)
	}
	for _, c := range []struct{ creator, column string }{{"clCreateContext", "context"}, {"clCreateKernel", "handle"}} {
		if n := r.Number(t, "SELECT count(*) FROM span WHERE name = '%s' AND (status = 'ok') != (%s IS NOT NULL)", c.creator, c.column); n != 0 {
			t.Errorf("%d calls of %s without the %s that they made, or with one that they did not", n, c.creator, c.column)
		}
	}
	sizes := fmt.Sprint(r.Rows(t, "SELECT DISTINCT name, work_x, block_x FROM span WHERE name IN ('square', 'twice') AND work_x IS NOT NULL "+
		"ORDER BY ALL"))
	if sizes != "[[square 1024 32] [twice 1024 <nil>]]" { // of the second the runtime chooses the groups
		t.Errorf("work and group sizes: %s", sizes)
	}
}

// checkAllCalled: the program makes every call that the catalog has.
func checkAllCalled(t *testing.T, told []harness.RuntimeCall) {
	t.Helper()
	for _, group := range catalog.Groups() {
		for _, f := range group.Functions {
			called := slices.ContainsFunc(told, func(c harness.RuntimeCall) bool { return c.Name == f.Symbol })
			if f.Runtime == "opencl" && !called && notCalled[f.Symbol] == "" {
				t.Errorf("%s is in the catalog, and not called", f.Symbol)
			}
		}
	}
}

func checkOpenCLMemory(t *testing.T, r *harness.Recording) {
	t.Helper()
	rows := r.Counts(t, "SELECT concat_ws(' ', action, space, device_id, bytes), count(*) FROM memory GROUP BY ALL")
	harness.SameCounts(t, "rows of memory", rows, map[string]int64{
		"alloc device 0 4096": 2, "free device 0 4096": 2,
		"alloc device 0": 3, "free device 0": 3, // images: the calls do not say how large
		"alloc managed 0 8192": 1, "free managed 0 8192": 1, "alloc managed 0 64": 1,
		"alloc pinned 512": 1, "free pinned 512": 1, "alloc host 4096": 1, "free host 4096": 1,
	})
}

// checkOpenCLTimes: what waited for, or returned when it was done, has a bound
// that holds the call; what OpenCL was asked about, its own time.
func checkOpenCLTimes(t *testing.T, r *harness.Recording) {
	t.Helper()
	// The tracer waits ten seconds for a command's end. An emulated machine compiles a
	// kernel for half of that between one command and the wait for it; a command counts
	// here if the queue was waited for well before.
	if without := r.Rows(t, `SELECT name FROM span s WHERE status = 'ok' AND category IN ('launch', 'copy', 'set')
		AND device_time_method IS NULL AND name NOT LIKE 'clEnqueueSVMM%%' AND EXISTS (FROM span w WHERE w.name = 'clFinish'
		AND w.ts_ns > s.ts_ns AND w.ts_ns + w.duration_ns < s.ts_ns + s.duration_ns + 8e9) ORDER BY ts_ns`); len(without) != 0 {
		t.Errorf("commands whose end was waited for have no bound: %v", without)
	}
	if n := r.Number(t, "SELECT count(*) FROM span WHERE device_time_method = 'measured' AND name = 'clEnqueueFillBuffer'"); n != 1 {
		t.Errorf("%d fills with a measured time, want the one that OpenCL was asked about", n)
	}
	if n := r.Number(t, "SELECT count(*) FROM span WHERE device_time_method = 'measured' AND device_time_lo_ns != device_time_hi_ns"); n != 0 {
		t.Errorf("%d measured times are no points", n)
	}
}
