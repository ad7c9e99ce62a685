package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// checkKernels compares the launches that succeeded with what the job told.
func checkKernels(t *testing.T, r *harness.Recording, told harness.Truth, where string) {
	t.Helper()
	r.Lossless(t)
	got := map[string]harness.Kernel{}
	for _, row := range r.Rows(t, `SELECT name, count(*), work_x, work_y, work_z, block_x, block_y, block_z FROM span
		WHERE runtime = 'opencl' AND category = 'launch' AND status = 'ok' AND %s GROUP BY ALL`, where) {
		name := fmt.Sprint(row[0])
		if _, twice := got[name]; twice {
			t.Errorf("kernel %s has launches of several sizes", name)
		}
		got[name] = harness.Kernel{
			Launches: harness.Integer(t, row[1]),
			Global:   []int64{harness.Integer(t, row[2]), harness.Integer(t, row[3]), harness.Integer(t, row[4])},
			Local:    []int64{harness.Integer(t, row[5]), harness.Integer(t, row[6]), harness.Integer(t, row[7])},
		}
	}
	for name, want := range told.Kernels {
		want.Global, want.Local = threeDimensions(want.Global), threeDimensions(want.Local)
		if fmt.Sprint(got[name]) != fmt.Sprint(want) {
			t.Errorf("kernel %s: recorded %+v, want %+v", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) > 0 || len(told.Kernels) == 0 {
		t.Errorf("kernels of another name: %v", got)
	}
	copies := map[string]harness.Calls{}
	for _, row := range r.Rows(t, `SELECT name, count(*), sum(bytes) FROM span
		WHERE runtime = 'opencl' AND category = 'copy' AND status = 'ok' AND %s GROUP BY ALL`, where) {
		copies[fmt.Sprint(row[0])] = harness.Calls{Calls: harness.Integer(t, row[1]), Bytes: harness.Integer(t, row[2])}
	}
	if copies["clEnqueueWriteBuffer"] != told.Writes || copies["clEnqueueReadBuffer"] != told.Reads {
		t.Errorf("copies: recorded %v, want %+v written and %+v read", copies, told.Writes, told.Reads)
	}
	finishes := r.Number(t, "SELECT count(*) FROM span WHERE name = 'clFinish' AND status = 'ok' AND %s", where)
	if finishes != told.Finishes {
		t.Errorf("clFinish: recorded %d, want %d", finishes, told.Finishes)
	}
}

// checkDeviceTimes: the job asks OpenCL when each launch ran, and so does whoever
// watches it ask: the sums are the same to the nanosecond.
func checkDeviceTimes(t *testing.T, r *harness.Recording) {
	t.Helper()
	times := r.Counts(t, `SELECT name, CAST(sum(device_time_lo_ns) AS BIGINT) FROM span WHERE category = 'launch' AND status = 'ok'
		AND device_time_method = 'measured' AND device_time_lo_ns = device_time_hi_ns AND %s GROUP BY ALL`, r.Region(t))
	harness.SameCounts(t, "nanoseconds on the device", times, r.Truth.DeviceNS)
	if n := r.Number(t, "SELECT count(*) FROM span WHERE category = 'launch' AND status = 'ok' AND device_id IS DISTINCT FROM 0 AND %s",
		r.Region(t)); n > 0 {
		t.Errorf("%d launches without their device", n)
	}
}

// threeDimensions fills up with ones, as the dataset does.
func threeDimensions(size []int64) []int64 {
	return append(append([]int64{}, size...), 1, 1, 1)[:3]
}

func TestOpenCLKernels(t *testing.T) {
	harness.NeedKernel(t)
	if err := exec.Command("/usr/bin/python3", "-c", "import pyopencl").Run(); err != nil {
		t.Skip("pyopencl is not installed: run `make deps`")
	}
	r := harness.Record(t, harness.Unbudgeted, harness.Torch{Python: "/usr/bin/python3"}.Job("opencl.py", "--count", "40", "--refused", "7",
		"--settle", "1")...)
	checkKernels(t, r, r.Truth, r.Region(t))
	refused := r.Counts(t, `SELECT error_code, count(*) FROM span
		WHERE runtime = 'opencl' AND category = 'launch' AND name = 'scale' AND status = 'error' AND %s GROUP BY ALL`, r.Region(t))
	harness.SameCounts(t, "launches refused, by error code", refused, r.Truth.Refused)
	checkDeviceTimes(t, r)
}

func TestOpenCLKernelsOfAProgramWithoutPython(t *testing.T) {
	harness.Beside(t, "opencl")
	program := filepath.Join("..", "..", "..", "testdata", "native", "build", "opencl")
	if _, err := os.Stat(program); err != nil {
		t.Skip("the native programs are not built: run `make native`")
	}
	t.Run("run", func(t *testing.T) {
		// It would be over before its probes are in, which `run` does not wait for.
		dataset := t.TempDir()
		c := harness.Start(t, append(append([]string{harness.Binary, "run", "--output", dataset}, harness.Unbudgeted...), "--", program, "60",
			"wait")...)
		c.Line(t, "ready ")
		becomesLinked(t, c.Process.Pid, c.ReadyPID(t), openCLLibrary)
		c.GoOn(t)
		told := c.FinishJob(t)
		checkKernels(t, &harness.Recording{Dataset: dataset}, told, "true")
	})
	t.Run("attach", func(t *testing.T) {
		job := harness.Start(t, program, "60", "wait")
		job.Line(t, "ready ")
		tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
		job.GoOn(t)
		told := job.FinishJob(t)
		checkKernels(t, tracing.Finish(t), told, "true")
	})
}
