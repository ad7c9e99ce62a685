package e2e

import (
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// Jobs without a framework that do much of what is watched beside probes.
const (
	answering = `
import os
r1, w1 = os.pipe(); r2, w2 = os.pipe()
if os.fork() == 0:
    os.close(w1); os.close(r2)
    while os.read(r1, 1):
        os.write(w2, b"x")
    os._exit(0)
os.close(r1); os.close(w2)
print("ready", flush=True)
while True:
    os.write(w1, b"x"); os.read(r2, 1)`
	contending = `
import threading
turns = [threading.Semaphore(0) for _ in range(8)]
def take(i):
    while True:
        turns[i].acquire()
        turns[(i + 1) % len(turns)].release()
for i in range(len(turns)):
    threading.Thread(target=take, args=(i,), daemon=True).start()
turns[0].release()
print("ready", flush=True)
threading.Event().wait()`
	starting = `
import subprocess
print("ready", flush=True)
while True:
    subprocess.run(["/bin/true"])`
)

// What switches, system calls and wake-ups cost is known from the first moments on, and what
// costs more than its part of a budget gives way, with a warning: the budget here is a quarter
// of what they cost this job on this machine.
func TestWhatIsWatchedGivesWayToTheBudget(t *testing.T) {
	harness.NeedKernel(t)
	for name, program := range map[string]string{"switches": answering, "threads": contending} {
		t.Run(name, func(t *testing.T) {
			harness.Beside(t)
			job := harness.Start(t, "/usr/bin/python3", "-c", program)
			job.Line(t, "ready")
			priced := harness.Attach(t, []string{"--rotate", "1s", "--budget", "off"}, job.Process.Pid)
			untilRows(t, priced, "sample")
			whole := watchedCost(t, priced.Interrupt(t))
			if whole <= 0 {
				t.Fatalf("watching this job costs %g %% of its time: nothing to go by", whole)
			}
			tracing := harness.Attach(t, []string{"--rotate", "1s", "--budget", fmt.Sprintf("%.5f%%", whole/4)}, job.Process.Pid)
			untilRows(t, tracing, "warning WHERE kind = 'slice' AND source IN ('io', 'waits')")
			r := tracing.Interrupt(t)
			if left := watchedCost(t, r); left >= whole {
				t.Errorf("it took %.4f %% of the job's time under a budget of a quarter, and %.4f without", left, whole)
			}
			partsAddUp(t, r)
		})
	}
}

// A job that starts one process after the other pays for the programs at their beginnings and
// ends, and these are in the account.
func TestProcessStartsAreInTheAccount(t *testing.T) {
	harness.NeedKernel(t)
	harness.Beside(t)
	job := harness.Start(t, "/usr/bin/python3", "-c", starting)
	job.Line(t, "ready")
	tracing := harness.Attach(t, []string{"--rotate", "1s"}, job.Process.Pid)
	untilRows(t, tracing, "short_process WHERE command = 'true'")
	r := tracing.Interrupt(t)
	if n := r.Number(t, "SELECT count(*) FROM session WHERE cost_starts_percent > 0"); n != 1 {
		t.Errorf("process starts cost nothing: %v", r.Rows(t, "SELECT overhead_percent, cost_starts_percent FROM session"))
	}
	partsAddUp(t, r)
}

// untilRows waits until a recording that goes on has rows of a table, or such rows. Before its
// first rotation there is nothing to ask.
func untilRows(t *testing.T, of *harness.Attached, from string) {
	t.Helper()
	for deadline := time.Now().Add(harness.Patience); ; time.Sleep(200 * time.Millisecond) {
		said, err := exec.Command(harness.Binary, "query", of.Dataset, "SELECT count(*) FROM "+from, "--format", "csv").CombinedOutput()
		_, count, _ := strings.Cut(string(said), "\n")
		if n, _ := strconv.Atoi(strings.TrimSpace(count)); err == nil && n > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s: %s\n%s", from, said, of.Transcript())
		}
	}
}

// watchedCost is what switches, wake-ups, reads and writes cost, percent of the job's time.
func watchedCost(t *testing.T, r *harness.Recording) float64 {
	t.Helper()
	return r.Rows(t, "SELECT coalesce(cost_waits_percent, 0) + coalesce(cost_io_percent, 0) FROM session")[0][0].(float64)
}

// partsAddUp: the cost of a recording is the sum of its parts.
func partsAddUp(t *testing.T, r *harness.Recording) {
	t.Helper()
	row := r.Rows(t, `SELECT overhead_percent, cost_probes_percent + cost_in_out_percent + cost_waits_percent + cost_io_percent
		+ cost_samples_percent + cost_starts_percent + cost_own_percent FROM session`)[0]
	all, isNumber := row[0].(float64)
	sum, known := row[1].(float64)
	if !isNumber || !known || math.Abs(all-sum) > 1e-6*max(1, all) {
		t.Errorf("the recording cost %v %% of the job's time, its parts %v", row[0], row[1])
	}
}
