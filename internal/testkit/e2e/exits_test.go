package e2e

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

func TestAnyEndOfTheJobEndsTheRecording(t *testing.T) {
	harness.Debian.Beside(t)
	ends := map[string]int{
		"return": 0, "sys.exit": 7, "os._exit": 8, "raise": 1, "daemon-thread": 0,
		"sigterm": -int(syscall.SIGTERM), "sigkill": -int(syscall.SIGKILL), "abort": -int(syscall.SIGABRT), "segv": -int(syscall.SIGSEGV),
	}
	for how, code := range ends {
		t.Run(how, func(t *testing.T) {
			job := harness.StartJob(t, harness.Debian.Job("exits.py", "--how", how)...)
			tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
			job.GoOn(t)
			if got, err := job.Wait(); err != nil || got != code {
				t.Errorf("the job ended with %d (%v), want %d\n%s", got, err, code, job.Transcript())
			}
			told, err := job.Truth()
			if err != nil {
				t.Fatal(err)
			}
			r := tracing.Finish(t)
			r.Lossless(t)
			harness.SameCounts(t, "operators", r.Counts(t, `SELECT name, count(*) FROM span
				WHERE layer = 'op' AND status = 'ok' AND name IN ('aten::erfc', 'aten::lgamma', 'aten::sigmoid') AND %s
				GROUP BY ALL`, r.Within(t, told)), told.Operators)
			if n := r.Number(t, "SELECT count(*) FROM process WHERE ended_ns IS NULL OR ended_ns < started_ns"); n > 0 {
				t.Errorf("%d processes without an end", n)
			}
		})
	}
}

func TestAfterTheTracerLeftTheJobIsAsItWas(t *testing.T) {
	harness.Debian.Beside(t)
	job := harness.StartJob(t, harness.Debian.Job("mlp.py", "--seconds", "60")...)
	tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
	texts := functionTexts(t, job.Process.Pid, torchLibrary, probedFunctions...)
	job.GoOn(t)
	works(t, job.Process.Pid, time.Second/2) // a tracer that saw nothing says so, and that is an error
	tracing.Interrupt(t)
	for _, x := range texts {
		if x.probed(t) {
			t.Errorf("%s is still probed", x.symbol)
		}
	}
	job.Process.Signal(syscall.SIGTERM)
	job.FinishJob(t)
}

// works waits until a job has had so much more of a CPU.
func works(t *testing.T, pid int, more time.Duration) {
	t.Helper()
	ran := func() (ns int64) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		if err == nil {
			_, err = fmt.Sscan(string(text), &ns)
		}
		if err != nil {
			t.Fatal(err)
		}
		return ns
	}
	begun := ran()
	wait(t, "work of the job", func() bool { return ran()-begun >= more.Nanoseconds() })
}
