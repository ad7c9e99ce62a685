package plan

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/threadclock"
)

// A file can be made to take long to plan. So its functions have their turns until that
// has taken so much of the CPU, the anchors first; the rest has its turn later, a little
// at a time. What counts is the CPU time of the threads that plan, while they do: neither
// what else this process does meanwhile, such as making unwind tables, nor other
// processes, for whose sake it waits for a CPU, take turns away from a file.

// maxPlanning is how much of the CPU a file has at first: PyTorch's takes half a second.
const maxPlanning = 5 * time.Second

// turn is a function that is to be planned.
type turn struct {
	owner  owner
	symbol elf.Symbol
}

// Rest are the functions of a file that had no turn. They are planned from the file that
// the Plan was made of, which has to be open until then.
type Rest struct {
	planner *planner
	turns   []turn
	of      Plan // without probes
}

// Len is how many there are.
func (r *Rest) Len() int { return len(r.turns) }

// Next plans some more of them, on one thread, until that has taken so much of the CPU: at
// least one. It gives a Plan of these alone, whose Rest is what is left then.
func (r *Rest) Next(most time.Duration) *Plan {
	plan := r.of
	plan.take(r.planner, r.turns, most, 1)
	plan.Probes = slices.DeleteFunc(plan.Probes, func(p Probe) bool { return p.EntryErr == errNoTurn })
	return &plan
}

// take makes the plan's probes, and plans those whose turn comes in time.
func (p *Plan) take(with *planner, turns []turn, most time.Duration, threads int) {
	planning := &meter{}
	p.Probes = make([]Probe, len(turns))
	eachParallel(len(turns), threads, planning, func(i int) {
		if t := turns[i]; planning.used() < most {
			p.Probes[i] = with.plan(t.owner, t.symbol)
		} else {
			p.Probes[i] = unplanned(with, t.owner, t.symbol)
		}
	})
	p.Used += planning.used()
	var left []turn
	for i := range p.Probes {
		if p.Probes[i].EntryErr == errNoTurn {
			left = append(left, turns[i])
		}
	}
	p.Rest = nil
	if len(left) > 0 {
		p.Rest = &Rest{with, left, Plan{Path: p.Path, BuildID: p.BuildID, ELF: p.ELF, Begun: p.Begun}}
	}
}

// Take puts the sites of functions in that had no turn, and returns which these are.
func (p *Plan) Take(later *Plan) (which []int) {
	planned := make(map[uint64]*Probe, len(later.Probes))
	for i := range later.Probes {
		planned[later.Probes[i].Address] = &later.Probes[i]
	}
	for i := range p.Probes {
		if by := planned[p.Probes[i].Address]; by != nil && p.Probes[i].EntryErr == errNoTurn {
			turn := p.Probes[i].Spec.Turn
			p.Probes[i] = *by
			p.Probes[i].Spec.Turn = turn
			which = append(which, i)
		}
	}
	p.Used += later.Used
	return which
}

// eachParallel calls f for every index, on so many threads, whose time the meter takes. A
// library that is cut short under its reader panics in f; elf.Guard of the caller has to
// see that, as if there were no goroutines.
func eachParallel(n, threads int, m *meter, f func(i int)) {
	chunk := max(1, n/64)
	var next atomic.Int64
	var workers sync.WaitGroup
	faults := make([]error, threads)
	for w := range faults {
		workers.Go(func() {
			faults[w] = elf.Guard(func() {
				stint := m.begin()
				defer stint.end()
				for {
					from := int(next.Add(int64(chunk))) - chunk
					if from >= n {
						return
					}
					for i := from; i < min(from+chunk, n); i++ {
						f(i)
						stint.count()
					}
				}
			})
		})
	}
	workers.Wait()
	if errors.Join(faults...) != nil {
		panic(elf.ErrTruncated)
	}
}

// meter adds up the CPU time of some threads, while they do what it is meant for.
type meter struct{ sum atomic.Int64 }

func (m *meter) used() time.Duration { return time.Duration(m.sum.Load()) }

// stint is the time in which a goroutine has a thread for itself: Go would else let it go
// on elsewhere, and others on its thread.
type stint struct {
	meter *meter
	since time.Duration
}

func (m *meter) begin() stint {
	runtime.LockOSThread()
	return stint{m, threadclock.Now()}
}

// count adds what was used since the last time.
func (s *stint) count() {
	now := threadclock.Now()
	s.meter.sum.Add(int64(now - s.since))
	s.since = now
}

func (s *stint) end() {
	s.count()
	runtime.UnlockOSThread()
}
