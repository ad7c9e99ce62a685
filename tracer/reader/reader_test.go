package reader

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What the readers of these tests can do.
const (
	doEcho = iota
	doWait
	doDie
	doWork
	doBurn
)

func init() {
	Serve(
		func(r *Request) Reply {
			if len(r.Files) == 0 {
				return Reply{Text: r.Text}
			}
			again, err := unix.Dup(r.Files[0])
			return Reply{Text: r.Text, Files: []int{again}, Err: err}
		},
		func(r *Request) Reply { // until the other end is closed
			_, err := unix.Read(r.Files[0], make([]byte, 1))
			return Reply{Err: err}
		},
		func(*Request) Reply { os.Exit(1); return Reply{} },
		func(*Request) Reply { // for longer than anybody waits for one that does not
			for began := time.Now(); time.Since(began) < patience+patience/2; {
				continue
			}
			return Reply{Text: []byte("done"), Err: syscall.ENOENT}
		},
		func(*Request) Reply { // a tenth of a second of CPU time
			for began := cpuTime(); cpuTime()-began < 100*time.Millisecond; {
				continue
			}
			return Reply{}
		},
	)
}

func cpuTime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
	return time.Duration(now.Nano())
}

func TestAReaderAnswers(t *testing.T) {
	pool := newPool()
	defer pool.close(t)
	long := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // many packets
	for _, text := range [][]byte{nil, []byte("a"), long[:packetBytes-headBytes], long[:packetBytes-headBytes+1], long} {
		answer, err := pool.ask(os.Getpid(), doEcho, text, nil)
		if err != nil || !bytes.Equal(answer.Text, text) {
			t.Errorf("of %d bytes %d came back, %v", len(text), len(answer.Text), err)
		}
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	answer, err := pool.ask(os.Getpid(), doEcho, nil, []int{int(file.Fd())})
	if err != nil || len(answer.Files) != 1 {
		t.Fatalf("%d descriptors, %v", len(answer.Files), err)
	}
	defer answer.Files[0].Close()
	content := make([]byte, 7)
	if n, err := answer.Files[0].ReadAt(content, 0); n != 7 || string(content) != "content" {
		t.Errorf("the descriptor that came back reads %q, %v", content[:n], err)
	}
	if len(pool.alive) != 1 {
		t.Errorf("%d readers for one after the other", len(pool.alive))
	}
}

// close has the readers end; nothing of a test stays.
func (p *pool) close(t *testing.T) {
	p.mu.Lock()
	for _, r := range p.idle {
		unix.Close(r.socket) // that is how they learn that the tracer has ended
	}
	p.mu.Unlock()
	until(t, "the readers end", func() bool { return p.has(func() bool { return len(p.alive) == 0 }) })
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("after a minute not yet: %s", what)
}

// has looks at a pool.
func (p *pool) has(is func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return is()
}

// A job that keeps a reader waiting loses its own recording: no further reader, and nobody
// else's answer.
func TestOneThatKeepsItsReaderWaitingIsLeftAlone(t *testing.T) {
	t.Parallel()
	pool := newPool()
	defer pool.close(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	hostile, other := os.Getpid(), os.Getppid()
	for range 3 {
		_, err = pool.ask(hostile, doWait, nil, []int{int(read.Fd())})
		if late := (*LateError)(nil); !errors.As(err, &late) || late.PID != hostile || !errors.Is(err, ErrLate) {
			t.Fatalf("%v", err)
		}
	}
	if r := pool.ledger.resting[hostile]; r == nil || r.next != 2*firstRest {
		t.Errorf("it is left alone as %+v, not as after one reader", r)
	}
	if told := pool.ledger.told; len(told) != 1 || told[0].PID != hostile || told[0].User != uint32(os.Getuid()) {
		t.Errorf("it is told of as %+v", told)
	}
	if answer, err := pool.ask(other, doEcho, []byte("a"), nil); err != nil || string(answer.Text) != "a" {
		t.Errorf("the other has %q, %v", answer.Text, err)
	}
	until(t, "the reader that can be killed is gone", func() bool { return pool.has(func() bool { return pool.ledger.leftInAll == 0 }) })
	write.Close()
}

// The rest of a process that was late ends, and is twice as long the next time.
func TestOneThatWasLateIsAskedAgainEverMoreSeldom(t *testing.T) {
	l, pid, now := newLedger(), os.Getpid(), time.Now()
	for _, want := range []time.Duration{firstRest, 2 * firstRest, 4 * firstRest} {
		l.ended(l.late(pid, now))
		if !l.refuses(pid, now.Add(want-time.Millisecond)) || l.refuses(pid, now.Add(want)) {
			t.Errorf("it is not left alone for %s", want)
		}
		now = now.Add(want)
	}
	l.resting[pid].start++ // its pid was another's
	l.resting[pid].until = now.Add(time.Hour)
	if l.refuses(pid, now) {
		t.Error("a process is left alone for one that had its pid")
	}
}

// Answers that come just in time add up, for a process and for its user.
func TestWhoAnswersSlowlyAgainAndAgainIsLeftAlone(t *testing.T) {
	l, now := newLedger(), time.Now()
	one, other := os.Getpid(), 1
	for range 2 {
		l.spend(one, now, patience-time.Millisecond)
	}
	if !l.refuses(one, now) || l.refuses(other, now) && userOf(other) != userOf(one) {
		t.Error("it may go on, or another user's may not")
	}
	l = newLedger()
	for range 100_000 {
		l.spend(one, now, longAnswer)
	}
	if l.refuses(one, now) {
		t.Error("answers that are quick count")
	}
	for pid := range int(userPatience/patience) + 1 { // one user's, each once; pids of nobody are of one user
		l.spend(1<<23+pid, now, patience-time.Millisecond)
	}
	if !l.refuses(1<<23+100, now) {
		t.Error("a user has as much patience as it has processes")
	}
}

func TestAUsersReadersThatAreLeftBehindAreFew(t *testing.T) {
	l, now := newLedger(), time.Now()
	for i := range mostLeft {
		if l.refuses(1<<23+i, now) {
			t.Fatalf("refused with %d left behind", i)
		}
		l.late(1<<23+i, now)
	}
	if !l.refuses(1<<23+mostLeft, now) {
		t.Error("the user's next process is asked")
	}
	if l.refuses(os.Getpid(), now) {
		t.Error("so is nobody else's")
	}
}

// A machine without a CPU to spare, or a stopped session, is not the job's fault.
func TestAReaderThatWorksIsNotLate(t *testing.T) {
	t.Parallel()
	pool := newPool()
	defer pool.close(t)
	answer, err := pool.ask(os.Getppid(), doWork, nil, nil)
	if !errors.Is(err, syscall.ENOENT) || string(answer.Text) != "done" {
		t.Errorf("%q, %v", answer.Text, err)
	}
}

// What is charged to a process is the time that its files and memory took, and none in which other programs had
// the CPUs: the reader shares one CPU with eight busy loops here.
func TestWaitsForACPUAreNotCharged(t *testing.T) {
	t.Parallel()
	if (openTimes() == times{}) {
		t.Skip("this kernel has no schedstat")
	}
	pool := newPool()
	defer pool.close(t)
	pid := os.Getppid()
	if _, err := pool.ask(pid, doEcho, nil, nil); err != nil {
		t.Fatal(err)
	}
	reader := pool.idle[0].pid
	var one unix.CPUSet
	one.Set(firstCPU(t))
	for range 8 {
		busy := exec.Command("sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		defer busy.Wait()
		defer busy.Process.Kill()
		if err := unix.SchedSetaffinity(busy.Process.Pid, &one); err != nil {
			t.Fatal(err)
		}
	}
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(reader) + "/task/*")
	for _, task := range tasks {
		tid, _ := strconv.Atoi(filepath.Base(task))
		if err := unix.SchedSetaffinity(tid, &one); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if _, err := pool.ask(pid, doBurn, nil, nil); err != nil {
		t.Fatal(err)
	}
	took, charged := time.Since(began), pool.ledger.processes[pid]
	if charged == nil || charged.spent >= took/2 {
		t.Errorf("%v of %v are charged", charged, took)
	}
}

// A reader that a job's bytes have taken over cannot charge the next process more than its answer took.
func TestAReaderDoesNotChargeMoreThanItTook(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: 0, 3: 3, 1 << 62: 10, -1: 0} {
		if got := (&message{took: took}).charged(10); got != want {
			t.Errorf("%v of an answer that took 10ns are %v, want %v", took, got, want)
		}
	}
}

func firstCPU(t *testing.T) int {
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		t.Fatal(err)
	}
	for cpu := range 8 * len(mine) {
		if mine.IsSet(cpu) {
			return cpu
		}
	}
	return 0
}

func TestAReaderThatDiesIsReplacedAndItsProcessLeftAloneTheSecondTime(t *testing.T) {
	pool := newPool()
	defer pool.close(t)
	if _, err := pool.ask(os.Getpid(), doDie, nil, nil); !errors.Is(err, ErrLate) {
		t.Errorf("%v", err)
	}
	if answer, err := pool.ask(os.Getppid(), doEcho, []byte("a"), nil); err != nil || string(answer.Text) != "a" {
		t.Errorf("after it %q, %v", answer.Text, err)
	}
	// One that nobody has asked yet may be killed, for want of memory: whoever is next is not to blame.
	_ = unix.Kill(pool.idle[0].pid, unix.SIGKILL)
	<-pool.idle[0].ended
	if answer, err := pool.ask(os.Getppid(), doEcho, []byte("b"), nil); err != nil || string(answer.Text) != "b" {
		t.Errorf("of a reader that had been killed %q, %v", answer.Text, err)
	}
}

// What is in the kernel goes with the tracer's descriptors: a reader has none of them.
func TestAReaderHasNoDescriptorOfTheTracers(t *testing.T) {
	ours, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	left, err := unix.Open("/dev/zero", unix.O_RDONLY, 0) // as a shell leaves some to its children
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(left)
	pool := newPool()
	defer pool.close(t)
	if _, err := pool.ask(os.Getpid(), doEcho, nil, nil); err != nil {
		t.Fatal(err)
	}
	open, err := filepath.Glob("/proc/" + strconv.Itoa(pool.idle[0].pid) + "/fd/*")
	if err != nil || len(open) == 0 {
		t.Fatalf("%q, %v", open, err)
	}
	for _, fd := range open {
		switch to, _ := os.Readlink(fd); {
		case to == fmt.Sprintf("/proc/%d/schedstat", pool.idle[0].pid): // its own
		case to == "/dev/null", strings.HasPrefix(to, "socket:"), strings.HasPrefix(to, "anon_inode"),
			strings.HasPrefix(to, "/sys/fs/cgroup/"): // those that Go's runtime opens for itself
		default:
			t.Errorf("descriptor %s leads to %s", filepath.Base(fd), to)
		}
	}
}
