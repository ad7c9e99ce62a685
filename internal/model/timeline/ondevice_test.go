package timeline

import (
	"context"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestWorkOfBeforeHoldsUpItsStream: what a device is still at when a step begins, or what
// nobody is seen to launch, is what its launches wait for, and no latency of theirs.
func TestWorkOfBeforeHoldsUpItsStream(t *testing.T) {
	kernel := func(name string, begin, end, launch int64) Span {
		return Span{Layer: "device", Category: "kernel", Name: name, Begin: begin, End: end, Stream: 7, Launch: launch}
	}
	g := made(t, 700,
		kernel("before", -50, 400, 99), // launched before the step
		Span{Layer: "runtime", Category: "launch", Name: "cudaLaunchKernel", Begin: 10, End: 20},
		kernel("unlaunched", 410, 600, 0),
		kernel("own", 610, 1000, 2),
	)
	p := g.path(Thread{PID: 1, TID: 1})
	b := p.BoundBy
	if b.Compute != ms(400+190+390) || b.KernelKernel != ms(20) || b.KernelLaunch != 0 || b.CPU != 0 {
		t.Errorf("bound by %+v: the device was at work all the time but for 20 ns", b)
	}
	// Without what it was at before, the device is through first, and the step takes what the host does.
	if all, less := g.last(), g.last(0); all != 1000 || less != 700 {
		t.Errorf("the step takes %g, %g without the work of before", all, less)
	}
}

// TestPathOfAStepHasTheWorkOfTheStepsBefore, which a dataset has under launches of theirs.
func TestPathOfAStepHasTheWorkOfTheStepsBefore(t *testing.T) {
	const us = 1_000
	j := scripted.New()
	j.Launch(5*us, "kernel", "long", j.Now+10*us, 900*us)
	j.Wait(100 * us)
	begin := j.Now
	j.Launch(5*us, "kernel", "short", j.Now+820*us, 50*us)
	j.Wait(90 * us)
	db, err := dataset.Open(scripted.Write(t, j))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	step := Step{Step: steps.Step{Begin: begin, End: j.Now, Period: j.Now - begin, Kind: steps.Train}, Whole: true}
	p, err := Path(context.Background(), db, Thread{PID: int(j.PID), TID: int(j.TID)}, step)
	if err != nil {
		t.Fatal(err)
	}
	if p.BoundBy.KernelLaunch > 0.01 || p.BoundBy.Compute < 0.8 {
		t.Errorf("bound by %+v: the kernel launched before the step ran until long after it", p.BoundBy)
	}
}
