package hang

import (
	"strings"
	"testing"
)

func python(function, file string) Frame {
	return Frame{Kind: "python", Function: function, File: file, Line: 7}
}

func native(function string) Frame {
	return Frame{Kind: "native", Function: function, Module: "lib.so"}
}

// still is the main thread of a process, which has stood for so long; 0: it has run.
func still(seconds float64, frames ...Frame) Thread {
	t := Thread{TIDs: []int64{1}, Main: true, Syscall: "futex", Frames: frames, Whole: true}
	if seconds > 0 {
		t.Still = &seconds
	}
	return t
}

// What a thread waits in is the outermost function of torch.distributed, and where Python
// calls none, of its native libraries; gloo's own threads are in those when they rest.
func TestACollectiveThatWasNotSeenIsToldByTheStack(t *testing.T) {
	c10d, logger := "/v/torch/distributed/distributed_c10d.py", "/v/torch/distributed/c10d_logger.py"
	reduce := []Frame{native("futex_wait"), native("c10d::Work::wait(long)"), python("all_reduce", c10d), python("wrapper", logger),
		python("step", "train.py")}
	resting := Thread{TIDs: []int64{2}, Frames: []Frame{native("epoll_wait"), native("gloo::transport::tcp::Loop::run()")},
		Still: still(9).Still}
	worker := still(5, native("c10d::Work::wait(long)"), python("hook", "train.py"))
	worker.Main = false
	for _, c := range []struct {
		name    string
		threads []Thread
		waits   string // the collective; "" for none
		place   string
	}{
		{"in all_reduce", []Thread{still(5, reduce...)}, "all_reduce", "train.py:7 step"},
		{"in a barrier of its library", []Thread{still(5, native("c10d::Work::wait(long)"), python("backward", "/v/torch/autograd/__init__.py"),
			python("step", "train.py"))}, "c10d::Work::wait", "train.py:7 step"},
		{"before the others are there", []Thread{still(5, native("poll"), native("c10d::TCPStore::wait()"), python("init_process_group", c10d),
			python("main", "train.py"))}, "init_process_group", "train.py:7 main"},
		{"in it only for a moment", []Thread{still(0, reduce...)}, "", "train.py:7 step"},
		{"in it not for long", []Thread{still(0.6, reduce...)}, "", "train.py:7 step"},
		{"a thread of the job waits, not the main one", []Thread{still(0, python("step", "train.py")), worker}, "c10d::Work::wait",
			"train.py:7 hook"},
		{"asleep, and its library's thread rests", []Thread{still(9, native("clock_nanosleep"), python("dawdle", "train.py")), resting}, "",
			"train.py:7 dawdle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := &Unseen{}
			u.add(Process{PID: 1, Threads: c.threads})
			all := u.Waiting
			if c.waits == "" {
				all = u.Others
			}
			if len(u.Waiting)+len(u.Others) != 1 || len(all) != 1 || all[0].Collective != c.waits || all[0].Place != c.place {
				t.Errorf("%+v", u)
			}
		})
	}
}

// Of many ranks that stand alike the stack is said once.
func TestAStackIsWrittenOnceForAllWhoHaveIt(t *testing.T) {
	rank := func(n int, t Thread) Rank { return Rank{Rank: n, Threads: []Thread{t}} }
	var b strings.Builder
	same := func() Thread { return still(5, native("futex_wait"), python("step", "train.py")) }
	writeStacks(&b, stood([]Rank{rank(1, still(0, native("clock_nanosleep"), python("dawdle", "train.py")))}, "missing"),
		stood([]Rank{rank(0, same()), rank(2, same())}, "waits"))
	const want = `  stack of what missing: rank 1, main thread in futex
    c  clock_nanosleep  [lib.so]
    py dawdle  train.py:7
  stack of what waits: rank 0, rank 2, main thread in futex, still for 5.0 s
    c  futex_wait  [lib.so]
    py step  train.py:7
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
}

// Of ranks that the table says wait, one that stands still in no collective has not come.
func TestARankThatStandsElsewhereHasNotCome(t *testing.T) {
	in := []Thread{still(5, native("futex_wait"), native("c10d::Work::wait(long)"), python("step", "train.py"))}
	asleep := still(5, native("clock_nanosleep"), python("teardown", "train.py"))
	passing := still(0, native("clock_nanosleep"), python("load", "train.py"))
	for _, c := range []struct {
		name             string
		second           []Thread
		waiting, missing string
	}{
		{"asleep for long", []Thread{asleep}, "0", "1"},
		{"it runs", []Thread{passing}, "0 1", ""},
		{"in it too", in, "0 1", ""},
		{"not known", nil, "0 1", ""},
	} {
		g := Group{Waiting: []Rank{{Rank: 0, Threads: in}, {Rank: 1, Threads: c.second}}}
		g.byStacks()
		if w, m := ranksOf(g.Waiting), ranksOf(g.Missing); w != c.waiting || m != c.missing {
			t.Errorf("%s: waiting %q, missing %q", c.name, w, m)
		}
	}
}

// Whatever it was stopped in, a process that can't run waits for no rank: the others wait for it.
func TestAStoppedRankIsNotWaiting(t *testing.T) {
	c10d := "/v/torch/distributed/distributed_c10d.py"
	in := func(state string) []Thread {
		thread := still(5, native("c10d::Work::wait(long)"), python("all_reduce", c10d), python("step", "train.py"))
		thread.State = state
		return []Thread{thread}
	}
	u := &Unseen{}
	for rank, state := range []string{"sleeping", "stopped", "sleeping"} {
		number := int64(rank)
		u.add(Process{PID: 10 + number, Rank: &number, Threads: in(state)})
	}
	const want = "2 wait in a collective whose begin was not recorded (all_reduce): its number is not known; rank 1 is stopped by a signal"
	if got := u.sentence(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	ranks := []Member{at(10, 0, 7, "gloo::allreduce"), at(11, 1, 7, "gloo::allreduce"), at(12, 2, 7, "gloo::allreduce")}
	g, _ := judge(ranks, func(*Member) (Wait, bool) { return Wait{Number: 7, Seconds: 2, Collective: "gloo::allreduce"}, true })
	for i, state := range []string{"sleeping", "traced", "sleeping"} {
		g.Waiting[i].Threads, g.Waiting[i].Stopped = in(state), haltOf(in(state))
	}
	alone := Group{Waiting: []Rank{g.Waiting[1]}}
	if alone.byThreads() {
		t.Error("only a rank that is stopped waits, and its group is told of")
	}
	if !g.byThreads() {
		t.Error("two wait, and their group is not told of")
	}
	if text := g.sentence(); ranksOf(g.Waiting) != "0 2" || ranksOf(g.Missing) != "1" || !strings.Contains(text,
		"rank 1 is stopped by a debugger") {
		t.Errorf("waiting %s, missing %s: %s", ranksOf(g.Waiting), ranksOf(g.Missing), text)
	}
}

// Ranks that had asked for different collectives before the recording began are told of,
// where their stacks say which.
func TestDifferentCollectivesThatWereNotSeenAreTold(t *testing.T) {
	c10d := "/v/torch/distributed/distributed_c10d.py"
	in := func(function string) Thread {
		return still(5, native("c10d::Work::wait(long)"), python(function, c10d), python("step", "train.py"))
	}
	native := still(5, native("c10d::Work::wait(long)"), python("step", "train.py"))
	for _, c := range []struct {
		name      string
		threads   []Thread
		different bool
	}{
		{"all in one", []Thread{in("all_reduce"), in("all_reduce"), in("all_reduce")}, false},
		{"one in another", []Thread{in("all_reduce"), in("broadcast"), in("all_reduce")}, true},
		{"the last in another", []Thread{in("all_reduce"), in("all_reduce"), in("barrier")}, true},
		{"one in a library's, which may be any", []Thread{in("all_reduce"), native}, false},
		{"one sends to the other", []Thread{in("send"), in("recv"), in("irecv")}, false},
		{"one in a wrapper", []Thread{in("all_reduce"), in("_pre_forward"), in("_post_backward_hook")}, false},
		{"alone", []Thread{in("all_reduce")}, false},
	} {
		u := &Unseen{}
		for i, thread := range c.threads {
			u.add(Process{PID: int64(i), Threads: []Thread{thread}})
		}
		if said := strings.Contains(u.sentence(), "asked for different collectives"); len(u.Waiting) != len(c.threads) ||
			u.Different != c.different || said != c.different {
			t.Errorf("%s: %+v, %s", c.name, u, u.sentence())
		}
	}
}
