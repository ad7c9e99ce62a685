package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/exchange/flightrecorder"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

var (
	issue = &event.Call{Layer: "collective", Category: "issue", Runtime: "gloo", Name: "gloo::allreduce"}
	work  = &event.Call{Layer: "collective", Category: "work", Runtime: "gloo", Name: "gloo::allreduce"}
)

const (
	group = int64(77)
	began = int64(1e12)
)

// ranked is a node's evidence of processes 100 + rank, of a group of three, all of which
// have ended collectives up to a number.
func ranked(host string, until int64, ranks ...int32) *Evidence {
	e := NewEvidence(host)
	framework, size := "torch", int32(3)
	var open event.OpenCalls
	for _, rank := range ranks {
		e.Write(&event.Batch{Processes: []event.Process{{PID: 100 + rank, Rank: &rank, Framework: &framework, StartedNS: 5}}})
		id, first := group, int64(0) // the table was written when the first one was open
		open.Communicators = append(open.Communicators, event.Communicator{PID: 100 + rank, ID: &id, Name: "0", Description: "default_pg",
			Rank: &rank, Ranks: &size,
			IssuedNumber: &first, IssuedName: issue.Name})
		for n := range until + 1 {
			e.Write(&event.Batch{Spans: []event.Span{asked(100+rank, n), ran(100+rank, n)}})
		}
	}
	e.Write(&event.Batch{OpenCalls: []event.OpenCalls{open}})
	return e
}

func at(n int64) int64 { return began + n*1e6 }

func asked(pid int32, n int64) event.Span {
	id, elements := group, int64(64)
	return event.Span{PID: pid, TID: pid, Call: issue, StartNS: at(n), DurationNS: 1e3, SequenceNumber: n,
		Detail: &event.Detail{Communicator: &id, ElementCount: &elements, Dtype: "float"}}
}

func ran(pid int32, n int64) event.Span {
	s := asked(pid, n)
	s.Call, s.StartNS, s.DurationNS = work, s.StartNS+1e4, 1e5
	return s
}

// hangs is what comes when some ranks of a node wait in a collective, and all their main
// threads were seen where they stand.
func hangs(e *Evidence, n int64, seen int64, stands map[int32]string, waits ...int32) {
	open := e.open
	for _, rank := range waits {
		e.Write(&event.Batch{Spans: []event.Span{asked(100+rank, n)}})
		for i, c := range open.Communicators {
			if c.PID == 100+rank {
				open.Calls = append(open.Calls, event.OpenCall{StartNS: at(n), PID: 100 + rank, TID: 100 + rank, Call: work, Communicator: i,
					Number: &n})
			}
		}
	}
	for rank, file := range stands {
		stack, since := int64(1000+rank), at(n)
		e.Write(&event.Batch{Stacks: []event.Stack{{ID: stack, Status: event.StackComplete, Frames: []symbolize.Frame{
			{Kind: symbolize.Native, Function: "clock_nanosleep", Module: "libc.so.6"}, {Kind: symbolize.Python, Function: "work", File: file,
				Line: 88}}}}})
		open.Threads = append(open.Threads, event.StillThread{SeenNS: seen, SinceNS: &since, PID: 100 + rank, TID: 100 + rank, StackID: &stack,
			State: event.ThreadSleeping})
	}
	e.Write(&event.Batch{OpenCalls: []event.OpenCalls{open}})
}

func TestTheRankThatKeepsOthersWaitingIsNamedFromEvents(t *testing.T) {
	e := ranked("node-a", 6, 0, 1, 2)
	if e.Stood(at(6)) {
		t.Error("nobody has looked where threads stand")
	}
	hangs(e, 7, at(4007), map[int32]string{0: "train.py", 1: "cleanup.py", 2: "train.py"}, 0, 2)
	if !e.Stood(at(6)) || e.Stood(at(4007)) {
		t.Error("where threads stood was looked at once")
	}
	v := hang.Judge(e.Recording(at(5007), at(6)))
	const want = "of 3 ranks 2 wait in collective 7 (gloo::allreduce), for 5.0 s when that was written; rank 1 has not come (at cleanup.py:88 work)"
	if v.Kind != hang.KindMissing || v.Sentence != want {
		t.Errorf("%s: %s\nwant %s", v.Kind, v.Sentence, want)
	}
	// The table of open calls said that rank 1 had asked for 0; its calls say more.
	if m := v.Report.Groups[0].Missing[0]; m.LastNumber == nil || *m.LastNumber != 6 || m.Host != "node-a" || len(m.Threads) != 1 {
		t.Errorf("%+v", m)
	}
	// What stood before the job went on is no evidence.
	if v := hang.Judge(e.Recording(at(5007), at(4008))); strings.Contains(v.Sentence, "cleanup.py") {
		t.Error(v.Sentence)
	}
}

func TestANodeOfWhichNobodyWaitsSaysWhereItsRanksAre(t *testing.T) {
	e := ranked("node-b", 6, 1)
	hangs(e, 7, at(4007), map[int32]string{1: "cleanup.py"})
	if v := hang.Judge(e.Recording(at(5007), at(6))); v.Kind != hang.KindIdle || v.Sentence != "no rank waits in a collective; rank 1 has "+
		"stood still for 4.0 s at cleanup.py:88 work" {
		t.Errorf("%s: %s", v.Kind, v.Sentence)
	}
	// One that runs is where it was sampled last.
	e = ranked("node-b", 6, 1)
	hangs(e, 7, at(4007), map[int32]string{1: "spin.py"})
	stack := int64(1001)
	e.Write(&event.Batch{Samples: []event.Sample{{TSNS: at(5000), PID: 101, TID: 101, StackID: &stack}}})
	if v := hang.Judge(e.Recording(at(5007), at(4008))); v.Sentence != "no rank waits in a collective; rank 1 runs at spin.py:88 work" {
		t.Error(v.Sentence)
	}
}

// Two nodes know more together: neither of them knew which rank it was.
func TestNodesKnowTogetherWhoIsMissing(t *testing.T) {
	a, b := ranked("node-a", 6, 0, 2), ranked("node-b", 6, 1)
	hangs(a, 7, at(4007), map[int32]string{0: "train.py", 2: "train.py"}, 0, 2)
	hangs(b, 7, at(4007), map[int32]string{1: "cleanup.py"})
	alone := hang.Judge(a.Recording(at(5007), at(6)))
	if alone.Kind != hang.KindAbsent || !strings.HasSuffix(alone.Sentence, "rank 1 has not come, or is in no recording given") {
		t.Errorf("%s: %s", alone.Kind, alone.Sentence)
	}
	both := hang.Judge(a.Recording(at(5007), at(6)), b.Recording(at(5007), at(6)))
	if both.Kind != hang.KindMissing || !strings.HasSuffix(both.Sentence, "rank 1 has not come (at cleanup.py:88 work)") {
		t.Errorf("%s: %s", both.Kind, both.Sentence)
	}
	var text strings.Builder
	if err := both.Report.WriteText(&text); err != nil || !strings.Contains(text.String(), "rank 1    node-b  pid 101") {
		t.Errorf("%v: %s", err, text.String())
	}
}

// Who waits is told by what is open, and where the budget has collectives in slices, so
// that nothing is, by where main threads stand.
func TestAWaitForPeersIsSeenWithoutOpenCalls(t *testing.T) {
	e := ranked("node-a", 6, 0, 1, 2)
	if n := len(e.Waiting()); n != 0 {
		t.Errorf("%d wait in a job that goes on", n)
	}
	hangs(e, 7, at(4007), map[int32]string{0: "/v/torch/distributed/distributed_c10d.py", 1: "cleanup.py"}, 2)
	if got := e.Waiting(); len(got) != 2 || got[100] != at(7) || got[102] != at(7) {
		t.Errorf("%v", got)
	}
	// A worker whose loop is one anchor long is between two steps all the time.
	s := New(trigger.Published)
	for k := range int64(200) {
		for pid := int32(100); pid < 103; pid++ {
			s.Write(&event.Batch{Spans: []event.Span{{PID: pid, TID: pid, Call: backward, StartNS: at(7) - (200-k)*10e6, DurationNS: 1e6}}})
		}
	}
	s.Check(at(1507))
	if _, triggers := s.Take(true); len(triggers) != 0 {
		t.Errorf("nobody is known to wait: %+v", triggers)
	}
	s.Wait(e.Waiting())
	s.Check(at(1507))
	if _, triggers := s.Take(true); len(triggers) != 2 {
		t.Errorf("%+v", triggers)
	}
	// And the one that they wait for, whose main thread stands still elsewhere.
	s.Wait(e.Standing())
	s.Check(at(1507))
	if _, triggers := s.Take(true); len(triggers) != 1 || triggers[0].PID != 101 {
		t.Errorf("%+v", triggers)
	}
}

// The dumps have what each rank did before, as many as the flight recorder keeps, the host
// and what was lost last.
func TestDumpsAreMadeFromEvents(t *testing.T) {
	e := ranked("node-a", flightrecorder.MostEntries+50, 0, 1, 2)
	n := int64(flightrecorder.MostEntries + 51)
	hangs(e, n, at(n+4000), map[int32]string{0: "train.py", 1: "cleanup.py", 2: "train.py"}, 0, 2)
	e.Lose(at(n), map[string]uint64{"ring_full": 3})
	e.Lose(at(n+1), map[string]uint64{"ring_full": 3})
	job := e.Job()
	if job.Host != "node-a" || job.Lost != (flightrecorder.Lost{Rows: 3, LastNS: at(n), Last: "ring_full"}) || len(job.Members) != 3 {
		t.Errorf("%q %+v %d", job.Host, job.Lost, len(job.Members))
	}
	if len(job.Calls) != 3*flightrecorder.MostEntries {
		t.Fatalf("%d calls", len(job.Calls))
	}
	last := map[int64]flightrecorder.Call{}
	for _, c := range job.Calls {
		if before, ok := last[c.PID]; ok && c.Number != before.Number+1 {
			t.Fatalf("%d after %d", c.Number, before.Number)
		}
		last[c.PID] = c
	}
	if c := last[100]; c.Number != n || c.CompletedNS != nil || len(job.Frames[c.Stack]) != 1 ||
		job.Frames[c.Stack][0].Filename != "train.py" {
		t.Errorf("%+v %v", c, job.Frames)
	}
	if c := last[101]; c.Number != n-1 || c.CompletedNS == nil || *c.Elements != 64 {
		t.Errorf("%+v", c)
	}
	directory := t.TempDir()
	if w, err := flightrecorder.Write(job, directory); err != nil || fmt.Sprint(w.Ranks) != "[0 1 2]" || len(w.Missing) != 0 {
		t.Errorf("%+v, %v", w, err)
	}
	text, err := os.ReadFile(filepath.Join(directory, flightrecorder.Prefix+"1"))
	for _, want := range []string{"node-a", "ring_full", "last_lost_ns"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v: no %q in the dump", err, want)
		}
	}
}

// What is kept does not grow with time, and what is named again stays.
func TestStacksThatAreNamedAgainAreKept(t *testing.T) {
	e := NewEvidence("n")
	e.Write(&event.Batch{Processes: []event.Process{{PID: 1}}})
	hot, cold := int64(1), int64(2)
	for _, id := range []int64{hot, cold} {
		e.Write(&event.Batch{Stacks: []event.Stack{{ID: id, Frames: []symbolize.Frame{{Function: fmt.Sprint("f", id)}}}}})
	}
	for id := int64(10); id < 5*mostStacks; id++ {
		e.Write(&event.Batch{Stacks: []event.Stack{{ID: id, Frames: []symbolize.Frame{{Function: "g"}, {Function: fmt.Sprint("f", id)}}}}})
		if id%1000 == 0 {
			e.Write(&event.Batch{Samples: []event.Sample{{PID: 1, TID: 1, StackID: &hot}}})
		}
	}
	if s := e.stacks.of(hot); s == nil || s.frames[0].Function != "f1" {
		t.Error("a stack that was named often is gone")
	}
	if e.stacks.of(cold) != nil {
		t.Error("a stack is kept that nobody has named")
	}
	if n := len(e.stacks.young) + len(e.stacks.old); n > 2*mostStacks || len(e.stacks.frames) > 2*mostStacks+1 {
		t.Errorf("%d stacks, %d frames", n, len(e.stacks.frames))
	}
	framework := "torch"
	for pid := range int32(2 * mostProcesses) {
		ended := int64(9)
		e.Write(&event.Batch{Processes: []event.Process{{PID: 100 + pid, Framework: &framework}}})
		if pid%2 == 0 {
			e.Write(&event.Batch{Processes: []event.Process{{PID: 100 + pid, Framework: &framework, EndedNS: &ended}}})
		}
	}
	if len(e.processes) > mostProcesses {
		t.Errorf("%d processes", len(e.processes))
	}
}
