package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

func TestResultsAreTheSameWithAndWithoutTheTracer(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		for name := range trainingJobs {
			bare := harness.RunJob(t, training(v, name)...)
			if bare.SHA256 == "" {
				t.Fatal("the job told no sum of its results")
			}
			budgets := map[string][]string{"off": harness.Unbudgeted}
			if name == "mlp" {
				budgets["the default"] = nil
			}
			for budget, flags := range budgets {
				if r := harness.Shared(t, flags, training(v, name)...); r.Truth.SHA256 != bare.SHA256 {
					t.Errorf("%s: its results are %s with --budget %s and %s without the tracer", name, r.Truth.SHA256, budget, bare.SHA256)
				}
			}
		}
	})
}

func TestAKilledTracerLeavesNoProbe(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		args := v.Job("mlp.py", "--steps", "1000", "--pause", "0.001") // three seconds and more on any machine
		job := harness.StartJob(t, args...)
		texts := functionTexts(t, job.Process.Pid, torchLibrary, probedFunctions...)
		for _, x := range texts {
			if x.probed(t) {
				t.Fatalf("%s is probed before the tracer is there", x.symbol)
			}
		}
		tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
		for _, x := range texts {
			if !x.probed(t) {
				t.Fatalf("%s is not probed: nothing to be removed", x.symbol)
			}
		}
		job.GoOn(t)
		time.Sleep(500 * time.Millisecond) // in the middle of the work
		tracing.Process.Signal(syscall.SIGKILL)
		if code, err := tracing.Wait(); code != -int(syscall.SIGKILL) {
			t.Fatalf("the tracer ended by itself: %d, %v", code, err)
		}
		for _, x := range texts {
			x.becomes(t, false)
		}
		select {
		case <-job.Done():
			t.Fatal("the job ended before the kill could matter")
		default:
		}
		told := job.FinishJob(t)
		if bare := harness.RunJob(t, args...); told.SHA256 != bare.SHA256 {
			t.Errorf("the job's results are %s, and %s without the tracer", told.SHA256, bare.SHA256)
		}
		// What was known by then can be read; rows need a rotation (see below).
		r := &harness.Recording{Dataset: tracing.Dataset}
		if n := r.Number(t, "SELECT count(*) FROM session WHERE ended_ns IS NULL"); n != 1 {
			t.Errorf("%d sessions without an end in the dataset of a killed tracer, want 1", n)
		}
	})
}

// Files are closed every minute, here every five seconds: this test waits for one.
func TestAKilledTracerLeavesItsClosedFiles(t *testing.T) {
	harness.PyPI.Beside(t)
	job := harness.StartJob(t, harness.PyPI.Job("mlp.py", "--seconds", "600", "--pause", "0.02")...)
	tracing := harness.Attach(t, []string{"--budget", "off", "--probe", "backward", "--rotate", "5s"}, job.Process.Pid)
	job.GoOn(t)
	for end := time.Now().Add(harness.Patience); !hasFiles(t, tracing.Dataset+"/span"); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no file of spans was closed in %s", harness.Patience)
		}
	}
	time.Sleep(time.Second)
	tracing.Process.Signal(syscall.SIGKILL)
	tracing.Wait()
	job.Process.Signal(syscall.SIGTERM)
	told := job.FinishJob(t)
	r := &harness.Recording{Dataset: tracing.Dataset}
	passes := r.Number(t, "SELECT count(*) FROM span WHERE category = 'backward'")
	if passes < told.Steps/10 || passes > told.Steps {
		t.Errorf("%d backward passes can be read, of %d", passes, told.Steps)
	}
	t.Logf("%d of %d backward passes were closed before the kill", passes, told.Steps)
	torn := r.Number(t, "SELECT count(*) FROM span WHERE end_method = 'unfinished' OR duration_ns IS NULL")
	if torn > 0 {
		t.Errorf("%d spans without an end", torn)
	}
	if n := r.Number(t, "SELECT count(*) FROM process WHERE framework = 'pytorch'"); n != 1 {
		t.Errorf("%d PyTorch processes in the dataset, want 1", n)
	}
}

func hasFiles(t *testing.T, dir string) bool {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, f := range files {
		if f.Name() != "schema.parquet" && !strings.HasPrefix(f.Name(), ".") {
			return true
		}
	}
	return false
}

func TestTwoTracersOnOneJobAreBothRight(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		job := harness.StartJob(t, training(v, "mlp")...)
		pid := job.Process.Pid
		first, second := harness.Attach(t, harness.Unbudgeted, pid), harness.Attach(t, harness.Unbudgeted, pid)
		job.GoOn(t)
		told := job.FinishJob(t)
		var counts []map[string]int64
		for _, a := range []*harness.Attached{first, second} {
			r := a.Finish(t)
			r.Lossless(t)
			counts = append(counts, r.Counts(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND status = 'ok' AND %s GROUP BY ALL",
				r.Within(t, told)))
		}
		whole := harness.Shared(t, harness.Unbudgeted, training(v, "mlp")...)
		want := whole.Counts(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND status = 'ok' AND %s GROUP BY ALL", whole.Region(t))
		harness.SameCounts(t, "the first", counts[0], want)
		harness.SameCounts(t, "the second", counts[1], want)
		if told.SHA256 != whole.Truth.SHA256 {
			t.Errorf("the job's results are %s with two tracers, %s with one", told.SHA256, whole.Truth.SHA256)
		}
	})
}

func TestATracerThatLeavesDoesNotDisturbAnother(t *testing.T) {
	harness.Debian.Beside(t)
	job := harness.StartJob(t, training(harness.Debian, "mlp")...)
	first, second := harness.Attach(t, harness.Unbudgeted, job.Process.Pid), harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
	first.Process.Signal(syscall.SIGKILL)
	first.Wait()
	job.GoOn(t)
	told := job.FinishJob(t)
	r := second.Finish(t)
	whole := harness.Shared(t, harness.Unbudgeted, training(harness.Debian, "mlp")...)
	count := "SELECT name, count(*) FROM span WHERE layer = 'op' AND status = 'ok' AND %s GROUP BY ALL"
	harness.SameCounts(t, "the one that stayed", r.Counts(t, count, r.Within(t, told)), whole.Counts(t, count, whole.Region(t)))
}

// A job of somebody else begins to use the same library: the probes are put in
// for each process then, and the traced job must lose no call by it.
func TestASecondJobOnTheSameLibraryCostsTheFirstNoCall(t *testing.T) {
	harness.Debian.Beside(t)
	if !harness.Debian.Alone(t) {
		t.Skip("other jobs on this machine map the same libtorch from the start")
	}
	job := harness.StartJob(t, harness.Debian.Job("mlp.py", "--seconds", "8")...)
	tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
	job.GoOn(t)
	// As long as a look for others takes to come around, on a busy machine too: of 40 steps
	// one may see nothing.
	other := harness.StartJob(t, harness.Debian.Job("mlp.py", "--seconds", "4")...)
	other.GoOn(t)
	other.FinishJob(t)
	told := job.FinishJob(t)
	r := tracing.Finish(t)
	r.Lossless(t)
	if n := r.Number(t, "SELECT count(*) FROM warning WHERE kind = 'attach' AND detail LIKE 'another job maps the file%%'"); n == 0 {
		t.Fatal("the probes were never put in for each process")
	}
	for _, row := range r.Rows(t, `SELECT name, count(*), count(*) FILTER (end_method = 'unfinished' OR status = 'threw') FROM span
		WHERE (layer = 'scope' OR category = 'backward') AND %s GROUP BY ALL`, r.Within(t, told)) {
		if n := harness.Integer(t, row[1]); n != told.Steps {
			t.Errorf("%s: %d spans of %d steps", row[0], n, told.Steps)
		}
		if n := harness.Integer(t, row[2]); n != 0 {
			t.Errorf("%s: %d without their end", row[0], n)
		}
	}
	// Each operator is called so often in every step.
	for _, row := range r.Rows(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND %s GROUP BY ALL", r.Within(t, told)) {
		if n := harness.Integer(t, row[1]); n%told.Steps != 0 {
			t.Errorf("%s: %d calls in %d steps", row[0], n, told.Steps)
		}
	}
}
