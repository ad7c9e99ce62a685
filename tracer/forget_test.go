package tracer

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/bpf"
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
		"waits": entries(s.sampler.Map("waits")), "scopes": entries(s.kernel.Map("scopes")),
		"python_runtimes": entries(s.kernel.Map("python_runtimes")),
	}
	answered := make(chan struct{})
	s.do(func(d *decoder) {
		counts["spaces"], counts["interpreters"] = s.walks.Held()
		counts["introduced"] = len(d.introduced)
		counts["classes"] = s.classes.files.Processes()
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
	sink, _ := recordLives(t, Options{PIDs: []int{job.Process.Pid}, Follow: true, Frequency: 499, OffCPU: time.Millisecond}, func(s *Session, stop func()) {
		time.Sleep(time.Second)
		before = openDescriptors(t)
		fmt.Fprintln(stdin, "go")
		lines.Scan()
		time.Sleep(2 * time.Second)
		left, after = kept(s), openDescriptors(t)
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
		if n > 6 {
			t.Errorf("%d entries are left in %s", n, what)
		}
	}
	t.Logf("%d descriptors before, %d after; %v", before, after, left)
}

// Scopes called step 1, step 2, … have their names in the rows; the sums stay short.
func TestNamesThatNeverEndAreSummedTogether(t *testing.T) {
	d, sink, index := testDecoder(t)
	const steps = 3 * maxSummaryNames
	scope := span(index("record_function"), 0)
	for i := range steps {
		text := make([]byte, textHead+128)
		name := fmt.Sprintf("step %d", i)
		text[0] = uint8(bpf.CallRecordKindRECORD_TEXT)
		binary.NativeEndian.PutUint16(text[2:], uint16(len(name)))
		binary.NativeEndian.PutUint64(text[8:], uint64(i+1))
		copy(text[textHead:], name)
		d.record(text)
		scope.SpanId = uint64(i + 1)
		d.record(encode(scope, 0))
	}
	if err := d.flush(); err != nil {
		t.Fatal(err)
	}
	for i, s := range sink.spans {
		if want := fmt.Sprintf("step %d", i); s.Call.Name != want {
			t.Fatalf("scope %d is %q, want %q", i, s.Call.Name, want)
		}
	}
	if n := len(d.totals.Operators); n > maxSummaryNames+1 {
		t.Errorf("the sums have %d names", n)
	}
	if n := d.named.Len(); n > maxNames {
		t.Errorf("%d names are kept", n)
	}
	var sum float64
	for _, o := range d.totals.Operators {
		sum += o.Count
	}
	if sum != steps {
		t.Errorf("the sums have %v of %d scopes", sum, steps)
	}
}

// A job that allocates and never frees is followed up to a number.
func TestLiveAllocationsOfAProcessAreFollowedUpToANumber(t *testing.T) {
	h := newHostMemory()
	bytes := int64(8)
	for i := range int64(maxLiveAllocations + 100) {
		h.follow(&Memory{PID: 1, Action: "alloc", Address: i + 1, Bytes: &bytes}, 1)
	}
	free := &Memory{PID: 2, Action: "free", Address: 1}
	h.follow(&Memory{PID: 2, Action: "alloc", Address: 1, Bytes: &bytes}, 1)
	h.follow(free, 1)
	if h.crowded != 100 || len(h.processes[1].size) != maxLiveAllocations {
		t.Errorf("%d allocations are followed, %d not", len(h.processes[1].size), h.crowded)
	}
	if free.Bytes == nil || *free.Bytes != 8 {
		t.Errorf("another process's free has %v bytes", free.Bytes)
	}
	if h.ended(1); len(h.processes) != 1 {
		t.Errorf("%d processes are left", len(h.processes))
	}
}
