package tracer

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// A library is planned beside the manager, which waits for it a moment: PyTorch's
// plan is there by then, and a job that was just started calls nothing that is not
// probed yet. But a file can be made to take long, and the other processes are not
// to wait for it: then the manager goes on, and attaches when the plan is there.

const (
	// planPatience is how long the manager waits for a process's plans, in all, and
	// allPatience for those of all processes: a job may fork. The latter comes back,
	// a twentieth of the time.
	planPatience = 3 * time.Second
	allPatience  = 10 * time.Second
	// planBudget is how long planning the files of one process may take before
	// its further files are left alone: five times what PyTorch with CUDA takes.
	planBudget = 30 * time.Second
)

// looked is what became of looking into a file.
type looked struct {
	plugin bool
	plan   *plan.Plan // nil of a plugin, and of a file that nothing is looked for in
	err    error
	took   time.Duration
}

// planning is a file that is looked into for longer than the manager waits.
type planning struct {
	key    process.FileID
	opened *plan.Source
	// mappers are who maps it, first the one in which it was found.
	mappers []mapper
	looked  looked
}

// mapper is a process and how it maps a file.
type mapper struct {
	pid     int
	library *process.Library
}

// patience is what is left of the manager's.
type patience struct {
	spent time.Duration
	at    time.Time
}

func (p *patience) left(now time.Time, t *tracedProcess) time.Duration {
	p.spent, p.at = max(0, p.spent-now.Sub(p.at)/20), now
	return max(0, min(planPatience-t.waited, allPatience-p.spent))
}

func (p *patience) spend(since time.Time, t *tracedProcess) {
	took := time.Since(since)
	p.spent += took
	t.waited += took
}

// look finds out what there is to probe in a file.
func (s *Session) look(opened *plan.Source, path string) (l looked) {
	began := time.Now()
	l.err = symbolize.Guard(func() {
		if l.plugin = plan.IsPlugin(opened.ELF, s.chosen.groups); !l.plugin && s.anyLives(filepath.Base(path), opened.ELF) {
			l.plan = s.plans.Plan(opened.ELF, path, s.chosen.groups)
		}
	})
	l.took = time.Since(began)
	return l
}

// planFile looks into a file that a process has mapped, and puts its probes in, now
// or, if that takes long, when attachLate is called.
func (s *Session) planFile(t *tracedProcess, key process.FileID, opened *plan.Source, library *process.Library) error {
	if t.planned > planBudget {
		opened.Close()
		if !t.saidPlanned {
			t.saidPlanned = true
			s.warn(Warning{
				TSNS: time.Now().UnixNano(), Kind: "incomplete", Source: "planning_budget", Count: 1,
				Detail: fmt.Sprintf("pid %d: finding the places for probes in its files took more than %s: its further files, from %s on, have none", t.process.PID, planBudget, library.Path),
			})
		}
		return nil
	}
	found := make(chan looked, 1)
	go func() { found <- s.look(opened, library.Path) }()
	began := time.Now()
	timer := time.NewTimer(s.patience.left(began, t))
	defer timer.Stop()
	select {
	case l := <-found:
		s.patience.spend(began, t)
		t.planned += l.took
		return s.attachLooked(t, key, opened, library, l)
	case <-timer.C:
	}
	s.patience.spend(began, t)
	p := &planning{key: key, opened: opened, mappers: []mapper{{t.process.PID, library}}}
	s.planning[key] = p
	go func() {
		p.looked = <-found
		s.planned <- p
	}()
	return nil
}

// attachLooked puts the probes of a file in that was looked into.
func (s *Session) attachLooked(t *tracedProcess, key process.FileID, opened *plan.Source, library *process.Library, l looked) error {
	switch {
	case l.err != nil:
		opened.Close()
		s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "library", Source: library.Path, Count: 1, Detail: "no probes: " + l.err.Error()})
		return nil
	case l.plugin:
		return s.newPlugin(t, key, opened, library)
	case l.plan == nil:
		opened.Close()
		return nil
	}
	return s.newFile(key, opened, l.plan, t.process.PID, library)
}

// attachLate puts the probes of a file in whose plan took longer than the manager
// waits.
func (s *Session) attachLate(p *planning) error {
	delete(s.planning, p.key)
	attached := false
	for _, m := range p.mappers {
		t := s.processes[m.pid]
		if t == nil {
			continue
		}
		if !attached {
			t.planned += p.looked.took
		}
		if t.row.EndedNS != nil {
			continue
		}
		switch file := s.files[p.key]; {
		case !attached:
			attached = true
			if err := s.attachLooked(t, p.key, p.opened, m.library, p.looked); err != nil {
				return err
			}
		case file != nil:
			file.mapped[m.pid] = m.library
			if err := s.attachNewcomer(file, m.pid); err != nil {
				return err
			}
		default: // a plugin, or nothing to probe: to be looked at by itself
			delete(t.seen.paths, p.key)
		}
	}
	if !attached {
		p.opened.Close()
	}
	return nil
}
