package localise

import (
	"math/rand/v2"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// healthyWindow is what a recording has of healthy workers (synthetic): steps of some 40 ms,
// of which some milliseconds are the worker's own and the rest a wait for the others, looks
// 99 times a second, and CPUs that are shared: each thread is kept from running now and then,
// in some seconds more often than in others.
func healthyWindow(t *testing.T, random *rand.Rand, workers int, length int64) (all []pattern.Pattern) {
	t.Helper()
	const ms = int64(1e6)
	busy := make([]float64, length/1e9+1) // of the machine: all workers of a node have the same
	for i := range busy {
		busy[i] = 0.1 + 0.4*random.Float64()
	}
	for rank := range int32(workers) {
		c := pattern.New(99)
		if err := c.Write(&event.Batch{Processes: []event.Process{{PID: 1, Rank: &rank}}}); err != nil {
			t.Fatal(err)
		}
		work := event.Frame{Kind: symbolize.Python, Function: "step", File: "/train.py", Line: 3}
		c.Write(&event.Batch{Stacks: []event.Stack{
			{ID: 1, Frames: []event.Frame{{Kind: symbolize.Native, Function: "at::_ops::linear::call"}, work}},
			{ID: 2, Frames: []event.Frame{{Kind: symbolize.Native, Function: "c10d::Work::wait"}, work}},
			{ID: 3, Frames: []event.Frame{work}},
		}})
		c.Write(&event.Batch{Spans: []event.Span{{PID: 1, TID: 1, Call: &event.Call{Layer: "autograd", Category: "backward",
			Name: "Engine::execute"}, DurationNS: 1}}})
		off := func(tid int32, cause string, at, ns, ready int64, stack int64) event.Sample {
			return event.Sample{PID: 1, TID: tid, State: event.OffCPU, Cause: cause, TSNS: 1e15 + at, WeightNS: ns, ReadyNS: ready, StackID: &stack,
				Syscall: "futex"}
		}
		look := random.Int64N(10 * ms)
		for at := int64(0); at < length; {
			own := 4*ms + random.Int64N(8*ms)
			for ; look < at+own; look += 10_101_010 {
				stack := int64(1 + 2*random.IntN(2))
				c.Write(&event.Batch{Samples: []event.Sample{{PID: 1, TID: 1, State: event.OnCPU, TSNS: 1e15 + look, WeightNS: 10_101_010,
					StackID: &stack}}})
			}
			if at += own; random.Float64() < busy[at/1e9] {
				delay := ms + random.Int64N(6*ms)
				c.Write(&event.Batch{Samples: []event.Sample{off(1, event.CausePreempted, at, delay, delay, 1)}})
				at += delay
			}
			wait := 20*ms + random.Int64N(20*ms)
			c.Write(&event.Batch{Samples: []event.Sample{off(1, event.CauseSyscall, at, wait, 0, 2)}})
			for range 3 { // of the library's threads
				if random.Float64() < busy[min(at, length)/1e9] {
					delay := ms + random.Int64N(10*ms)
					c.Write(&event.Batch{Samples: []event.Sample{off(2, event.CauseSyscall, at+random.Int64N(wait/2), delay, delay, 2)}})
				}
			}
			at += wait
			look = max(look, at)
		}
		for _, p := range pattern.Compact(c.Flush(), 0.001) {
			p.Host = "node"
			p.PID = rank
			all = append(all, p)
		}
	}
	return all
}

// Of a hundred windows of each length none names a worker: what a machine that is busy does
// to all is no worker's fault, however little of it was seen.
func TestAHundredHealthyWindowsAccuseNobody(t *testing.T) {
	for _, length := range []int64{2e9, 20e9} {
		for seed := range uint64(100) {
			random := rand.New(rand.NewPCG(seed, 15))
			for _, f := range Compare(healthyWindow(t, random, 3, length)).Findings {
				if f.Kind == Special && !f.Cause.Symptom {
					t.Errorf("%d s, window %d: %s", length/1e9, seed, f.Sentence)
				}
			}
		}
	}
}
