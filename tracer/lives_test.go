package tracer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/job"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// livesSink keeps processes and threads too.
type livesSink struct {
	recordingSink
	mu        sync.Mutex
	processes map[int64]Process
	threads   []Thread
}

// Write implements event.Sink.
func (s *livesSink) Write(b *event.Batch) error {
	s.mu.Lock()
	for _, row := range b.Processes {
		s.processes[row.ID] = row
	}
	s.mu.Unlock()
	s.threads = append(s.threads, b.Threads...)
	return s.recordingSink.Write(b)
}

func (s *livesSink) warned(kind string) (found []Warning) {
	for _, w := range s.warnings {
		if w.Kind == kind || w.Source == kind {
			found = append(found, w)
		}
	}
	return found
}

// sampledTime is how long samples of a process say that it ran.
func (s *livesSink) sampledTime(pid int, sinceNS int64) (sum time.Duration) {
	for _, sample := range s.samples {
		if sample.PID == int32(pid) && sample.State == OnCPU && sample.TSNS >= sinceNS {
			sum += time.Duration(sample.WeightNS)
		}
	}
	return sum
}

// sawAllOf checks that a job's samples are as many as its CPU time asks for.
func (s *livesSink) sawAllOf(t *testing.T, job *livesJob) {
	t.Helper()
	seen, ran := s.sampledTime(job.Process.Pid, 0), job.ProcessState.UserTime()
	if ran < 100*time.Millisecond || seen < ran*2/3 {
		t.Errorf("%s of the other job's %s were seen", seen, ran)
	}
}

// livesJob is one run of testdata/native/lives.c.
type livesJob struct {
	*exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// asNobody runs a job as an unprivileged user.
var asNobody = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Setpgid: true}

// publicTemp is a directory that every user may enter.
func publicTemp(t *testing.T) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "ebpfprof-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	if err := os.Chmod(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	return directory
}

var buildLives = sync.OnceValue(func() error {
	out, err := exec.Command("make", "-s", "-C", filepath.Join("..", "testdata", "native"), "build/lives").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the native jobs: %w\n%s", err, out)
	}
	return nil
})

func startLives(t *testing.T, as *syscall.SysProcAttr, arguments ...string) *livesJob {
	t.Helper()
	if err := buildLives(); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join("..", "testdata", "native", "build", "lives"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(publicTemp(t), "lives")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	job := &livesJob{Cmd: exec.Command(path, arguments...)}
	job.Dir = "/"
	job.SysProcAttr = as
	if as == nil {
		job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	job.stdin, _ = job.StdinPipe()
	stdout, _ := job.StdoutPipe()
	job.lines = bufio.NewScanner(stdout)
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(-job.Process.Pid, syscall.SIGKILL); job.Wait() })
	job.line(t) // ready
	return job
}

func (j *livesJob) goOn() { io.WriteString(j.stdin, "go\n") }

func (j *livesJob) line(t *testing.T) string {
	t.Helper()
	if !j.lines.Scan() {
		t.Fatalf("the job ended: %v", j.lines.Err())
	}
	return j.lines.Text()
}

// recordLives records the jobs while during runs, or until all have ended.
func recordLives(t *testing.T, options Options, during func(s *Session, stop func())) (sink *livesSink, ending time.Duration) {
	t.Helper()
	sink = &livesSink{processes: map[int64]Process{}}
	return sink, recordInto(t, sink, options, during)
}

// recordInto is recordLives for what looks at the rows meanwhile.
func recordInto(t *testing.T, sink Sink, options Options, during func(s *Session, stop func())) (ending time.Duration) {
	t.Helper()
	needKernel(t)
	if options.BufferBytes == 0 {
		options.BufferBytes = 4 << 20
	}
	if options.Level == "" {
		options.Level = LevelSamples
	}
	session, err := Open(t.Context(), options, sink)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- session.Run(ctx) }()
	var stopped time.Time
	during(session, func() { stopped = time.Now(); cancel() })
	if err := <-ended; err != nil {
		t.Error(err)
	}
	session.Close()
	if !stopped.IsZero() {
		ending = time.Since(stopped)
	}
	return ending
}

// seen waits until the sink has what is asked for; it is asked where the sink is written.
func seen(t *testing.T, s *Session, what string, ask func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		answer := make(chan bool, 1)
		s.do(func(*decode.Decoder) { answer <- ask() })
		if <-answer {
			return
		}
	}
	t.Fatalf("after three minutes: no %s", what)
}

// The second process of a pid is another process: it has a row, its samples are
// its own, and the recording lasts as long as it does.
func TestAPidUsedAgainIsAnotherProcess(t *testing.T) {
	needKernel(t)
	job := startLives(t, nil, "succeed")
	var pid int
	var lasted time.Duration
	sink := &livesSink{processes: map[int64]Process{}}
	recordInto(t, sink, Options{PIDs: []int{job.Process.Pid}, Follow: true, Frequency: 99}, func(s *Session, _ func()) {
		rows := func() (rows map[int64]bool) { // of the main thread, by its start
			rows = map[int64]bool{}
			for _, thread := range sink.threads {
				if thread.TID == int32(pid) && thread.StartedNS != nil {
					rows[*thread.StartedNS] = true
				}
			}
			return rows
		}
		job.goOn()
		pid, _ = strconv.Atoi(job.line(t))
		seen(t, s, "thread of the first process", func() bool { return len(rows()) == 1 })
		job.goOn()
		began := time.Now()
		if again, _ := strconv.Atoi(job.line(t)); again != pid {
			t.Skip("another process took the pid")
		}
		seen(t, s, "thread of the second process", func() bool { return len(rows()) == 2 })
		lasted = time.Since(began)
		job.goOn()
		job.Wait()
	})
	var lives []Process
	for _, p := range sink.processes {
		if p.PID == int32(pid) {
			lives = append(lives, p)
		}
	}
	if len(lives) != 2 {
		t.Fatalf("%d rows for the two processes with pid %d: %+v", len(lives), pid, lives)
	}
	if lives[0].StartedNS > lives[1].StartedNS {
		lives[0], lives[1] = lives[1], lives[0]
	}
	for i, p := range lives {
		if p.EndedNS == nil {
			t.Fatalf("process %d has no end: %+v", i, p)
		}
	}
	second := lives[1]
	const start = 20 * time.Millisecond // as exact as the kernel tells it, and a fork
	if told := time.Duration(*second.EndedNS - second.StartedNS); told < lasted-50*time.Millisecond {
		t.Errorf("the second process lasted %s in the recording, %s and more in truth", told, lasted)
	}
	if *lives[0].EndedNS > second.StartedNS+int64(start) {
		t.Errorf("the first process ended %d ns after the second began", *lives[0].EndedNS-second.StartedNS)
	}
	if ran := sink.sampledTime(pid, second.StartedNS); ran == 0 {
		t.Error("no samples of the second process")
	}
}

// A process that ended before it could be traced leaves nothing behind that the
// next one of its pid would be taken for.
func TestADeadProcessIsNotLeftInTheKernelsTable(t *testing.T) {
	k := testKernel(t)
	c := exec.Command("/bin/sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := process.Open(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	c.Process.Kill()
	c.Wait()
	if err := k.Trace(p, true); !errors.Is(err, process.ErrExited) {
		t.Errorf("tracing a dead process: %v", err)
	}
	var there bpf.CallTarget
	if err := k.Map("targets").Lookup(uint32(p.PID), &there); !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("it is in the kernel's table: %+v (%v)", there, err)
	}
}

// What is left in the kernel's tables under a number goes when another process or
// thread gets it.
func TestANewProcessInheritsNothingOfItsNumber(t *testing.T) {
	k := testKernel(t)
	if err := k.WatchLife(); err != nil {
		t.Fatal(err)
	}
	job := startLives(t, nil, "reuse") // not traced
	children := func() (pids []uint32) {
		list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", job.Process.Pid, job.Process.Pid))
		for _, field := range strings.Fields(string(list)) {
			n, _ := strconv.Atoi(field)
			pids = append(pids, uint32(n))
		}
		return pids
	}
	job.goOn()
	var first []uint32
	for end := time.Now().Add(10 * time.Second); len(first) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		first = children()
	}
	if len(first) == 0 {
		t.Fatal("no child")
	}
	pid := first[0]
	for _, name := range []string{"targets", "threads"} { // as if their end had gone unseen
		m := k.Map(name)
		value := make([]byte, m.ValueSize())
		for end := time.Now().Add(time.Second); time.Now().Before(end) && len(children()) > 0; time.Sleep(time.Millisecond) {
		}
		if err := m.Put(pid, value); err != nil {
			t.Fatal(err)
		}
	}
	if !job.lines.Scan() {
		t.Skip("another process took the pid")
	}
	for _, name := range []string{"targets", "threads"} {
		if value, err := k.Map(name).LookupBytes(pid); value != nil || err != nil {
			t.Errorf("%s still has an entry for pid %d (%v)", name, pid, err)
		}
	}
}

// More processes than the table holds cost the recording those that are too many,
// each counted, and nothing of another job's.
func TestMoreProcessesThanTheTableHoldsEndNobodysRecording(t *testing.T) {
	needKernel(t)
	const room, children = 16, 60
	attacker := startLives(t, asNobody, "crowd", strconv.Itoa(children))
	innocent := startLives(t, nil, "burn", "2")
	sink, _ := recordLives(t, Options{PIDs: []int{attacker.Process.Pid, innocent.Process.Pid}, Follow: true, Frequency: 99,
		maxProcesses: room}, func(_ *Session, stop func()) {
		attacker.goOn()
		attacker.line(t)
		innocent.goOn()
		innocent.Wait()
		stop()
	})
	lost := sink.warned("process_quota")
	if len(lost) != 1 || lost[0].Count < children-room || lost[0].Kind != "lost" {
		t.Fatalf("children beyond their user's share of the table: %+v, want %d or more counted", lost, children-room)
	}
	if want := fmt.Sprintf("user %d was refused the most", nobody); !strings.Contains(lost[0].Detail, want) {
		t.Errorf("the warning says %q, and not whose they were: %s", lost[0].Detail, want)
	}
	sink.sawAllOf(t, innocent)
}

// A child that does not fit was found in /proc, not told by the kernel: dropped
// alone, with a warning.
func TestAProcessThatCannotBeTracedIsDroppedAlone(t *testing.T) {
	needKernel(t)
	attacker := startLives(t, asNobody, "crowd", "30")
	attacker.goOn()
	attacker.line(t)
	innocent := startLives(t, nil, "burn", "2")
	sink, _ := recordLives(t, Options{PIDs: []int{innocent.Process.Pid, attacker.Process.Pid}, Follow: true, Frequency: 99, maxProcesses: 8},
		func(_ *Session, stop func()) {
			innocent.goOn()
			innocent.Wait()
			stop()
		})
	dropped := sink.warned("process")
	if len(dropped) < 20 || !strings.Contains(dropped[0].Detail, "processes are traced already as one user may have") {
		t.Errorf("%d warnings of processes that were not traced: %+v", len(dropped), dropped)
	}
	sink.sawAllOf(t, innocent)
}

// TestTheManagerEndsWithTheLifeRing: it does not receive for ever.
func TestTheManagerEndsWithTheLifeRing(t *testing.T) {
	broken := errors.New("the ring broke")
	if over, err := (&manager{Session: &Session{}}).heard(&kernel.LifeReader{Err: broken}, &bpf.CallLifeRecord{}, false); !over ||
		!errors.Is(err, broken) {
		t.Errorf("the manager goes on: %v, %v", over, err)
	}
}

// An end takes what one link takes, however many processes were followed: their
// hooks are few, and close beside each other.
func TestTheEndDoesNotWaitForEachProcess(t *testing.T) {
	needKernel(t)
	const children = 400
	attacker := startLives(t, asNobody, "crowd", strconv.Itoa(children))
	hooks, followed := 0, 0
	sink, ending := recordLives(t, Options{PIDs: []int{attacker.Process.Pid}, Follow: true, Frequency: 99}, func(s *Session, stop func()) {
		attacker.goOn()
		attacker.line(t)
		// The manager has seen them all when all but those that may have a hook go without.
		seen := func() bool { return followed >= children && s.job.Unhooked() >= children-job.MaxLinkerHooks }
		for end := time.Now().Add(3 * time.Minute); !seen() && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			followed = len(s.kernel.TargetPIDs()) - 1
		}
		stop()
	})
	for _, w := range sink.warned("linker_hooks") {
		hooks = children - int(w.Count)
	}
	if followed < children || hooks == 0 || hooks > job.MaxLinkerHooks {
		t.Errorf("%d of %d children followed, %d with a hook of their own; want at most %d", followed, children, hooks, job.MaxLinkerHooks)
	}
	// What one process's end takes here and now says how busy the machine is; one link after
	// the other would take a wait for the kernel each, 20 s for so many.
	alone := startLives(t, asNobody, "crowd", "1")
	_, one := recordLives(t, Options{PIDs: []int{alone.Process.Pid}, Follow: true, Frequency: 99}, func(_ *Session, stop func()) { stop() })
	if ending > 5*time.Second+20*one {
		t.Errorf("the recording of %d processes took %s to end, that of one %s", children, ending, one)
	}
	t.Logf("ended after %s, with one process after %s", ending, one)
}

// A process with more threads than its share of the table of waits loses waits of its
// own, counted; another one's are all there.
func TestAProcessOfManyThreadsHasAShareOfTheWaits(t *testing.T) {
	needKernel(t)
	attacker := startLives(t, asNobody, "threads", strconv.Itoa(MaxWaitsOfProcess+300))
	innocent := startLives(t, nil, "threads", "20")
	sink, waiting := &livesSink{processes: map[int64]Process{}}, map[int32]bool{}
	allWait := func() bool {
		for _, s := range sink.samples {
			if s.PID == int32(innocent.Process.Pid) && s.State == OffCPU {
				waiting[s.TID] = true
			}
		}
		return len(waiting) >= 20
	}
	recordInto(t, sink, Options{PIDs: []int{attacker.Process.Pid, innocent.Process.Pid}, OffCPU: 10 * time.Millisecond},
		func(s *Session, stop func()) {
			attacker.goOn()
			if made, _ := strconv.Atoi(attacker.line(t)); made <= MaxWaitsOfProcess {
				t.Skipf("this machine lets a user have %d threads", made)
			}
			innocent.goOn()
			innocent.line(t)
			seen(t, s, "wait of each of the other process's 20 threads", allWait)
			stop()
		})
	over := sink.warned("wait_quota")
	if len(over) != 1 || over[0].Count == 0 || over[0].Kind != "lost" {
		t.Errorf("threads beyond the share: %+v", over)
	}
}
