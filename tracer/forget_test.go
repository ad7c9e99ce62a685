package tracer

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
)

// openDescriptors counts those of this process.
func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// entries counts those of a map.
func entries(m *ebpf.Map) (n int) {
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	for it := m.Iterate(); it.Next(&key, &value); {
		n++
	}
	return n
}

// kept is what a session keeps of processes, by name.
func kept(s *Session) map[string]int {
	counts := map[string]int{
		"targets": entries(s.kernel.Map("targets")), "threads": entries(s.kernel.Map("threads")),
		"waits": entries(s.sampling.sampler.Map("waits")), "scopes": entries(s.kernel.Map("scopes")),
		"python_runtimes": entries(s.kernel.Map("python_runtimes")),
	}
	for share := range bpf.CallShareSHARES { // of all users, by the accounts
		for _, of := range s.kernel.Shares.Of(share) {
			counts[fmt.Sprint("account ", share)] += max(of.Taken, -of.Taken)
		}
	}
	answered := make(chan struct{})
	s.do(func(d *decode.Decoder) {
		counts["spaces"], counts["interpreters"] = s.sampling.walks.Held()
		counts["sampled threads"] = d.SampledThreads()
		counts["classes"] = s.classes.Processes()
		close(answered)
	})
	<-answered
	return counts
}

// pythonChurn forks children one after the other, each with a wait and a stack.
const pythonChurn = `
import os, sys, time
print("ready", flush=True); sys.stdin.readline()
def child():
    n = 0
    end = time.monotonic() + 0.02
    while time.monotonic() < end: n += 1
    time.sleep(0.005)
    os._exit(0)
for i in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0: child()
    os.waitpid(pid, 0)
print("done", flush=True); sys.stdin.readline()
`

// fewLeft is how many entries of a kind may be left of the job itself.
const fewLeft = 6

// What is kept of a process, a thread or a file goes when that does: after many
// short children as much is there as after one.
func TestNothingIsLeftOfChildrenThatHaveEnded(t *testing.T) {
	needKernel(t)
	const children = 60
	job := exec.Command("/usr/bin/python3", "-c", pythonChurn, strconv.Itoa(children))
	job.SysProcAttr = asNobody
	job.Dir = "/"
	stdin, _ := job.StdinPipe()
	stdout, _ := job.StdoutPipe()
	if err := job.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { syscall.Kill(-job.Process.Pid, syscall.SIGKILL); job.Wait() })
	lines := bufio.NewScanner(stdout)
	lines.Scan()
	var before, after int
	var left map[string]int
	sink, _ := recordLives(t, Options{PIDs: []int{job.Process.Pid}, Follow: true, Frequency: 499, OffCPU: time.Millisecond},
		func(s *Session, stop func()) {
			time.Sleep(time.Second)
			before = openDescriptors(t)
			fmt.Fprintln(stdin, "go")
			lines.Scan()
			// The ends are read one after the other; how soon, is the machine's.
			few := func() bool {
				left, after = kept(s), openDescriptors(t)
				return after <= before+8 && slices.Max(slices.Collect(maps.Values(left))) <= fewLeft
			}
			time.Sleep(2 * time.Second)
			for end := time.Now().Add(time.Minute); !few() && time.Now().Before(end); {
				time.Sleep(100 * time.Millisecond)
			}
			stop()
		})
	ended := 0
	for _, p := range sink.processes {
		if p.EndedNS != nil {
			ended++
		}
	}
	if ended != children {
		t.Errorf("%d of %d children have a row with an end", ended, children)
	}
	open := map[int32]bool{}
	for _, thread := range sink.threads {
		if open[thread.TID] = thread.EndedNS == nil; thread.TID == int32(job.Process.Pid) {
			delete(open, thread.TID)
		}
	}
	for tid, is := range open {
		if is {
			t.Errorf("thread %d of a child has no end", tid)
		}
	}
	if after > before+8 {
		t.Errorf("%d descriptors before %d children, %d after", before, children, after)
	}
	for what, n := range left {
		if n > fewLeft {
			t.Errorf("%d entries are left in %s", n, what)
		}
	}
	t.Logf("%d descriptors before, %d after; %v", before, after, left)
}
