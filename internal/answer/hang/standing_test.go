package hang

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func inC(function string) Frame {
	return Frame{Kind: "native", Function: function, Module: "libc.so.6"}
}

func line(function, file string, at int64) Frame {
	return Frame{Kind: "python", Function: function, File: file, Line: at}
}

// stands is a thread that has stood still for three seconds.
func stands(tid int64, main bool, syscall string, frames ...Frame) Thread {
	still := 3.0
	return Thread{TIDs: []int64{tid}, Main: main, Syscall: syscall, Still: &still, State: event.ThreadSleeping, Frames: frames, Whole: true}
}

// asks is a thread that asks for a lock at a line of the job.
func asks(tid int64, main bool, where int64) Thread {
	return stands(tid, main, "futex", inC("__futex_abstimed_wait"), inC("PyThread_acquire_lock_timed"), inC("lock_PyThread_acquire_lock"),
		line("work", "/job/train.py", where))
}

// idles is a thread of a pool that has nothing to do.
func idles(tid int64) Thread {
	return stands(tid, false, "futex", inC("PyThread_acquire_lock_timed"), line("Condition.wait", "/usr/lib/python3.12/threading.py", 355),
		line("Queue.get", "/usr/lib/python3.12/queue.py", 171))
}

func TestLocksSayWhoHoldsThemAsFarAsStacksShowIt(t *testing.T) {
	sleeps := stands(3, false, "clock_nanosleep", inC("time_sleep"), line("hold", "/job/train.py", 40))
	for name, c := range map[string]struct {
		threads []Thread
		want    string
	}{
		"taken twice":             {[]Thread{asks(1, true, 7)}, "holds the lock itself (taken twice)"},
		"taken twice, and a pool": {[]Thread{asks(1, true, 7), idles(2), idles(4)}, "holds the lock itself (taken twice)"},
		"a deadlock of two": {[]Thread{asks(1, true, 7), asks(2, false, 9), idles(4)},
			"hold each other's: the main thread at /job/train.py:7 work; thread 2 at /job/train.py:9 work"},
		"a holder that sleeps": {[]Thread{asks(1, true, 7), sleeps}, "may be held by thread 3 at /job/train.py:40 hold"},
		"several, and a holder": {[]Thread{asks(1, true, 7), asks(2, false, 9), sleeps},
			"2 threads wait for locks; thread 3 at /job/train.py:40 hold"},
		"a pool alone": {[]Thread{stands(1, true, "epoll_wait", inC("epoll_wait"), line("serve", "/job/server.py", 3)), idles(2)}, ""},
		"a mutex of C": {[]Thread{stands(1, true, "futex", inC("__lll_lock_wait"), inC("pthread_mutex_lock"), line("call", "/job/train.py", 5))},
			"taken twice"},
	} {
		p := Process{PID: 1, Threads: c.threads}
		if got := p.Locks(); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestProcessesThatStandStillAreShownWithoutACollective(t *testing.T) {
	rank := int64(3)
	stopped := stands(11, true, "", inC("nanosleep"))
	stopped.State = event.ThreadStopped
	r := Analyse(&Recording{
		Waits:     map[Of]Wait{},
		Processes: []Known{{PID: 1, Rank: &rank}}, Others: []Known{{PID: 11}},
		Threads: map[int64][]Thread{1: {asks(1, true, 7), idles(2)}, 11: {stopped}, 99: {asks(99, true, 1)}}, // 99 has ended
	})
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"no collective of torch.distributed was open, but these processes stood still", "pid 1 (rank 3)\n",
		"main thread in futex, still for 3.0 s",
		"py work  /job/train.py:7", "taken twice", "pid 11 is stopped by a signal: continue it with kill -CONT 11",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing:\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "pid 99") || len(r.Standing) != 2 {
		t.Errorf("%d processes:\n%s", len(r.Standing), text.String())
	}
	text.Reset()
	if err := Analyse(&Recording{Waits: map[Of]Wait{}}).WriteText(&text); err != nil || !strings.HasPrefix(text.String(), "nothing waits") {
		t.Errorf("%q, %v", text.String(), err)
	}
}
