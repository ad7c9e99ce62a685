package calls

import (
	"fmt"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/loop"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
)

// launchCosts are the times of launches with nothing, a part, or all of what
// records them in their way, ns a launch. Each has a process of its own with its
// own copy of the library, and they take turns of a few milliseconds: the
// machine's speed changes within seconds, so only times of one round can be
// compared. Value n of each is of round n.
type launchCosts struct {
	bare     figure.Spread
	trap     figure.Spread // a program that does nothing at the entry
	returned figure.Spread // and another at the return
	recorded figure.Spread // the tracer
}

const (
	turnRounds = 50 // so many times the rounds of the other measurements
)

func measureLaunchCosts(s setup.Settings) (*launchCosts, error) {
	c := &launchCosts{}
	var jobs [4]*loop.Loop
	for i := range jobs {
		j, err := loop.StartOwn()
		if err != nil {
			return nil, err
		}
		defer j.End()
		jobs[i] = j
	}
	for i, ends := range [][]bool{1: {false}, 2: {false, true}} {
		for _, end := range ends {
			remove, err := loop.AttachEmpty(jobs[i], end)
			if err != nil {
				return nil, fmt.Errorf("attaching a program that does nothing: %w", err)
			}
			defer remove()
		}
	}
	rounds := s.Rounds * turnRounds
	stats, err := jobs[3].Traced(func() error {
		for range rounds {
			for i, into := range []*figure.Spread{&c.bare, &c.trap, &c.returned, &c.recorded} {
				ns, err := jobs[i].Once()
				if err != nil {
					return err
				}
				into.Add(ns)
			}
		}
		return nil
	})
	if made := uint64(rounds * loop.TurnLaunches); err == nil && stats.Spans < made {
		err = fmt.Errorf("%d of %d launches were recorded, lost %v", stats.Spans, made, stats.Lost)
	}
	return c, err
}

// over is what a launch takes longer than one that nothing is attached to, ns.
func (c *launchCosts) over(s *figure.Spread) float64 {
	return figure.Fastest(s.Values) - figure.Fastest(c.bare.Values)
}

// traps is the same as multiples of the empty uprobe, one of each round.
func (c *launchCosts) traps(s *figure.Spread) (multiples []float64) {
	for i, ns := range s.Values {
		if trap := c.trap.Values[i] - c.bare.Values[i]; trap > 0 {
			multiples = append(multiples, (ns-c.bare.Values[i])/trap)
		}
	}
	return multiples
}

func (c *launchCosts) String() string {
	return fmt.Sprintf("a trap %.0f ns, with a return %.0f ns (%.2f), recorded %.0f ns (%.2f)", c.over(&c.trap),
		c.over(&c.returned), figure.Median(c.traps(&c.returned)), c.over(&c.recorded), figure.Median(c.traps(&c.recorded)))
}

func (c *launchCosts) page(p *figure.Page) {
	p.Line("`cuLaunchKernel` of the stub libcuda, whose entry has the code of the real one (compare, conditional jump, indirect jump) and "+
		"which does nothing: %.1f ns a call without probes. Captured are the function, grid, block, shared memory and stream, three of them "+
		"from the stack, and the return address; the end comes from a return probe. Four processes, each with its own copy of the library, "+
		"launch in turn, %d at a time, %d rounds: what else the machine does only adds, so a time is the fastest round's; the multiple is the "+
		"median (quartiles) of what each round has, because the machine's speed changes between rounds.\n",
		figure.Fastest(c.bare.Values), loop.TurnLaunches, len(c.bare.Values))
	p.Table("at the launch", "ns more", "empty uprobes")
	for _, one := range []struct {
		name string
		s    *figure.Spread
	}{
		{"a trap at the entry site, its program does nothing", &c.trap},
		{"and a return probe, its program does nothing", &c.returned},
		{"recorded", &c.recorded},
	} {
		traps := slices.Sorted(slices.Values(c.traps(one.s)))
		low, high := math.NaN(), math.NaN()
		if n := len(traps); n > 0 {
			low, high = traps[n/4], traps[n*3/4]
		}
		p.Row(one.name, fmt.Sprintf("%.0f", c.over(one.s)), fmt.Sprintf("%.2f (%.2f–%.2f)", figure.Median(traps), low, high))
	}
	kernel := figure.Median(c.traps(&c.returned))
	p.Line("\nThe kernel alone takes %.2f empty uprobes for an entry and a return, before any program of ours does anything: 0.8 µs would "+
		"be that where an empty uprobe takes %.2f µs, and what this tracer adds, %.2f of a trap, fits under it where one takes %.2f µs. A trap "+
		"took %.2f µs when the target was set: the kernel's part alone is %.2f µs of those.\n",
		kernel, 0.8/kernel, figure.Median(c.traps(&c.recorded))-kernel, 0.8/figure.Median(c.traps(&c.recorded)), loop.TrapWhenSet,
		loop.TrapWhenSet*kernel)
	p.Line("%s\n", launchPieces)
}

// launchPieces was measured with programs that end early, each in turn with the
// whole one, and is not measured again by a run of bench.
const launchPieces = `What the tracer adds was taken apart on 2026-11-21 by programs that end early, in hundredths of an empty uprobe: finding thread, spec and counter, twice, 3; reading the clock, twice, 12; opening the span 3; reading the stack arguments and the return address from the job's memory 8, putting all values in place 4; a record's place in the ring buffer and its release (the kernel's lock and two locked instructions) 12, filling it 5. What would not help: one uprobe.session link instead of two links (1.60 empty uprobes where two links take 1.60), perf uprobes (1.68), the ring buffer's copying call instead of reserving (the same), an exit site instead of the return probe (a trap more, where the return takes 0.6). Waking the reader costs nothing already: no launch does. On 2026-11-22 the calls between functions of one program were taken out (each return costs some 7 ns where the kernel guards them against speculation), and the words of the job's stack are copied to the BPF stack first (a read takes 58 ns there, 75 ns to a map, and 170 ns for 10 KiB): together 3 % of a launch, in turn with the build before.`
