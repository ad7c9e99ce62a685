package badinput

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestASignalEndsTheRecordingWithASummary(t *testing.T) {
	needKernel(t)
	job := openCL(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		dataset := filepath.Join(t.TempDir(), "d")
		line := []string{ebpfprof, "attach", "--pid", pidOf(job), "--output", dataset}
		if signal == syscall.SIGTERM { // the table of operators stands in for the verdict
			line = append(line, "--no-verdict")
		}
		a := start(t, nil, line...)
		a.until(t, "attached in ")
		time.Sleep(500 * time.Millisecond)
		a.Process.Signal(signal)
		r := a.end(t)
		r.check(t, ok)
		table := strings.Contains(r.stdout, "total ms") && strings.Contains(r.stdout, "clEnqueueNDRangeKernel")
		if !strings.Contains(r.stdout, "dataset: "+dataset) || table != (signal == syscall.SIGTERM) {
			t.Errorf("%v: no summary\n%s", signal, r.stdout)
		}
		if n := rows(t, dataset, kernelLaunches); n < 100 {
			t.Errorf("%v: %d launches", signal, n)
		}
		if n := rows(t, dataset, "SELECT count(*) FROM session WHERE ended_ns IS NOT NULL"); n != 1 {
			t.Errorf("%v: the session has no end", signal)
		}
	}
	if !job.alive() {
		t.Error("the job ended")
	}
}

func TestARecordingUnderNohupOutlivesItsTerminal(t *testing.T) {
	needKernel(t)
	job, dataset := openCL(t), filepath.Join(t.TempDir(), "d")
	a := start(t, nil, "sh", "-c", `trap "" HUP; exec "$0" "$@"`, ebpfprof, "attach", "--pid", pidOf(job), "--output", dataset)
	a.until(t, "attached in ")
	a.Process.Signal(syscall.SIGHUP)
	select {
	case <-a.done:
		t.Fatal("the terminal's end ended the recording")
	case <-time.After(time.Second):
	}
	a.Process.Signal(syscall.SIGTERM)
	a.end(t).check(t, ok)
}

func TestARecordingOutlivesTheReaderOfItsOutput(t *testing.T) {
	needKernel(t)
	job, dataset := openCL(t), filepath.Join(t.TempDir(), "d")
	run(t, "sh", "-c", ebpfprof+" attach --duration 2s --pid "+pidOf(job)+" --output "+dataset+" 2>&1 | head -c 1")
	for begin := time.Now(); len(attachedTo(job)) > 0 && time.Since(begin) < patience; {
		time.Sleep(100 * time.Millisecond)
	}
	if n := rows(t, dataset, "SELECT count(*) FROM session WHERE ended_ns IS NOT NULL"); n != 1 {
		t.Error("the session has no end")
	}
}

func TestSIGKILLLeavesAReadableDatasetAndNoProbe(t *testing.T) {
	needKernel(t)
	if !needUprobeMulti() {
		t.Skip("kernel: no uprobe.multi, whose links can be listed")
	}
	libraries, dataset := t.TempDir(), filepath.Join(t.TempDir(), "d")
	library := copyLibrary(t, libraries) // ours alone: whoever else traces now, traces another file
	job := openCL(t, "LD_LIBRARY_PATH="+libraries)
	a := start(t, nil, ebpfprof, "attach", "--pid", pidOf(job), "--rotate", "300ms", "--output", dataset)
	a.until(t, "attached in ")
	if links(t, library) == 0 {
		t.Fatal("no probe is listed while the recording goes on")
	}
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if files, _ := filepath.Glob(filepath.Join(dataset, "span", "*-000002.parquet")); len(files) > 0 {
			break
		}
		if time.Since(begin) > patience {
			t.Fatal("the dataset does not rotate")
		}
	}
	a.Process.Kill()
	<-a.done
	if n := rows(t, dataset, kernelLaunches); n < 100 {
		t.Errorf("%d launches can be read", n)
	}
	n := links(t, library)
	for begin := time.Now(); n > 0 && time.Since(begin) < 10*time.Second; n = links(t, library) {
		time.Sleep(50 * time.Millisecond) // the kernel cleans up once the process has ended
	}
	if n > 0 {
		t.Errorf("%d links are left in the kernel", n)
	}
	if !job.alive() {
		t.Error("the job ended")
	}
	again := filepath.Join(t.TempDir(), "again")
	run(t, ebpfprof, "attach", "--pid", pidOf(job), "--duration", "1s", "--output", again).check(t, ok)
}

// attachedTo lists the tracers whose command line names the job.
func attachedTo(job *background) string {
	out, _ := exec.Command("pgrep", "-f", ebpfprof+" attach .*"+pidOf(job)).Output()
	return string(out)
}

// Where the kernel takes probes out one by one, the first signal waits for that with a
// word, and the second does not: the tracer is gone, the kernel takes out what is left,
// and the job has not noticed.
func TestASecondSignalEndsTheTracerAtOnce(t *testing.T) {
	needKernel(t)
	libraries, dataset := t.TempDir(), filepath.Join(t.TempDir(), "d")
	copyLibrary(t, libraries)
	job := openCL(t, "LD_LIBRARY_PATH="+libraries)
	a := start(t, []string{"EBPFPROF_WITHOUT=uprobe_multi"}, ebpfprof, "attach", "--pid", pidOf(job), "--budget", "off", "--probe",
		"opencl,opencl-sync", "--rotate", "300ms", "--output", dataset)
	a.until(t, "attached in ")
	a.Process.Signal(syscall.SIGTERM)
	a.until(t, "taking out ")
	a.Process.Signal(syscall.SIGTERM)
	r := a.end(t)
	if status, is := a.ProcessState.Sys().(syscall.WaitStatus); !is || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v, not at once by the signal\n%s", a.ProcessState, r.stderr)
	}
	if !job.alive() {
		t.Error("the job ended")
	}
	if n := rows(t, dataset, "SELECT count(*) FROM session"); n != 1 {
		t.Errorf("the dataset has %d sessions", n)
	}
}

// Where the kernel takes probes out one by one, a recording with a budget says what it
// leaves out and what to do, on one line and in the dataset, and has the launches all the
// same; a recording that has nothing for that reason says it again.
func TestWhatAnOldKernelLeavesOutIsSaid(t *testing.T) {
	needKernel(t)
	old, dataset := []string{"env", "EBPFPROF_WITHOUT=uprobe_multi", ebpfprof, "attach", "--duration", "1s"}, filepath.Join(t.TempDir(), "d")
	job := openCL(t)
	r := run(t, append(old, "--pid", pidOf(job), "--output", dataset)...)
	r.check(t, ok)
	if n := strings.Count(r.stderr, "\nwarning: without uprobe.multi "); n != 1 || !strings.Contains(r.stderr, "no call of op, ") {
		t.Errorf("%d warnings:\n%s", n, r.stderr)
	}
	if n := rows(t, dataset, "SELECT count(*) FROM warning WHERE kind = 'slice' AND source = 'uprobe_multi' AND detail LIKE "+
		"'%--budget off%'"); n != 1 {
		t.Errorf("%d rows of warning say so", n)
	}
	if n := rows(t, dataset, kernelLaunches); n == 0 {
		t.Error("no launch, although they are few")
	}
	if n := rows(t, dataset, "SELECT count(*) FROM slice"); n != 0 {
		t.Errorf("%d slices", n)
	}
	alone := filepath.Join(t.TempDir(), "alone")
	r = run(t, append(old, "--pid", pidOf(job), "--output", alone, "--probe", "op", "--frequency", "0", "--off-cpu-threshold", "0")...)
	r.check(t, nothing, "no call of op is recorded", "--budget off")
}
