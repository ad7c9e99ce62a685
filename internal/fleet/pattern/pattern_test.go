package pattern

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func classify(frames []event.Frame, collecting bool) function {
	seen := sight(frames)
	return seen.classify(collecting)
}

func python(function, file string, line int32) event.Frame {
	return event.Frame{Kind: symbolize.Python, Function: function, File: file, Line: line}
}

func native(function string) event.Frame {
	return event.Frame{Kind: symbolize.Native, Function: function, Module: "libtorch_cpu.so"}
}

// Stacks as they were recorded of gloo and DataLoader jobs, shortened, leaf first.
func TestAStackIsTakenForWhatItBelongsTo(t *testing.T) {
	module := python("<module>", "/home/u/train.py", 30)
	next := python("_BaseDataLoaderIter.__next__", "/usr/lib/python3/torch/utils/data/dataloader.py", 628)
	for name, c := range map[string]struct {
		frames     []event.Frame
		collecting bool
		class      Class
		function   string
	}{
		"a wait for peers": {[]event.Frame{native("pthread_cond_wait"), native("c10d::Work::wait"),
			python("all_reduce", "/x/torch/distributed/distributed_c10d.py", 9), module},
			false, Collective, "c10d::Work::wait"},
		"an issued collective": {[]event.Frame{native("c10d::ProcessGroupGloo::allreduce"), native("c10d::ProcessGroup::allreduce"), module},
			false, Collective, "c10d::ProcessGroup::allreduce"},
		"a reducer's hook is no wait": {[]event.Frame{native("at::_ops::copy_::call"), native("c10d::Reducer::autograd_hook"), module}, false,
			Compute, "aten::copy_"},
		"a data set's own code": {[]event.Frame{native("time_sleep"), python("Data.__getitem__", "/home/u/train.py", 9), next, module},
			false, Loader, "Data.__getitem__ (train.py)"},
		"an operator in the loader": {[]event.Frame{native("at::_ops::stack::call"), python("collate", "/home/u/c.py", 1), next, module},
			false, Loader, "collate (c.py)"},
		"an operator": {[]event.Frame{native("gemm"), native("at::_ops::addmm::call"), native("at::_ops::linear::call"),
			module}, false, Compute, "aten::linear"},
		"an overload": {[]event.Frame{native("at::_ops::add__Tensor::call"), module}, false, Compute, "aten::add_"},
		"a name with an underscore": {[]event.Frame{native("at::_ops::empty_memory_format::call"), module}, false, Compute,
			"aten::empty_memory_format"},
		"backward": {[]event.Frame{native("at::_ops::mm::call"),
			native("torch::autograd::generated::AddmmBackward0::apply"), module}, false, Compute, "AddmmBackward0"},
		"a copy": {[]event.Frame{native("cuMemcpyHtoDAsync_v2"), native("at::_ops::copy_::call"), module}, false, Copy,
			"cuMemcpyHtoDAsync_v2"},
		"Python": {[]event.Frame{python("augment", "/home/u/train.py", 12), module}, false, Python, "augment (train.py)"},
		"garbage collection anywhere": {[]event.Frame{native("gc_collect_main"), native("at::_ops::add_Tensor::call"),
			python("f", "/home/u/train.py", 3), module}, true, Python, "garbage collection in f (train.py)"},
		"a thread of the C library only": {[]event.Frame{native("worker"), {Kind: symbolize.Native, Function: "start_thread",
			Module: "libc.so.6"}}, false, Other, "worker"},
	} {
		f := classify(c.frames, c.collecting)
		if f.class != c.class || f.name != c.function {
			t.Errorf("%s: %s %q, want %s %q", name, f.class, f.name, c.class, c.function)
		}
	}
}

// PerfTracker: a Python function is the same where its whole stack of functions is.
func TestPythonFunctionsAreToldApartByTheirStacksAndNotByLines(t *testing.T) {
	leaf := func(line int32) event.Frame { return python("step", "/a/torch/x.py", line) }
	same := classify([]event.Frame{leaf(3), python("train", "/home/one/run.py", 7)}, false)
	if again := classify([]event.Frame{leaf(9), python("train", "/home/one/run.py", 8)}, false); again.key != same.key {
		t.Error("another line is another function")
	}
	if other := classify([]event.Frame{leaf(3), python("evaluate", "/home/one/run.py", 7)}, false); other.key == same.key {
		t.Error("another caller is the same function")
	}
}

const second = int64(1e9)

func sample(at int64, state, cause string, weight, stack int64) event.Sample {
	s := event.Sample{TSNS: at, PID: 1, TID: 1, State: state, Cause: cause, WeightNS: weight, StackID: &stack}
	if cause == event.CausePreempted {
		s.ReadyNS = weight
	}
	return s
}

// Ten seconds made by hand: 4 s of one function on the CPU in looks of 10 ms, 3 s of
// waiting for peers in one piece, 2 s preempted in the first function, 1 s unseen.
func TestSharesAddUpToWhatHappened(t *testing.T) {
	c := New(100)
	rank := int32(3)
	c.Write(&event.Batch{Processes: []event.Process{{PID: 1, Rank: &rank}}})
	c.Write(&event.Batch{Stacks: []event.Stack{
		{ID: 1, Frames: []event.Frame{python("work", "/t.py", 1)}},
		{ID: 2, Frames: []event.Frame{native("c10d::Work::wait"), python("work", "/t.py", 2)}},
	}})
	backward := &event.Call{Layer: "autograd", Category: "backward", Name: "Engine::execute"}
	c.Write(&event.Batch{Spans: []event.Span{{PID: 1, TID: 1, Call: backward, StartNS: 0, DurationNS: second}}})
	for i := range int64(400) {
		c.Write(&event.Batch{Samples: []event.Sample{sample(i*second/100, event.OnCPU, "", second/100, 1)}})
	}
	c.Write(&event.Batch{Samples: []event.Sample{
		sample(4*second, event.OffCPU, event.CauseSyscall, 3*second, 2),
		sample(7*second, event.OffCPU, event.CausePreempted, 2*second, 1),
		sample(10*second-1, event.OnCPU, "", 1, 1),
	}})
	found := map[string]Pattern{}
	for _, p := range c.Flush() {
		found[string(p.Basis)+" "+p.Name] = p
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	work, wait, host := found["samples work (t.py)"], found["samples c10d::Work::wait"], found["samples preempted"]
	if work.Rank != 3 || work.ObservedNS != 10*second || wait.Class != Collective || host.Class != Host {
		t.Fatalf("%+v", found)
	}
	near("coverage", work.Coverage, 0.9)
	near("work", work.Beta, 0.6)
	near("its lower end", work.BetaLo, 0.6-1.96*math.Sqrt(401)/100/10)
	near("wait", wait.Beta, 0.3)
	near("preempted", host.Beta, 0.2)
	near("share of work that was preempted", work.Preempted, 2.0/6)
	near("mean use of the CPU", work.Mu, 4.0/6)
	// Four slots at 1 (one second each) and one at 0 (two seconds).
	near("spread of it", work.Sigma, math.Sqrt((4*math.Pow(1-4.0/6, 2)+2*math.Pow(4.0/6, 2))/6))
	near("longest wait", float64(wait.LongestNS), 3e9)
	if b := found["calls Engine::execute"]; b.Count != 1 || b.MeanNS != second {
		t.Errorf("backward passes: %+v", b)
	}
	if again := c.Flush(); len(again) != 0 {
		t.Errorf("a window without events has %d patterns", len(again))
	}
}

func TestAProcessThatMakesNoStepsHasNoPatterns(t *testing.T) {
	c := New(100)
	c.Write(&event.Batch{Samples: []event.Sample{sample(0, event.OnCPU, "", second, 1)}})
	if p := c.Flush(); p != nil {
		t.Errorf("%+v", p)
	}
}

// Ten times the functions, stacks and processes are not ten times the memory.
func TestLimitsHoldAndAreCounted(t *testing.T) {
	c := New(100)
	call := &event.Call{Layer: "scope", Name: "step"}
	c.Write(&event.Batch{Spans: []event.Span{{PID: 1, TID: 1, Call: call, DurationNS: 1}}})
	const many = mostStacks + 1000
	for i := range int64(many) {
		c.Write(&event.Batch{Stacks: []event.Stack{{ID: i + 1, Frames: []event.Frame{python(fmt.Sprint("f", i), "/t.py", 1)}}}})
		c.Write(&event.Batch{Samples: []event.Sample{sample(i, event.OnCPU, "", 10, i+1)}})
	}
	c.Write(&event.Batch{Samples: []event.Sample{sample(many, event.OnCPU, "", 10, 1)}}) // evicted
	if len(c.stacks.stacks) > mostStacks || len(c.stacks.functions) > 2*mostStacks || len(c.stacks.order) > mostStacks {
		t.Errorf("%d stacks, %d functions", len(c.stacks.stacks), len(c.stacks.functions))
	}
	for pid := range int32(2 * mostWorkers) {
		c.Write(&event.Batch{Samples: []event.Sample{{PID: pid + 10, TID: pid + 10, WeightNS: 1}}})
	}
	lost := c.Lost()
	if lost.Functions != many-mostFunctions+1 || lost.Stacks != mostWorkers || lost.Workers != mostWorkers+1 {
		t.Errorf("%+v", lost)
	}
	patterns := c.Flush()
	if len(patterns) > mostFunctions+3 {
		t.Errorf("%d patterns", len(patterns))
	}
	var total float64
	for _, p := range patterns {
		if p.Basis == Sampled && p.Class != Host {
			total += p.Beta * float64(p.ObservedNS)
		}
	}
	if math.Abs(total-10*(many+1)) > 1 {
		t.Errorf("functions add up to %v of %d ns", total, 10*(many+1))
	}
	if long := classify(slow(2000), false); len(long.stack) > longestStack+8 || !strings.HasSuffix(long.stack, "…") {
		t.Errorf("%d bytes of a stack", len(long.stack))
	}
}

// Of a call in slices most are missing: what was seen of it is no share of the time.
func TestCallsInSlicesTellTheThreadAndNoShare(t *testing.T) {
	for slice, want := range map[int64]int{0: 1, 7: 0} {
		c := New(100)
		step := &event.Call{Layer: "scope", Name: "Optimizer.step#SGD.step"}
		c.Write(&event.Batch{Stacks: []event.Stack{{ID: 1, Frames: []event.Frame{python("train", "/t.py", 1)}}}})
		for i := range int64(10) {
			c.Write(&event.Batch{Spans: []event.Span{{PID: 1, TID: 1, Call: step, StartNS: i * second / 10, DurationNS: second / 20,
				SliceID: slice * (i % 2)}}})
			c.Write(&event.Batch{Samples: []event.Sample{sample(i*second/10, event.OnCPU, "", second/10, 1)}})
		}
		calls, sampled := 0, 0
		for _, p := range c.Flush() {
			switch {
			case p.Basis == Counted:
				calls++
			case p.Class == Python:
				sampled++
			}
		}
		if calls != want || sampled != 1 {
			t.Errorf("in slice %d: %d patterns of calls, want %d; %d of samples", slice, calls, want, sampled)
		}
	}
}

func slow(depth int) (frames []event.Frame) {
	for range depth {
		frames = append(frames, python("recursion", "/deep.py", 1))
	}
	return frames
}

func TestQuantilesAreWithinTheirClass(t *testing.T) {
	var h histogram
	for i := range int64(1000) {
		h.add((i + 1) * 1e6)
	}
	if q := h.quantile(0.99); q < 990e6 || float64(q) > 990e6*1.19 {
		t.Errorf("p99 %d", q)
	}
	if h.longest != 1000e6 || h.mean() != 500_500_000 {
		t.Errorf("longest %d, mean %d", h.longest, h.mean())
	}
	h.add(math.MaxInt64)
	h.add(-5)
}

func TestWhatIsCompactedAddsUpToTheSame(t *testing.T) {
	var all []Pattern
	var total float64
	for i := range 100 {
		p := Pattern{PID: int32(i % 2), Function: uint64(i), Class: Python, Basis: Sampled, Beta: float64(i) / 10_000, Count: 2}
		all, total = append(all, p), total+p.Beta
	}
	all = append(all, Pattern{Class: Host, Basis: Sampled, Beta: 1e-6}, Pattern{Basis: Counted, Beta: 1e-6})
	kept := Compact(all, 0.002)
	var sum float64
	var count int64
	for _, p := range kept {
		if p.Class != Host && p.Basis == Sampled {
			sum, count = sum+p.Beta, count+p.Count
		}
	}
	if len(kept) != 80+2+2 || math.Abs(sum-total) > 1e-12 || count != 200 {
		t.Errorf("%d patterns, %v of %v, %d", len(kept), sum, total, count)
	}
}
