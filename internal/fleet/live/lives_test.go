package live

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// A thread of the job that made steps and then no more must not have the waits of all
// others kept until there is no room for new ones.
func TestAThreadThatIsThroughHoldsNoWaitsOfOthers(t *testing.T) {
	s := New(trigger.Published)
	at := int64(1e9)
	drive(s, 7, &at, 40, 10e6)
	at = 1e9
	drive(s, 8, &at, 40, 10e6)
	s.Take(true)
	for range 3000 { // of process 8 alone
		begin := at
		drive(s, 8, &at, 1, 100e6)
		for k := range int64(50) {
			s.Waited(&event.Sample{PID: 8, TID: 8, TSNS: begin + k*1e6, WeightNS: 1e5}, pattern.Collective)
		}
		s.Take(false)
	}
	if len(s.waits) > 3000 || s.Ignored() > 0 {
		t.Errorf("%d waits are kept, %d were turned away", len(s.waits), s.Ignored())
	}
}

// Where no steps are seen, waits are nobody's.
func TestWaitsWithoutStepsAreForgotten(t *testing.T) {
	s := New(trigger.Published)
	for k := range int64(2 * mostWaits) {
		s.Waited(&event.Sample{PID: 8, TID: 8, TSNS: k * 10e6, WeightNS: 5e6}, pattern.Collective)
		if k%1000 == 0 {
			s.Take(false)
		}
	}
	if len(s.waits) > 10_000 || s.Ignored() > 0 {
		t.Errorf("%d waits are kept, %d were turned away", len(s.waits), s.Ignored())
	}
}

// Threads come and go for months, in a process that stays and in processes whose last
// calls are read after their end.
func TestThreadsThatAreThroughMakeRoom(t *testing.T) {
	s := New(trigger.Published)
	at := int64(1e9)
	for tid := range int32(20 * mostThreads) {
		s.Write(&event.Batch{Spans: []event.Span{{PID: 7, TID: tid, Call: backward, StartNS: at, DurationNS: 1e6}}})
		at += 60e9
	}
	if len(s.threads) > mostThreads || s.Ignored() > 0 {
		t.Errorf("%d threads are kept, %d calls were ignored", len(s.threads), s.Ignored())
	}
	var l *loop
	for range 20 { // the newest is followed
		drive(s, 9, &at, 1, 20e6)
		l = s.threads[thread{9, 9}]
	}
	if l == nil || l.detector.Sequence() == "" {
		t.Error("a new thread's steps are not learnt")
	}
}

// A job whose stacks have no frame in common must not have more kept of it than another.
func TestStacksOfEverNewFramesTakeNoMemory(t *testing.T) {
	e := NewEvidence("node")
	for id := range int64(20_000) {
		s := event.Stack{ID: id + 1, Status: event.StackComplete}
		for k := range int64(60) {
			s.Frames = append(s.Frames, event.Frame{Kind: "native", Module: "x.so", Offset: id*100 + k})
		}
		e.Write(&event.Batch{Stacks: []event.Stack{s}})
	}
	if n := len(e.stacks.frames); n > mostFrames+60 {
		t.Errorf("%d frames are kept", n)
	}
	if e.stacks.of(20_000) == nil {
		t.Error("the last stack is not")
	}
}
