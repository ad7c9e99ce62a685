package timeline

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// made is a step's graph of spans that a test lists; ids are their places from 1.
func made(t *testing.T, until int64, spans ...Span) *StepGraph {
	t.Helper()
	for i := range spans {
		s := &spans[i]
		s.ID = int64(i + 1)
		if s.TID == 0 && s.Layer != "device" {
			s.TID = 1
		}
		if s.Stream == 0 {
			s.Stream = -1
		}
		s.WaitStream = -1
	}
	step := Step{Step: steps.Step{Begin: 0, End: until, Period: until, Kind: steps.Train}, Whole: true}
	g, err := NewStepGraph(Thread{PID: 1, TID: 1}, step, spans)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// last replays the graph with the named spans, and all inside them, taking no time.
func (g *StepGraph) last(without ...int) float64 {
	times := g.Times.Clone()
	for _, span := range without {
		for _, n := range g.Under(span) {
			times.Own[n] = 0
		}
	}
	return g.Graph.Replay(times).Last()
}

func TestStepReplaysToItsMeasuredTime(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 3))
		j := scripted.New()
		var nest func(depth int)
		nest = func(depth int) {
			for range r.IntN(4) {
				j.Wait(r.Int64N(50))
				j.Op("aten::mm", r.Int64N(100), func() {
					if depth < 4 {
						nest(depth + 1)
					}
				})
			}
		}
		for range 12 {
			j.Load(100 + r.Int64N(50))
			nest(0)
			j.Backward(100, func() { nest(1) })
			j.Optimize(50)
		}
		db := open(t, scripted.Write(t, j))
		for _, thread := range find(t, db) {
			for _, s := range thread.Training() {
				spans, err := SpansOf(context.Background(), db, thread, []Step{s})
				if err != nil {
					t.Fatal(err)
				}
				g, err := NewStepGraph(thread, s, spans[0])
				if err != nil {
					t.Fatal(err)
				}
				if got := g.last(); got != float64(s.Period) {
					t.Fatalf("seed %d, step %d: replayed %v, period %d", seed, s.Number, got, s.Period)
				}
				p := g.path(thread)
				if sum := p.HostMS + p.DeviceMS + p.BetweenMS; math.Abs(sum-p.PathMS) > 1e-9 || g.Graph.Dropped() != 0 {
					t.Fatalf("seed %d, step %d: parts add up to %v of %v, %d edges dropped", seed, s.Number, sum, p.PathMS, g.Graph.Dropped())
				}
			}
		}
	}
}

// Launches run ahead of two kernels on one stream, then a call waits for them.
func launches() []Span {
	return []Span{
		{Begin: 0, End: 10, Layer: "runtime", Category: "launch", Name: "cudaLaunchKernel"},
		{Begin: 5, End: 50, Layer: "device", Category: "kernel", Name: "first", Stream: 7, Launch: 1},
		{Begin: 20, End: 30, Layer: "runtime", Category: "launch", Name: "cudaLaunchKernel"},
		{Begin: 40, End: 100, Layer: "runtime", Category: "sync", Name: "cudaDeviceSynchronize"},
		{Begin: 51, End: 95, Layer: "device", Category: "kernel", Name: "second", Stream: 7, Launch: 3},
	}
}

func TestCallThatSynchronisesWaitsForTheDevice(t *testing.T) {
	g := made(t, 110, launches()...)
	if got := g.last(); got != 110 {
		t.Fatalf("replayed %v", got)
	}
	// Without the first kernel the second begins a moment after its launch, at 21,
	// and ends at 65; the call returns 5 later and 10 follow.
	if got := g.last(1); got != 80 {
		t.Errorf("without the first kernel %v, want 80", got)
	}
	// Without both the host goes on by itself: the call was made at 40.
	if got := g.last(1, 4); got != 40+5+10 {
		t.Errorf("without both kernels %v, want 55", got)
	}
	p := g.path(Thread{})
	if math.Abs(p.DeviceMS*1e6-95) > 1e-9 {
		t.Errorf("%v ns on the device", p.DeviceMS*1e6)
	}
	if p.Parts[0].Where != "device" || p.HiddenDeviceMS > 1e-9 {
		t.Errorf("first part %+v, hidden %v", p.Parts[0], p.HiddenDeviceMS)
	}
}

func TestDeviceWorkBesideTheHostIsHidden(t *testing.T) {
	g := made(t, 200,
		Span{Begin: 0, End: 10, Layer: "runtime", Category: "launch"},
		Span{Begin: 5, End: 60, Layer: "device", Category: "kernel", Stream: 7, Launch: 1, Name: "k"})
	p := g.path(Thread{})
	if p.DeviceMS != 0 || p.HiddenDeviceMS*1e6 != 55 || p.BetweenMS*1e6 != 190 {
		t.Errorf("device %v, hidden %v, between %v", p.DeviceMS, p.HiddenDeviceMS, p.BetweenMS)
	}
}

func TestBackwardPassWaitsForTheThreadsOfItsNodes(t *testing.T) {
	g := made(t, 120,
		Span{Begin: 10, End: 100, Layer: "autograd", Category: "backward", Name: "Engine::execute"},
		Span{TID: 2, Begin: 20, End: 90, Layer: "autograd", Category: "node", Name: "MmBackward0"})
	if got := g.last(); got != 120 {
		t.Fatalf("replayed %v", got)
	}
	times := g.Times.Clone()
	for _, n := range g.Under(1) {
		times.Own[n] = 10 // the node takes 10 instead of 70
	}
	if got := g.Graph.Replay(times).Last(); got != 60 {
		t.Errorf("with a faster node %v, want 60", got)
	}
}

func TestStepIsChosenByNumberOrAsTheMedian(t *testing.T) {
	j := scripted.New()
	for i := range 21 {
		j.Wait(int64(i) * 10)
		train(j)
	}
	threads := find(t, open(t, scripted.Write(t, j)))
	if _, s, err := Choose(threads, 7); err != nil || s.Number != 7 {
		t.Errorf("step %d, %v", s.Number, err)
	}
	if _, s, err := Choose(threads, -1); err != nil || s.Number < 8 || s.Number > 12 {
		t.Errorf("the median is step %d, %v", s.Number, err)
	}
	if _, _, err := Choose(threads, 99); err == nil {
		t.Error("step 99 was found")
	}
	if _, _, err := Choose(nil, -1); err == nil {
		t.Error("a step without steps")
	}
}

// Two streams of one device: a kernel on the second waits for an event that was
// recorded after the first kernel of the first stream, and not for its second one.
func TestStreamWaitsForTheWorkBeforeTheEvent(t *testing.T) {
	spans := []Span{
		{Begin: 0, End: 2, Layer: "runtime", Category: "launch", Name: "hipLaunchKernel"},
		{Begin: 3, End: 4, Layer: "runtime", Category: "event", Name: "hipEventRecord", Correlation: 42},
		{Begin: 5, End: 6, Layer: "runtime", Category: "launch", Name: "hipLaunchKernel"},
		{Begin: 5, End: 50, Layer: "device", Category: "kernel", Name: "first", Stream: 7, Launch: 1},
		{Begin: 7, End: 8, Layer: "runtime", Category: "event", Name: "hipStreamWaitEvent"},
		{Begin: 8, End: 9, Layer: "device", Category: "sync", Name: "Stream Wait Event", Stream: 9, Launch: 5},
		{Begin: 9, End: 10, Layer: "runtime", Category: "launch", Name: "hipLaunchKernel"},
		{Begin: 51, End: 90, Layer: "device", Category: "kernel", Name: "second", Stream: 7, Launch: 3},
		{Begin: 52, End: 120, Layer: "device", Category: "kernel", Name: "waits", Stream: 9, Launch: 7},
		{Begin: 100, End: 125, Layer: "runtime", Category: "sync", Name: "hipStreamSynchronize"},
		{Begin: 100, End: 124, Layer: "device", Category: "sync", Name: "Stream Sync", Stream: 9, Launch: 10},
	}
	g := made(t, 130, spans...)
	for i := range spans {
		g.Spans[i].WaitStream = -1
	}
	g.Spans[5].WaitStream, g.Spans[5].WaitCorrelation = 7, 42
	g, err := NewStepGraph(Thread{PID: 1, TID: 1}, g.Step, g.Spans)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.last(); got != 130 {
		t.Fatalf("replayed %v", got)
	}
	if got := g.last(7); got != 130 {
		t.Errorf("without the second kernel %v: nothing waits for it", got)
	}
	// Without the first kernel (45 long) what waits for it begins that much earlier,
	// but not before it was launched, at 9; the call returns after it and after 100.
	if got := g.last(3); got != 110 {
		t.Errorf("without the first kernel %v, want 110", got)
	}
	var names []string
	for _, s := range g.path(Thread{}).Segments {
		if s.Where == "device" {
			names = append(names, s.Name)
		}
	}
	if want := []string{"first", "waits"}; !slices.Equal(names, want) {
		t.Errorf("the path has %v, want %v", names, want)
	}
}

// In traces of torch.profiler nothing on the training thread says that it waits for
// the thread of the backward pass.
func TestBackwardThreadOfATraceIsOnThePath(t *testing.T) {
	g := made(t, 200,
		Span{Begin: 0, End: 200, Layer: "scope", Name: "ProfilerStep#1"},
		Span{Begin: 0, End: 50, Layer: "op", Name: "aten::mm"},
		Span{TID: 2, Begin: 60, End: 100, Layer: "autograd", Category: "node", Name: "MmBackward0"},
		Span{TID: 2, Begin: 70, End: 80, Layer: "runtime", Category: "launch", Name: "cudaLaunchKernel"},
		Span{Begin: 75, End: 170, Layer: "device", Category: "kernel", Name: "k", Stream: 7, Launch: 4},
		Span{Begin: 150, End: 175, Layer: "runtime", Category: "sync", Name: "cudaDeviceSynchronize"})
	p := g.path(Thread{})
	if g.last() != 200 || math.Abs(p.DeviceMS*1e6-100) > 1e-9 || math.Abs(p.BoundBy.KernelLaunch*1e6-5) > 1e-9 ||
		math.Abs(p.BetweenMS*1e6-35) > 1e-9 {
		t.Errorf("replayed %v: device %v ns, launch %v ns, between %v ns", g.last(), p.DeviceMS*1e6, p.BoundBy.KernelLaunch*1e6, p.BetweenMS*1e6)
	}
	// The profiler's mark does nothing itself, and what passes before a kernel begins is none of it.
	parts := map[string]float64{}
	for _, part := range p.Parts {
		parts[part.Where+" "+part.Layer+" "+part.Name] = part.ExposedMS * 1e6
	}
	for name, want := range map[string]float64{"between  host time in no operator (the interpreter), in ProfilerStep#1": 35,
		"device kernel k": 95, "device  waiting for its work to begin (launches, gaps)": 5} {
		if math.Abs(parts[name]-want) > 1e-9 {
			t.Errorf("%s: %v of %v", name, want, parts)
		}
	}
	if sum := p.BoundBy.CPU + p.BoundBy.Compute + p.BoundBy.KernelLaunch + p.BoundBy.KernelKernel; math.Abs(sum-p.PathMS) > 1e-9 {
		t.Errorf("the parts add up to %v of %v", sum, p.PathMS)
	}
}
