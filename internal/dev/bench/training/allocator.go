package training

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/tracer"
)

const (
	allocatorJob    = "allocator.py"
	allocatorBudget = 0.01
	allocatorText   = `A training step of some 4 ms that makes 50,000 allocator events a second (testdata/jobs/allocator.py: storages of CPU tensors, and reports of a device's caching allocator through PyTorch's own function), at the level that is always on. Its allocator events are recorded in slices. The windows span several slices, so the mean step is what the job loses.`
)

// MeasureAllocator has a job of many allocator events at level anchor. As with
// the budget, the windows are longer than the governor's cycles, and the mean counts.
func (r *Results) MeasureAllocator(s setup.Settings, python setup.Interpreter) error {
	j, err := paired.StartWithTwin(setup.OnJobCore, python, allocatorJob)
	if err != nil {
		return err
	}
	defer j.Kill()
	anchor := tracer.Options{PIDs: []int{j.Pid}, Level: tracer.LevelAnchor, Follow: true, Budget: allocatorBudget}
	s.Rounds, s.Window = max(3, s.Rounds/2), s.Long/2
	return paired.RunToTheEnd(&r.allocator, j, python, allocatorJob, s, []paired.Treatment{
		paired.Nothing(s.Long),
		paired.Session(paired.AtAnchor, s.Long, 2*time.Second, anchor),
	})
}

func (r *Results) AllocatorTargets(p *figure.Page) {
	for _, m := range r.allocator {
		on, floor := paired.Find(m, paired.AtAnchor), paired.Find(m, paired.AA)
		p.Row("50,000 allocator events a second at `anchor`: step time within 1 % plus the noise floor", m.Python.Name,
			fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*on.MeanShare.Median, 100*floor.MeanShare.Reach()),
			figure.WithinNoise(on.MeanShare.Median <= allocatorBudget+floor.MeanShare.Reach(), floor.MeanShare.Reach()))
	}
}

func (r *Results) Allocators(p *figure.Page) {
	if len(r.allocator) == 0 {
		return
	}
	p.Line("## Allocator events\n\n%s\n", allocatorText)
	r.budgetTable(p, r.allocator)
}
