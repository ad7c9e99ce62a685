package e2e

import (
	"syscall"
	"testing"
	"time"
)

func TestAnyEndOfTheJobEndsTheRecording(t *testing.T) {
	debianTorch.beside(t, counting)
	ends := map[string]int{
		"return": 0, "sys.exit": 7, "os._exit": 8, "raise": 1, "daemon-thread": 0,
		"sigterm": -int(syscall.SIGTERM), "sigkill": -int(syscall.SIGKILL), "abort": -int(syscall.SIGABRT), "segv": -int(syscall.SIGSEGV),
	}
	for how, code := range ends {
		t.Run(how, func(t *testing.T) {
			job := startJob(t, debianTorch.job("exits.py", "--how", how)...)
			tracing := attach(t, unbudgeted, job.Process.Pid)
			job.goOn(t)
			if got, err := job.wait(); err != nil || got != code {
				t.Errorf("the job ended with %d (%v), want %d\n%s", got, err, code, job.transcript())
			}
			told, err := job.truth()
			if err != nil {
				t.Fatal(err)
			}
			r := tracing.finish(t)
			r.lossless(t)
			sameCounts(t, "operators", r.counts(t, `SELECT name, count(*) FROM span
				WHERE layer = 'op' AND status = 'ok' AND name IN ('aten::erfc', 'aten::lgamma', 'aten::sigmoid') AND %s GROUP BY ALL`, r.within(t, told)), told.Operators)
			if n := r.number(t, "SELECT count(*) FROM process WHERE ended_ns IS NULL OR ended_ns < started_ns"); n > 0 {
				t.Errorf("%d processes without an end", n)
			}
		})
	}
}

func TestAfterTheTracerLeftTheJobIsAsItWas(t *testing.T) {
	debianTorch.beside(t, counting)
	job := startJob(t, debianTorch.job("mlp.py", "--seconds", "60")...)
	tracing := attach(t, unbudgeted, job.Process.Pid)
	texts := functionTexts(t, job.Process.Pid, torchLibrary, probedFunctions...)
	job.goOn(t)
	time.Sleep(time.Second) // of training: a tracer that saw nothing says so, and that is an error
	tracing.interrupt(t)
	for _, x := range texts {
		if x.probed(t) {
			t.Errorf("%s is still probed", x.symbol)
		}
	}
	job.Process.Signal(syscall.SIGTERM)
	job.finishJob(t)
}
