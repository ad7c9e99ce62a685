package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// checkKernels compares the launches that succeeded with what the job told.
func checkKernels(t *testing.T, r *recording, told truth, where string) {
	t.Helper()
	r.lossless(t)
	got := map[string]kernel{}
	for _, row := range r.rows(t, `SELECT name, count(*), work_x, work_y, work_z, block_x, block_y, block_z FROM span
		WHERE runtime = 'opencl' AND category = 'launch' AND status = 'ok' AND %s GROUP BY ALL`, where) {
		name := fmt.Sprint(row[0])
		if _, twice := got[name]; twice {
			t.Errorf("kernel %s has launches of several sizes", name)
		}
		got[name] = kernel{
			integer(t, row[1]), []int64{integer(t, row[2]), integer(t, row[3]), integer(t, row[4])},
			[]int64{integer(t, row[5]), integer(t, row[6]), integer(t, row[7])},
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
	copies := map[string]calls{}
	for _, row := range r.rows(t, `SELECT name, count(*), sum(bytes) FROM span
		WHERE runtime = 'opencl' AND category = 'copy' AND status = 'ok' AND %s GROUP BY ALL`, where) {
		copies[fmt.Sprint(row[0])] = calls{integer(t, row[1]), integer(t, row[2])}
	}
	if copies["clEnqueueWriteBuffer"] != told.Writes || copies["clEnqueueReadBuffer"] != told.Reads {
		t.Errorf("copies: recorded %v, want %+v written and %+v read", copies, told.Writes, told.Reads)
	}
	finishes := r.number(t, "SELECT count(*) FROM span WHERE name = 'clFinish' AND status = 'ok' AND %s", where)
	if finishes != told.Finishes {
		t.Errorf("clFinish: recorded %d, want %d", finishes, told.Finishes)
	}
}

// checkDeviceTimes: the job asks OpenCL when each launch ran, and so does whoever
// watches it ask: the sums are the same to the nanosecond.
func checkDeviceTimes(t *testing.T, r *recording) {
	t.Helper()
	times := r.counts(t, `SELECT name, CAST(sum(device_time_lo_ns) AS BIGINT) FROM span WHERE category = 'launch' AND status = 'ok'
		AND device_time_method = 'measured' AND device_time_lo_ns = device_time_hi_ns AND %s GROUP BY ALL`, r.region(t))
	sameCounts(t, "nanoseconds on the device", times, r.truth.DeviceNS)
	if n := r.number(t, "SELECT count(*) FROM span WHERE category = 'launch' AND status = 'ok' AND device_id IS DISTINCT FROM 0 AND %s", r.region(t)); n > 0 {
		t.Errorf("%d launches without their device", n)
	}
}

// threeDimensions fills up with ones, as the dataset does.
func threeDimensions(size []int64) []int64 {
	return append(append([]int64{}, size...), 1, 1, 1)[:3]
}

func TestOpenCLKernels(t *testing.T) {
	needKernel(t)
	if err := exec.Command("/usr/bin/python3", "-c", "import pyopencl").Run(); err != nil {
		t.Skip("pyopencl is not installed: run `make deps`")
	}
	r := mustRecord(t, unbudgeted, torch{python: "/usr/bin/python3"}.job("opencl.py", "--count", "40", "--refused", "7", "--settle", "1")...)
	checkKernels(t, r, r.truth, r.region(t))
	refused := r.counts(t, `SELECT error_code, count(*) FROM span
		WHERE runtime = 'opencl' AND category = 'launch' AND name = 'scale' AND status = 'error' AND %s GROUP BY ALL`, r.region(t))
	sameCounts(t, "launches refused, by error code", refused, r.truth.Refused)
	checkDeviceTimes(t, r)
}

func TestOpenCLKernelsOfAProgramWithoutPython(t *testing.T) {
	beside(t, counting, "opencl")
	needKernel(t)
	program := filepath.Join("..", "..", "testdata", "native", "build", "opencl")
	if _, err := os.Stat(program); err != nil {
		t.Skip("the native programs are not built: run `make native`")
	}
	t.Run("run", func(t *testing.T) {
		// It would be over before its probes are in, which `run` does not wait for.
		dataset := t.TempDir()
		c := start(t, append(append([]string{ebpfprof, "run", "--output", dataset}, unbudgeted...), "--", program, "60", "wait")...)
		c.line(t, "ready ")
		becomesProbed(t, c.readyPID(t), openCLLibrary)
		c.goOn(t)
		told := c.finishJob(t)
		checkKernels(t, &recording{dataset: dataset}, told, "true")
	})
	t.Run("attach", func(t *testing.T) {
		job := start(t, program, "60", "wait")
		job.line(t, "ready ")
		tracing := attach(t, unbudgeted, job.Process.Pid)
		job.goOn(t)
		told := job.finishJob(t)
		checkKernels(t, tracing.finish(t), told, "true")
	})
}
