package e2e

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// standsStill are jobs without any framework that do not go on.
const (
	takesTwice = `
import threading
lock = threading.Lock()
def take_twice():
    lock.acquire()
    print("ready standing", flush=True)
    lock.acquire()
take_twice()`
	eachOthers = `
import threading
first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
def one():
    with first:
        both.wait()
        print("ready standing", flush=True)
        second.acquire()
def two():
    with second:
        both.wait()
        first.acquire()
threading.Thread(target=two).start()
one()`
	busy = `
print("ready standing", flush=True)
n = 0
while True:
    n += 1`
)

// A job of plain Python that hangs has called nothing and run nothing, and all the same its recording says
// who stands where and who holds the lock.
func TestAJobThatStandsStillIsShownWithItsStacks(t *testing.T) {
	harness.NeedKernel(t)
	for _, c := range []struct {
		name, program string
		stop          bool
		words         []string
	}{
		{"a lock taken twice", takesTwice, false, []string{"main thread in futex, still for ", "py take_twice  <string>:7"}},
		{"a deadlock of two", eachOthers, false, []string{"main thread in futex, still for ", "py one  <string>:8", "py two  <string>:12"}},
		{"a stopped process", busy, true, []string{"is stopped by a signal: continue it with kill -CONT ", "py <module>  <string>:"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := harness.Start(t, "/usr/bin/python3", "-c", c.program)
			job.Line(t, "ready ")
			if c.stop {
				if err := job.Process.Signal(syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			tracing := harness.Attach(t, nil, job.Process.Pid)
			hangUntil(t, tracing.Dataset, c.words...)
			if err := tracing.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if code, err := tracing.Wait(); err != nil || code != 0 {
				t.Errorf("the recording ended with %d, %v\n%s", code, err, tracing.Transcript())
			}
			for _, command := range [][]string{{"report", tracing.Dataset}, {"stacks", tracing.Dataset, "--standing"}} {
				said, err := exec.Command(harness.Binary, command...).CombinedOutput()
				for _, w := range c.words {
					if !strings.Contains(string(said), w) {
						t.Errorf("%s, %v: without %q\n%s", command[0], err, w, said)
					}
				}
			}
		})
	}
}
