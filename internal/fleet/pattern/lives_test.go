package pattern

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Loader workers come and go with every epoch: after months a new rank is still seen, and
// one that has just ended has its last patterns.
func TestEndedProcessesMakeRoomForOthers(t *testing.T) {
	c := New(100)
	id := int64(1)
	c.Write(&event.Batch{Stacks: []event.Stack{{ID: id, Frames: []event.Frame{python("train", "/home/u/train.py", 3)}}}})
	live := func(pid int32, at int64) {
		c.Write(&event.Batch{Processes: []event.Process{{PID: pid}}})
		c.Write(&event.Batch{Spans: []event.Span{{PID: pid, TID: pid, Call: &event.Call{Layer: "autograd", Category: "backward"}, StartNS: at,
			DurationNS: 10}}})
		c.Write(&event.Batch{Samples: []event.Sample{{PID: pid, TID: pid, TSNS: at, State: event.OnCPU, WeightNS: second, StackID: &id}}})
	}
	for pid := range int32(5 * mostWorkers) {
		at := int64(pid+1) * second
		live(pid+1, at)
		ended := at + second
		c.Write(&event.Batch{Processes: []event.Process{{PID: pid + 1, EndedNS: &ended}}})
		if patterns := c.Flush(); len(patterns) == 0 || patterns[0].PID != pid+1 {
			t.Fatalf("process %d: %+v", pid+1, patterns)
		}
		// is read late
		c.Write(&event.Batch{Samples: []event.Sample{{PID: pid + 1, TID: pid + 1, TSNS: ended, State: event.OnCPU, WeightNS: 1, StackID: &id}}})
		c.Flush()
	}
	if len(c.workers) > mostWorkers || c.Lost().Workers > 0 {
		t.Errorf("%d workers are kept, %d were turned away", len(c.workers), c.Lost().Workers)
	}
}

func TestThreadsThatComeAndGoTakeNoMemory(t *testing.T) {
	c := New(100)
	call := &event.Call{Layer: "autograd", Category: "backward"}
	for tid := range int32(10 * mostThreads) {
		c.Write(&event.Batch{Spans: []event.Span{{PID: 1, TID: tid, Call: call, StartNS: int64(tid), DurationNS: 10}}})
	}
	if n := len(c.workers[1].anchors); n > mostThreads {
		t.Errorf("%d threads are kept", n)
	}
}

// deep is a stack as training has them: Python below, many native frames above, the
// deepest of which differ each time.
func deep(id int64) event.Stack {
	var frames []event.Frame
	for k := range 50 {
		frames = append(frames, native(fmt.Sprintf("at::native::something_%d_with_a_long_name", id*7+int64(k))))
	}
	frames = append(frames, native("at::_ops::mm::call"))
	for k := range 10 {
		frames = append(frames, python(fmt.Sprintf("forward%d", k), "/home/u/model.py", int32(id%20)))
	}
	return event.Stack{ID: id, Frames: frames, Folded: fmt.Sprint(frames)}
}

// The stacks that a job is in most of the time came in its first minute, and never again:
// those that came once since must not push them out.
func TestStacksThatAreSeenAgainStay(t *testing.T) {
	c := New(19)
	const often = 100
	at := int64(1)
	for id := range int64(often) {
		c.Write(&event.Batch{Stacks: []event.Stack{deep(id + 1)}})
	}
	look := func(id int64) {
		at += second / 19
		c.Write(&event.Batch{Samples: []event.Sample{{PID: 1, TID: 1, TSNS: at, State: event.OnCPU, WeightNS: second / 19, StackID: &id}}})
	}
	for n := range int64(2 * mostStacks) {
		once := 1000 + n
		c.Write(&event.Batch{Stacks: []event.Stack{{ID: once, Frames: []event.Frame{native("worker")}}}})
		look(once)
		look(n%often + 1)
	}
	if c.Lost().Stacks > 0 {
		t.Errorf("%d looks found no stack", c.Lost().Stacks)
	}
	if len(c.stacks.stacks) > mostStacks || len(c.stacks.order) > mostStacks {
		t.Errorf("%d stacks are kept", len(c.stacks.stacks))
	}
}

// A worker may take 200 MB; of that frames are nothing that lasts.
func TestRecognisedStacksTakeLittleMemory(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	c := New(19)
	before := heap()
	const stacks = 20_000
	for id := range int64(stacks) {
		c.Write(&event.Batch{Stacks: []event.Stack{deep(id + 1)}})
	}
	if each := (heap() - before) / stacks; each > 500 {
		t.Errorf("%d bytes a stack", each)
	}
	runtime.KeepAlive(c)
	for id := range int64(3 * mostNames / longestStack) { // hostile: all different, and long
		c.Write(&event.Batch{Stacks: []event.Stack{{ID: -id - 1, Frames: []event.Frame{python(fmt.Sprintf("%d%4090d", id, 0), "/x", 1)}}}})
	}
	if c.stacks.names > mostNames+2*longestStack+4096 {
		t.Errorf("%d bytes of names", c.stacks.names)
	}
}
