package main

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer"
)

const (
	allocatorJob    = "allocator.py"
	allocatorBudget = 0.01
	allocatorText   = `A training step of some 4 ms that makes 50,000 allocator events a second (testdata/jobs/allocator.py: storages of CPU tensors, and reports of a device's caching allocator through PyTorch's own function), at the level that is always on. Its allocator events are recorded in slices. The windows span several slices, so the mean step is what the job loses.`
)

// measureAllocator has a job of many allocator events at level anchor. As with
// the budget, the windows are longer than the governor's cycles, and the mean counts.
func (r *results) measureAllocator(s settings, python interpreter) error {
	j, err := startWithTwin(python, allocatorJob)
	if err != nil {
		return err
	}
	defer j.kill()
	anchor := tracer.Options{PIDs: []int{j.pid}, Level: tracer.LevelAnchor, Follow: true, Budget: allocatorBudget}
	s.rounds, s.window = max(3, s.rounds/2), s.long/2
	return r.runToTheEnd(&r.allocator, j, python, allocatorJob, s, []treatment{
		nothing(s.long),
		session(atAnchor, s.long, 2*time.Second, anchor),
	})
}

func (r *results) allocatorTargets(p *page) {
	for _, m := range r.allocator {
		on, floor := find(m, atAnchor), find(m, aa)
		p.row("50,000 allocator events a second at `anchor`: step time within 1 % plus the noise floor", m.python.name,
			fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*on.meanShare.median, 100*floor.meanShare.reach()),
			withinNoise(on.meanShare.median <= allocatorBudget+floor.meanShare.reach(), floor.meanShare.reach()))
	}
}

// tooNoisy is the noise floor above which a budget of 1 % cannot be judged.
const tooNoisy = 0.03

// withinNoise is verdict where the machine is quiet enough to tell.
func withinNoise(holds bool, floor float64) string {
	if floor > tooNoisy {
		return "too noisy to tell"
	}
	return verdict(holds)
}

func (r *results) allocators(p *page) {
	if len(r.allocator) == 0 {
		return
	}
	p.line("## Allocator events\n\n%s\n", allocatorText)
	r.budgetTable(p, r.allocator)
}
