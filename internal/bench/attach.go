package main

import (
	"slices"
	"time"
)

// attachResult is what putting the operator probes in and out costs.
type attachResult struct {
	python interpreter
	sets   []*attachSet
}

// attachSet is one set of probes, put in and out several times.
type attachSet struct {
	name         string
	sites        int
	in, out      spread // milliseconds the tracer needs
	stallIn      spread // milliseconds the job loses
	stallOut     spread
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
func (r *results) measureAttach(s settings, t *probed, python interpreter) (func(against), error) {
	sets := []*attachSet{{name: "all operators"}, {name: "those the job uses", used: true}, {name: "none (noise floor)", absent: true}}
	for n := range s.attaches {
		for _, set := range sets {
			if err := set.once(t); err != nil {
				return nil, err
			}
		}
		say("  attach %d of %d", n+1, s.attaches)
	}
	t.Choose(false)
	r.attach = append(r.attach, attachResult{python, sets})
	return func(all against) {
		for _, set := range sets {
			set.judge(all.own)
			say("  %s, %-18s %5d sites  in %s ms, stall %s ms  out %s ms, stall %s ms", python.name, set.name, set.sites, &set.in, &set.stallIn, &set.out, &set.stallOut)
		}
	}, nil
}

func (a *attachSet) once(t *probed) error {
	var m moment
	do := func(from, to *int64, f func() error, nap time.Duration) error {
		*from = monotonic()
		if a.absent {
			time.Sleep(nap)
		} else if err := f(); err != nil {
			return err
		}
		*to = monotonic()
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
func (a *attachSet) judge(all steps) {
	ms := func(ns float64) float64 { return ns / 1e6 }
	for _, m := range a.moments {
		a.in.add(ms(float64(m.inTo - m.inFrom)))
		a.out.add(ms(float64(m.outTo - m.outFrom)))
		off := all.in(m.inFrom-int64(around), m.inFrom).usual()
		on := all.in(m.inTo+int64(tail), m.outFrom).usual()
		free := all.in(m.outTo+int64(tail), m.outTo+int64(around)).usual()
		a.stallIn.add(ms(stall(all, m.inFrom, m.inTo, off, on)))
		a.stallOut.add(ms(stall(all, m.outFrom, m.outTo, free, free)))
	}
}

// usual is the mean step without the hundredth of the longest: what a busy
// machine makes of a step is in it, one long interruption is not.
func (s steps) usual() float64 {
	sorted := slices.SortedFunc(slices.Values(s), func(a, b step) int { return compare(a.duration, b.duration) })
	return steps(sorted[:len(sorted)-len(sorted)/100]).mean()
}

// stall is the excess of the steps that something between two instants
// touched: against the usual step without probes while it went on, and
// against the one after it in the tail.
func stall(all steps, from, to int64, during, after float64) float64 {
	touched := all.touching(from, to)
	end := to
	if len(touched) > 0 {
		end = touched[len(touched)-1].end()
	}
	return touched.excess(during) + all.in(end, to+int64(tail)).excess(after)
}
