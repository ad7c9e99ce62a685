// Package calls measures what a call that is recorded costs its caller: a launch, a read.
package calls

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/loop"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
)

// Results are the figures of calls that the tracer records.
type Results struct {
	launch *launchResult
	// launchStacks is of the same part.
	launchStacks *launchStacks
	reads        *readsResult
}

// launchResult is what a launch of a stub device costs more with its probes in.
// The stub does nothing: what is left is the price of the probes.
type launchResult struct {
	costs      *launchCosts
	made, seen uint64 // at the paced rate
	lost       map[string]uint64
	rate       float64 // launches a second
}

const (
	pacedLaunches = 300_000
	pacedPeriod   = 10_000 // ns: 100,000 launches a second
)

func startLaunches(arguments ...string) (*loop.Loop, error) {
	return loop.Start(append([]string{filepath.Join(loop.Stubs, "cudacalls"), "loop"}, arguments...)...)
}

func (r *Results) MeasureLaunches(s setup.Settings) error {
	costs, err := measureLaunchCosts(s)
	if err != nil {
		return err
	}
	result := &launchResult{costs: costs}
	paced, err := startLaunches(strconv.Itoa(pacedLaunches), strconv.Itoa(pacedPeriod))
	if err != nil {
		return err
	}
	defer paced.End()
	stats, err := paced.Traced(func() error {
		ns, err := paced.Once()
		result.rate = 1e9 / ns
		return err
	})
	if err != nil {
		return err
	}
	result.made, result.seen, result.lost = pacedLaunches, stats.Spans, stats.Lost
	r.launch = result
	if err := r.measureLaunchStacks(s); err != nil {
		return err
	}
	setup.Say("  a launch: %s; paced: %d of %d recorded at %.0f/s, lost %v", costs, result.seen, result.made, result.rate, result.lost)
	return nil
}

func (r *Results) LaunchTargets(p *figure.Page) {
	l := r.launch
	if l == nil {
		return
	}
	recorded := l.costs.over(&l.costs.recorded)
	p.Row("a launch, entry, return, nine captured values and span record, without a stack (stub device): ≤ 0.8 µs", "",
		fmt.Sprintf("%.2f µs, %.2f empty uprobes", recorded/1e3, figure.Median(l.costs.traps(&l.costs.recorded))),
		figure.Verdict(recorded <= 800))
	r.launchStackTargets(p)
	p.Row("100,000 launches/s from one thread without loss (stub device)", "",
		fmt.Sprintf("%d of %d at %.0f/s", l.seen, l.made, l.rate), figure.Verdict(l.seen >= l.made && len(l.lost) == 0 && l.rate > 99_000))
}

func (r *Results) Launches(p *figure.Page) {
	l := r.launch
	if l == nil {
		return
	}
	p.Line("## A launch\n")
	l.costs.page(p)
	r.launchesWithStacks(p)
	p.Line("Paced at %.0f launches a second from one thread, %d of %d were recorded.\n", l.rate, l.seen, l.made)
}
