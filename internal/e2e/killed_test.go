package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// timesKilled is how often the tracer is killed: 100 times before a merge, as often as
// EBPFPROF_KILLS says in the soak.
func timesKilled() int {
	if n, err := strconv.Atoi(os.Getenv("EBPFPROF_KILLS")); err == nil {
		return n
	}
	return 100
}

// The tracer is killed at random instants, a hundred times: while it plans, attaches,
// records, rotates. The job throws through its probes, forks, and checks itself.
// Nobody is harmed, no probe is left, and what each recording had closed can be read.
func TestATracerKilledAtAnyInstantHarmsNobody(t *testing.T) {
	debianTorch.beside(t, counting)
	job := startJob(t, debianTorch.job("throwfork.py")...)
	texts := functionTexts(t, job.Process.Pid, torchLibrary, probedFunctions...)
	job.goOn(t)
	killed, readable := 0, 0
	for i := range timesKilled() {
		dataset := filepath.Join(scratch, fmt.Sprintf("killed-%d", i))
		tracing := start(t, ebpfprof, "attach", "--quiet", "--budget", "off", "--rotate", "200ms", "--output", dataset, "--pid", fmt.Sprint(job.Process.Pid))
		if i%5 == 4 { // one in five has something to lose
			for end := time.Now().Add(30 * time.Second); !hasFiles(t, dataset+"/span") && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
		}
		time.Sleep(time.Duration(rand.IntN(2500)) * time.Millisecond)
		tracing.Process.Signal(syscall.SIGKILL)
		if code, err := tracing.wait(); code != -int(syscall.SIGKILL) {
			t.Fatalf("tracer %d ended by itself: %d, %v\n%s", i, code, err, tracing.transcript())
		}
		killed++
		select {
		case <-job.done:
			t.Fatalf("the job ended after %d tracers: %s", killed, job.transcript())
		default:
		}
		if hasFiles(t, dataset+"/span") {
			r := &recording{dataset: dataset}
			if n := r.number(t, "SELECT count(*) FROM span"); n > 0 {
				readable++
			}
		}
		os.RemoveAll(dataset)
	}
	for _, x := range texts {
		x.becomes(t, false)
	}
	job.Process.Signal(syscall.SIGTERM)
	told := job.finishJob(t) // and it checked itself
	if told.Steps == 0 {
		t.Error("the job made no step")
	}
	if readable == 0 {
		t.Errorf("of %d recordings none had closed a file: the kills came too early to show anything", killed)
	}
	t.Logf("%d tracers killed, %d left closed files, %d steps of the job", killed, readable, told.Steps)
}
