package training

import (
	"cmp"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/recording"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
)

// attachResult is what putting the operator probes in and out costs.
type attachResult struct {
	python setup.Interpreter
	sets   []*attachSet
}

// attachSet is one set of probes, put in and out several times.
type attachSet struct {
	name         string
	sites        int
	in, out      figure.Spread // milliseconds the tracer needs
	stallIn      figure.Spread // milliseconds the job loses
	stallOut     figure.Spread
	moments      []moment
	used, absent bool
}

// moment is one attach and the detach that follows.
type moment struct{ inFrom, inTo, outFrom, outTo int64 }

const (
	// around is how long before and after the probes are in or out.
	around = 250 * time.Millisecond
	// tail is how long after the call returns the job may still pay for it.
	tail = 10 * time.Millisecond
)

// measureAttach puts the operator probes of a running job in and out.
func (r *Results) measureAttach(s setup.Settings, t *recording.Probed, python setup.Interpreter) (func(paired.Against), error) {
	sets := []*attachSet{{name: "all operators"}, {name: "those the job uses", used: true}, {name: "none (noise floor)", absent: true}}
	for n := range s.Attaches {
		for _, set := range sets {
			if err := set.once(t); err != nil {
				return nil, err
			}
		}
		setup.Say("  attach %d of %d", n+1, s.Attaches)
	}
	t.Choose(false)
	r.attach = append(r.attach, attachResult{python, sets})
	return func(all paired.Against) {
		for _, set := range sets {
			set.judge(all.Own)
			setup.Say("  %s, %-18s %5d sites  in %s ms, stall %s ms  out %s ms, stall %s ms", python.Name, set.name, set.sites, &set.in,
				&set.stallIn, &set.out, &set.stallOut)
		}
	}, nil
}

func (a *attachSet) once(t *recording.Probed) error {
	var m moment
	do := func(from, to *int64, f func() error, nap time.Duration) error {
		*from = setup.Monotonic()
		if a.absent {
			time.Sleep(nap)
		} else if err := f(); err != nil {
			return err
		}
		*to = setup.Monotonic()
		time.Sleep(around)
		return nil
	}
	t.Choose(a.used)
	time.Sleep(around)
	if err := do(&m.inFrom, &m.inTo, t.Attach, 40*time.Millisecond); err != nil {
		return err
	}
	if !a.absent {
		a.sites = t.Sites()
	}
	if !a.absent {
		t.PrepareRemoval() // while the probes still record, as at the end of a slice
	}
	if err := do(&m.outFrom, &m.outTo, t.Detach, 120*time.Millisecond); err != nil {
		return err
	}
	a.moments = append(a.moments, m)
	return nil
}

// judge adds up by how much the steps around each moment were longer than
// those of the quarter of a second before or after it.
func (a *attachSet) judge(all paired.Steps) {
	ms := func(ns float64) float64 { return ns / 1e6 }
	for _, m := range a.moments {
		a.in.Add(ms(float64(m.inTo - m.inFrom)))
		a.out.Add(ms(float64(m.outTo - m.outFrom)))
		off := usual(all.In(m.inFrom-int64(around), m.inFrom))
		on := usual(all.In(m.inTo+int64(tail), m.outFrom))
		free := usual(all.In(m.outTo+int64(tail), m.outTo+int64(around)))
		a.stallIn.Add(ms(stall(all, m.inFrom, m.inTo, off, on)))
		a.stallOut.Add(ms(stall(all, m.outFrom, m.outTo, free, free)))
	}
}

// usual is the mean step without the hundredth of the longest: what a busy
// machine makes of a step is in it, one long interruption is not.
func usual(s paired.Steps) float64 {
	sorted := slices.SortedFunc(slices.Values(s), func(a, b paired.Step) int { return cmp.Compare(a.Duration, b.Duration) })
	return paired.Steps(sorted[:len(sorted)-len(sorted)/100]).Mean()
}

// stall is the excess of the steps that something between two instants
// touched: against the usual step without probes while it went on, and
// against the one after it in the tail.
func stall(all paired.Steps, from, to int64, during, after float64) float64 {
	touched := all.Touching(from, to)
	end := to
	if len(touched) > 0 {
		end = touched[len(touched)-1].End()
	}
	return touched.Excess(during) + all.In(end, to+int64(tail)).Excess(after)
}
