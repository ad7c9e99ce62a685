package worker

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/agent/sinks"
	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/exchange/flightrecorder"
	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// hanging is a worker of three ranks that have made steps of 10 ms, and what it has said.
type hanging struct {
	*worker
	evidence *live.Evidence
	now      time.Time // just after the last step
	said     *bytes.Buffer
}

func startHanging(t *testing.T) *hanging {
	t.Helper()
	return startAfter(t, 120)
}

// startAfter has made so many steps.
func startAfter(t *testing.T, steps int64) *hanging {
	t.Helper()
	c := config.Defaults()
	c.Spool = t.TempDir()
	box, err := spool.Outbox(c.Spool)
	if err != nil {
		t.Fatal(err)
	}
	said := &bytes.Buffer{}
	h := &hanging{&worker{config: c, job: jobs.Job{Name: "train"}, outbox: box, host: "node-a", out: json.NewEncoder(said),
		steps:  live.New(trigger.Published),
		status: Status{Job: "train", State: "watching"}}, live.NewEvidence("node-a"), time.Unix(1_800_000_000, 0), said}
	framework, size := "torch", int32(3)
	var open event.OpenCalls
	for rank := range int32(3) {
		p := event.Process{PID: 100 + rank, Rank: &rank, Framework: &framework}
		h.steps.Write(&event.Batch{Processes: []event.Process{p}})
		h.evidence.Write(&event.Batch{Processes: []event.Process{p}})
		id := int64(77)
		open.Communicators = append(open.Communicators, event.Communicator{PID: 100 + rank, ID: &id, Name: "0", Description: "default_pg",
			Rank: &rank, Ranks: &size})
	}
	h.evidence.Write(&event.Batch{OpenCalls: []event.OpenCalls{open}})
	for step := range steps {
		h.step(step)
	}
	return h
}

var (
	loads     = &event.Call{Layer: "scope", Name: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"}
	backward  = &event.Call{Layer: "autograd", Category: "backward", Name: "Engine::execute"}
	optimizes = &event.Call{Layer: "scope", Name: "Optimizer.step#SGD.step"}
	asks      = &event.Call{Layer: "collective", Category: "issue", Runtime: "gloo", Name: "gloo::allreduce"}
	works     = &event.Call{Layer: "collective", Category: "work", Runtime: "gloo", Name: "gloo::allreduce"}
)

// step has each rank load, go back, reduce and optimize.
func (h *hanging) step(n int64) {
	for rank := range int32(3) {
		at, id := h.now.UnixNano(), int64(77)
		for i, call := range []*event.Call{loads, backward, optimizes} {
			h.steps.Write(&event.Batch{Spans: []event.Span{{PID: 100 + rank, TID: 100 + rank, Call: call, StartNS: at + int64(i)*2e6,
				DurationNS: 1e6}}})
		}
		h.evidence.Write(&event.Batch{Spans: []event.Span{{PID: 100 + rank, TID: 100 + rank, Call: asks, StartNS: at, DurationNS: 1,
			SequenceNumber: n, Detail: &event.Detail{Communicator: &id}}}})
	}
	h.now = h.now.Add(10 * time.Millisecond)
}

// stop has rank 1 load and go no further, and the others ask for a collective that it does
// not come to. With stacks, it is known where all of them stand.
func (h *hanging) stop(stacks bool) {
	number, at := int64(120), h.now.UnixNano()
	var open event.OpenCalls
	size := int32(3)
	for rank := range int32(3) {
		pid, id := 100+rank, int64(77)
		h.steps.Write(&event.Batch{Spans: []event.Span{{PID: pid, TID: pid, Call: loads, StartNS: at, DurationNS: 1e6}}})
		open.Communicators = append(open.Communicators, event.Communicator{PID: pid, ID: &id, Name: "0", Description: "default_pg", Rank: &rank,
			Ranks: &size})
		file := "train.py"
		if rank == 1 {
			file = "cleanup.py"
		} else {
			h.evidence.Write(&event.Batch{Spans: []event.Span{{PID: pid, TID: pid, Call: asks, StartNS: at, DurationNS: 1, SequenceNumber: number,
				Detail: &event.Detail{Communicator: &id}}}})
			open.Calls = append(open.Calls, event.OpenCall{StartNS: at, PID: pid, TID: pid, Call: works, Communicator: int(rank), Number: &number})
		}
		if stacks {
			stack, since := int64(1000+rank), at
			h.evidence.Write(&event.Batch{Stacks: []event.Stack{{ID: stack, Frames: []symbolize.Frame{{Kind: symbolize.Python, Function: "work",
				File: file, Line: 88}}}}})
			open.Threads = append(open.Threads, event.StillThread{SeenNS: at + 3e9, SinceNS: &since, PID: pid, TID: pid, StackID: &stack,
				State: event.ThreadSleeping})
		}
	}
	h.evidence.Write(&event.Batch{OpenCalls: []event.OpenCalls{open}})
}

// look is what the worker does four times a second.
func (h *hanging) look(t *testing.T) (reason string) {
	t.Helper()
	k := &watching{worker: h.worker, evidence: h.evidence, guarded: &sinks.Locked{}}
	return k.look(t.Context(), h.now, nil)
}

// until looks four times a second for as long, or until there is a reason for a window, and
// says after how long that was.
func (h *hanging) until(t *testing.T, most time.Duration) (reason string, after time.Duration) {
	t.Helper()
	k := &watching{worker: h.worker, evidence: h.evidence, guarded: &sinks.Locked{}}
	for after = 0; after <= most; after += 250 * time.Millisecond {
		if reason = k.look(t.Context(), h.now.Add(after), nil); reason != "" {
			return reason, after
		}
	}
	return "", after
}

// An agent says by itself which rank the others wait for: once it is known where all stand,
// and within 10 s of the deadline at any rate.
func TestTheVerdictComesWithinTenSecondsOfTheDeadline(t *testing.T) {
	for _, c := range []struct {
		name   string
		stacks bool
		after  time.Duration // the deadline is a second after the last anchor
		says   string
	}{
		{"stacks are there", true, 1250 * time.Millisecond, "rank 1 has not come (at cleanup.py:88 work)"},
		{"there are none", false, 1250*time.Millisecond + standPatience, "rank 1 has not come"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := startHanging(t)
			if reason, _ := h.until(t, 750*time.Millisecond); reason != "" || h.status.Hang != nil {
				t.Fatalf("before the deadline: %s %+v", reason, h.status.Hang)
			}
			h.stop(c.stacks)
			reason, after := h.until(t, 20*time.Second)
			if reason != "blocked" || after != c.after || after > 11*time.Second {
				t.Errorf("%q after %s, want %s", reason, after, c.after)
			}
			got := h.status.Hang
			if got == nil || got.Kind != hang.KindMissing || !strings.HasSuffix(got.Sentence, c.says) || !strings.Contains(got.Sentence,
				"2 wait in collective 120 (gloo::allreduce)") {
				t.Fatalf("%+v", got)
			}
			if h.status.Hangs[hang.KindMissing] != 1 || got.Since.After(h.now.Add(2*time.Millisecond)) || got.Over != nil {
				t.Errorf("%v %v", h.status.Hangs, got)
			}
			// It is in the outbox for the store, and the dumps are in the spool.
			if waiting, err := filepath.Glob(filepath.Join(h.config.Spool, "outbox", "v1", "hang", "job=train", "*", "host=node-a",
				"*.parquet")); err != nil || len(waiting) != 1 {
				t.Errorf("%v %v", waiting, err)
			}
			for rank := range 3 {
				if _, err := os.Stat(filepath.Join(got.Dump, fmt.Sprint(flightrecorder.Prefix, rank))); err != nil {
					t.Error(err)
				}
			}
			// Once: until the job goes on, which is told, too.
			for range 40 {
				h.now = h.now.Add(250 * time.Millisecond)
				if reason := h.look(t); reason != "" {
					t.Fatalf("again: %s", reason)
				}
			}
			// Nor when a peer asks for a window of the same.
			h.blockWith("peer:"+blockedReason, h.now)
			if h.blocked != nil {
				t.Error("a peer's request has it judged again")
			}
			h.step(121)
			h.look(t)
			if last := h.status.Hang; last == nil || last.Over == nil || last.Sentence != got.Sentence || !strings.Contains(h.said.String(),
				"no rank is blocked any more") {
				t.Errorf("%+v\n%s", last, h.said)
			}
		})
	}
}

// A node on which nothing was noticed says where its ranks are when a peer's are blocked.
func TestANodeSaysWhereItsRanksAreWhenAPeersAreBlocked(t *testing.T) {
	h := startHanging(t)
	later := h.now.Add(500 * time.Millisecond)
	if h.blockWith("peer:blocked", later); h.blocked != nil {
		t.Error("it made a step half a second ago")
	}
	later = h.now.Add(5 * time.Second)
	if h.blockWith("peer:slow", later); h.blocked != nil {
		t.Error("its peer is slow")
	}
	h.blockWith("peer:blocked", later)
	h.now = later
	if reason, after := h.until(t, 20*time.Second); reason != "blocked" || after != standPatience {
		t.Errorf("%q after %s", reason, after)
	}
	if got := h.status.Hang; got == nil || got.Kind != hang.KindIdle || got.Since.After(later.Add(-5*time.Second)) {
		t.Errorf("%+v", got)
	}
	h.now = later.Add(30 * time.Second)
	if h.until(t, time.Second); h.status.Hang.Over != nil {
		t.Error("it is over, and nothing has gone on")
	}
	h.step(121)
	if h.until(t, 0); h.status.Hang.Over == nil {
		t.Error("it goes on, and is not over")
	}
}

// Ranks that wait before the length of a step is known are told of after a minute, once, and
// no window is taken.
func TestAJobThatHangsBeforeItsStepsAreKnownIsToldOf(t *testing.T) {
	for _, steps := range []int64{0, 20} {
		h := startAfter(t, steps)
		h.stop(true)
		if reason, _ := h.until(t, 59*time.Second); reason != "" || h.status.Hang != nil {
			t.Fatalf("%d steps: within a minute: %q %+v", steps, reason, h.status.Hang)
		}
		h.now = h.now.Add(time.Minute)
		if reason, _ := h.until(t, 30*time.Second); reason != "" {
			t.Errorf("%d steps: a window for %q", steps, reason)
		}
		got := h.status.Hang
		if got == nil || got.Kind != hang.KindMissing || !strings.HasSuffix(got.Sentence, "rank 1 has not come (at cleanup.py:88 work)") ||
			got.Over != nil || h.status.Hangs[hang.KindMissing] != 1 {
			t.Fatalf("%d steps: %+v %v", steps, got, h.status.Hangs)
		}
		h.now = h.now.Add(time.Hour)
		if h.until(t, time.Minute); h.status.Hangs[hang.KindMissing] != 1 {
			t.Errorf("%d steps: it is told again: %v", steps, h.status.Hangs)
		}
		h.evidence.Write(&event.Batch{OpenCalls: []event.OpenCalls{{}}})
		h.step(121)
		if h.until(t, 0); h.status.Hang.Over == nil {
			t.Errorf("%d steps: it goes on, and is not over", steps)
		}
	}
}

// What goes on by itself while stacks are waited for is no hang, and a reason for a window.
func TestAPauseIsNoHang(t *testing.T) {
	h := startHanging(t)
	h.stop(false)
	if reason, _ := h.until(t, 3*time.Second); reason != "" || h.blocked == nil {
		t.Fatalf("%q, %+v", reason, h.blocked)
	}
	h.now = h.now.Add(3 * time.Second)
	h.step(121)
	if reason, _ := h.until(t, 0); reason != "blocked" || h.status.Hang != nil || h.status.Blocked != 3 {
		t.Errorf("%q %+v", reason, h.status)
	}
	if !strings.Contains(h.said.String(), "ranks were blocked for 3.0 s, and are not any more") {
		t.Error(h.said)
	}
}

var update = flag.Bool("update", false, "write what a worker says of a hang anew")

// said is what a worker says of the hang below, line by line: package agent tells it on.
const said = "../testdata/hanging.jsonl"

// A verdict fits the line that a supervisor reads, of a job with long stacks, too. Where what
// is said has changed on purpose, -update writes it anew.
func TestAVerdictFitsALine(t *testing.T) {
	defer func(local *time.Location) { time.Local = local }(time.Local)
	time.Local = time.UTC
	h := startHanging(t)
	h.config.SpoolMB = 0 // the dumps' directory is another one each time
	h.stop(true)
	for rank := range int32(3) {
		frames := make([]symbolize.Frame, 5000)
		for i := range frames {
			frames[i] = symbolize.Frame{Kind: symbolize.Python, Function: strings.Repeat("f", 100), File: "deep.py", Line: int32(i + 1)}
		}
		h.evidence.Write(&event.Batch{Stacks: []event.Stack{{ID: 1000 + int64(rank), Frames: frames}}})
	}
	h.until(t, 20*time.Second)
	for line := range strings.Lines(h.said.String()) {
		if len(line) > MostStatus {
			t.Fatalf("a line of %d bytes", len(line))
		}
	}
	if *update {
		if err := os.WriteFile(said, h.said.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(said); err != nil || !bytes.Equal(want, h.said.Bytes()) {
		t.Errorf("%v: it says, and did not before:\n%s", err, h.said)
	}
}
