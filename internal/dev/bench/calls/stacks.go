package calls

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/loop"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/recording"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// launchStacks is what a launch costs whose stack is taken, from some forty
// frames of both kinds.
type launchStacks struct {
	bare, without, memoised, walked figure.Spread // ns a launch
	trap                            figure.Spread // ns, the least of some turns beside each round
	memo                            kernel.MemoTotals
}

const (
	// The fastest of so many short runs counts: what else runs on the machine only adds.
	deepRuns     = 40
	deepLaunches = 2500
	// tablesReady is how long the unwind tables of Python and libc take to come
	// from the cache.
	tablesReady = 2 * time.Second
)

// startDeepLaunches starts jobs/deeplaunch.py, which makes its launches when it
// is asked to.
func startDeepLaunches() (*loop.Loop, error) {
	library := filepath.Join("testdata", "stubs", "build", "libdeeplaunch.so")
	j, err := loop.Start("/usr/bin/python3", filepath.Join("internal", "dev", "bench", "jobs", "deeplaunch.py"), library)
	if err == nil {
		j.Tell = strconv.Itoa(deepLaunches)
	}
	return j, err
}

func (r *Results) measureLaunchStacks(s setup.Settings) error {
	job, err := startDeepLaunches()
	if err != nil {
		return err
	}
	defer job.End()
	result := &launchStacks{}
	once := func(into *figure.Spread) func() error {
		return func() error {
			fastest, err := job.Once()
			for range deepRuns - 1 {
				ns, failed := job.Once()
				fastest, err = min(fastest, ns), errors.Join(err, failed)
			}
			into.Add(fastest)
			return err
		}
	}
	gauge, err := loop.NewGauge()
	if err != nil {
		return err
	}
	defer gauge.End()
	cuda := tracer.Options{PIDs: []int{job.Process.Pid}, Filter: filter.OfGroups("cuda"), Budget: tracer.Unlimited}
	stacks := cuda
	stacks.OffCPU = time.Minute
	all := stacks
	all.VerifyStacks = 1
	for range s.Rounds {
		if err := once(&result.bare)(); err != nil {
			return err
		}
		if _, err := recording.Traced(cuda, 0, once(&result.without)); err != nil {
			return err
		}
		stats, err := recording.Traced(stacks, tablesReady, func() error {
			if _, err := job.Once(); err != nil { // which walks each once
				return err
			}
			return once(&result.memoised)()
		})
		if err != nil {
			return err
		}
		result.memo.Add(&stats.Memo)
		if stats.Stacks.Complete == 0 || len(stats.Stacks.Incomplete) > 0 {
			return fmt.Errorf("the stacks of the launches are not complete: %+v", stats.Stacks)
		}
		if _, err := recording.Traced(all, tablesReady, once(&result.walked)); err != nil {
			return err
		}
		_, trap, err := gauge.Read()
		if err != nil {
			return err
		}
		result.trap.Add(trap)
	}
	r.launchStacks = result
	setup.Say("  from forty frames: %s ns without, %s ns with probes, %s ns with a memoised stack, %s ns with each walked; %+v",
		&result.bare, &result.without, &result.memoised, &result.walked, result.memo)
	return nil
}

func (l *launchStacks) over(s *figure.Spread) float64 {
	return figure.Fastest(s.Values) - figure.Fastest(l.bare.Values)
}

func (r *Results) launchStackTargets(p *figure.Page) {
	l := r.launchStacks
	if l == nil {
		return
	}
	with := l.over(&l.memoised)
	alone := with - l.over(&l.without)
	p.Row("a launch with a memoised stack, from under Python (stub device): ≤ 1.8 µs", "", loop.InTraps(with, figure.Fastest(l.trap.Values)),
		figure.Verdict(with <= 1800))
	p.Row("a memoised stack by itself: ≤ 1 µs", "", fmt.Sprintf("%.2f µs", alone/1e3), figure.Verdict(alone <= 1000))
}

func (r *Results) launchesWithStacks(p *figure.Page) {
	l := r.launchStacks
	if l == nil {
		return
	}
	p.Line("From under some forty frames, Python's and native ones in turn (`internal/dev/bench/jobs/deeplaunch.py`, four places that "+
		"launch one after the other): %s ns a call without probes, %s with them, %s with a stack that is memoised, %s where each stack is "+
		"walked as well and compared; of each round the fastest of 40 runs of 2,500 launches, the median (least–most) of the rounds; the "+
		"targets are about the least. Of %d launches with stacks %d found theirs, %d of these were walked to compare, and %d differed "+
		"(mismatch rate %.3g).\n",
		&l.bare, &l.without, &l.memoised, &l.walked, l.memo.Found+l.memo.Walked, l.memo.Found, l.memo.Verified, l.memo.Mismatched,
		l.memo.MismatchRate())
}
