package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestResultsAreTheSameWithAndWithoutTheTracer(t *testing.T) {
	besideEachTorch(t, counting, func(t *testing.T, v torch) {
		for name := range training {
			bare := runJob(t, v.training(name)...)
			if bare.SHA256 == "" {
				t.Fatal("the job told no sum of its results")
			}
			budgets := map[string][]string{"off": unbudgeted}
			if name == "mlp" {
				budgets["the default"] = nil
			}
			for budget, flags := range budgets {
				if r := shared(t, flags, v.training(name)...); r.truth.SHA256 != bare.SHA256 {
					t.Errorf("%s: its results are %s with --budget %s and %s without the tracer", name, r.truth.SHA256, budget, bare.SHA256)
				}
			}
		}
	})
}

func TestAKilledTracerLeavesNoProbe(t *testing.T) {
	besideEachTorch(t, counting, func(t *testing.T, v torch) {
		args := v.job("mlp.py", "--steps", "2000")
		job := startJob(t, args...)
		texts := functionTexts(t, job.Process.Pid, torchLibrary, probedFunctions...)
		for _, x := range texts {
			if x.probed(t) {
				t.Fatalf("%s is probed before the tracer is there", x.symbol)
			}
		}
		tracing := attach(t, unbudgeted, job.Process.Pid)
		for _, x := range texts {
			if !x.probed(t) {
				t.Fatalf("%s is not probed: nothing to be removed", x.symbol)
			}
		}
		job.goOn(t)
		time.Sleep(500 * time.Millisecond) // in the middle of the work
		tracing.Process.Signal(syscall.SIGKILL)
		if code, err := tracing.wait(); code != -int(syscall.SIGKILL) {
			t.Fatalf("the tracer ended by itself: %d, %v", code, err)
		}
		for _, x := range texts {
			x.becomes(t, false)
		}
		select {
		case <-job.done:
			t.Fatal("the job ended before the kill could matter")
		default:
		}
		told := job.finishJob(t)
		if bare := runJob(t, args...); told.SHA256 != bare.SHA256 {
			t.Errorf("the job's results are %s, and %s without the tracer", told.SHA256, bare.SHA256)
		}
		// What was known by then can be read; rows need a rotation (see below).
		r := &recording{dataset: tracing.dataset}
		if n := r.number(t, "SELECT count(*) FROM session WHERE ended_ns IS NULL"); n != 1 {
			t.Errorf("%d sessions without an end in the dataset of a killed tracer, want 1", n)
		}
	})
}

// Files are closed every minute: this test waits for one.
func TestAKilledTracerLeavesItsClosedFiles(t *testing.T) {
	pypiTorch.beside(t, waiting)
	job := startJob(t, pypiTorch.job("mlp.py", "--seconds", "600", "--pause", "0.02")...)
	tracing := attach(t, []string{"--budget", "off", "--probe", "backward"}, job.Process.Pid)
	job.goOn(t)
	for end := time.Now().Add(patience); !hasFiles(t, tracing.dataset+"/span"); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no file of spans was closed in %s", patience)
		}
	}
	time.Sleep(time.Second)
	tracing.Process.Signal(syscall.SIGKILL)
	tracing.wait()
	job.Process.Signal(syscall.SIGTERM)
	told := job.finishJob(t)
	r := &recording{dataset: tracing.dataset}
	passes := r.number(t, "SELECT count(*) FROM span WHERE category = 'backward'")
	if passes < told.Steps/10 || passes > told.Steps {
		t.Errorf("%d backward passes can be read, of %d", passes, told.Steps)
	}
	t.Logf("%d of %d backward passes were closed before the kill", passes, told.Steps)
	torn := r.number(t, "SELECT count(*) FROM span WHERE end_method = 'unfinished' OR duration_ns IS NULL")
	if torn > 0 {
		t.Errorf("%d spans without an end", torn)
	}
	if n := r.number(t, "SELECT count(*) FROM process WHERE framework = 'pytorch'"); n != 1 {
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
	besideEachTorch(t, counting, func(t *testing.T, v torch) {
		job := startJob(t, v.training("mlp")...)
		pid := job.Process.Pid
		first, second := attach(t, unbudgeted, pid), attach(t, unbudgeted, pid)
		job.goOn(t)
		told := job.finishJob(t)
		var counts []map[string]int64
		for _, a := range []*attached{first, second} {
			r := a.finish(t)
			r.lossless(t)
			counts = append(counts, r.counts(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND status = 'ok' AND %s GROUP BY ALL", r.within(t, told)))
		}
		whole := shared(t, unbudgeted, v.training("mlp")...)
		want := whole.counts(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND status = 'ok' AND %s GROUP BY ALL", whole.region(t))
		sameCounts(t, "the first", counts[0], want)
		sameCounts(t, "the second", counts[1], want)
		if told.SHA256 != whole.truth.SHA256 {
			t.Errorf("the job's results are %s with two tracers, %s with one", told.SHA256, whole.truth.SHA256)
		}
	})
}

func TestATracerThatLeavesDoesNotDisturbAnother(t *testing.T) {
	debianTorch.beside(t, counting)
	job := startJob(t, debianTorch.training("mlp")...)
	first, second := attach(t, unbudgeted, job.Process.Pid), attach(t, unbudgeted, job.Process.Pid)
	first.Process.Signal(syscall.SIGKILL)
	first.wait()
	job.goOn(t)
	told := job.finishJob(t)
	r := second.finish(t)
	whole := shared(t, unbudgeted, debianTorch.training("mlp")...)
	count := "SELECT name, count(*) FROM span WHERE layer = 'op' AND status = 'ok' AND %s GROUP BY ALL"
	sameCounts(t, "the one that stayed", r.counts(t, count, r.within(t, told)), whole.counts(t, count, whole.region(t)))
}

// A job of somebody else begins to use the same library: the probes are put in
// for each process then, and the traced job must lose no call by it.
func TestASecondJobOnTheSameLibraryCostsTheFirstNoCall(t *testing.T) {
	debianTorch.beside(t, counting)
	if !debianTorch.alone(t) {
		t.Skip("other jobs on this machine map the same libtorch from the start")
	}
	job := startJob(t, debianTorch.job("mlp.py", "--seconds", "8")...)
	tracing := attach(t, unbudgeted, job.Process.Pid)
	job.goOn(t)
	other := startJob(t, debianTorch.training("mlp")...)
	other.goOn(t)
	other.finishJob(t)
	told := job.finishJob(t)
	r := tracing.finish(t)
	r.lossless(t)
	if n := r.number(t, "SELECT count(*) FROM warning WHERE kind = 'attach' AND detail LIKE 'another job maps the file%%'"); n == 0 {
		t.Fatal("the probes were never put in for each process")
	}
	for _, row := range r.rows(t, `SELECT name, count(*), count(*) FILTER (end_method = 'unfinished' OR status = 'threw') FROM span
		WHERE (layer = 'scope' OR category = 'backward') AND %s GROUP BY ALL`, r.within(t, told)) {
		if n := integer(t, row[1]); n != told.Steps {
			t.Errorf("%s: %d spans of %d steps", row[0], n, told.Steps)
		}
		if n := integer(t, row[2]); n != 0 {
			t.Errorf("%s: %d without their end", row[0], n)
		}
	}
	// Each operator is called so often in every step.
	for _, row := range r.rows(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND %s GROUP BY ALL", r.within(t, told)) {
		if n := integer(t, row[1]); n%told.Steps != 0 {
			t.Errorf("%s: %d calls in %d steps", row[0], n, told.Steps)
		}
	}
}
