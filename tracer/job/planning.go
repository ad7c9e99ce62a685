package job

import (
	"path/filepath"
	"runtime"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/threadclock"
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
	// planBudget is how much of the CPU planning the files of one process may take before
	// its further files are left alone: five times what PyTorch with CUDA takes.
	planBudget = 30 * time.Second
)

// looked is what became of looking into a file.
type looked struct {
	plugin bool
	plan   *plan.Plan // nil of a plugin, and of a file that nothing is looked for in
	err    error
	took   time.Duration // of the CPU
}

// planning is a file that is looked into for longer than the manager waits.
type planning struct {
	opened *plan.Source
	// mappers are who maps it, first the one in which it was found.
	mappers []mapper
	looked  looked
}

// planner looks into the files that are found.
type planner struct {
	job      *Job
	underway map[process.FileID]*planning // what is looked into for longer than the manager waits
	done     chan *planning
	patience patience
	backlog
}

func newPlanner(j *Job) planner {
	return planner{job: j, underway: map[process.FileID]*planning{}, done: make(chan *planning, process.MaxLibraries), backlog: newBacklog(j)}
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

func (p *patience) left(now time.Time, t *traced) time.Duration {
	p.spent, p.at = max(0, p.spent-now.Sub(p.at)/20), now
	return max(0, min(planPatience-t.plans.waited, allPatience-p.spent))
}

func (p *patience) spend(since time.Time, t *traced) {
	took := time.Since(since)
	p.spent += took
	t.plans.waited += took
}

// look finds out what there is to probe in a file.
func (p *planner) look(opened *plan.Source, path string) (l looked) {
	runtime.LockOSThread() // its time is that of this
	defer runtime.UnlockOSThread()
	began := threadclock.Now()
	elf.Sparing(func() {
		l.err = elf.Guard(func() {
			if l.plugin = plan.IsPlugin(opened.ELF, p.job.config.Groups); !l.plugin && p.anyLives(filepath.Base(path), opened.ELF) {
				l.plan = p.job.config.Plans.Plan(opened.ELF, path, p.job.config.Groups)
			}
		})
	})
	l.took = threadclock.Now() - began
	if l.plan != nil {
		l.took += l.plan.Used
	}
	return l
}

// anyLives reports whether a function that is probed is in a file of this name.
func (p *planner) anyLives(base string, e *elf.File) bool {
	for _, g := range p.job.config.Groups {
		for i := range g.Functions {
			if g.Functions[i].Lives(base, e) {
				return true
			}
		}
	}
	return false
}

// planFile looks into a file that a process has mapped, and puts its probes in, now
// or, if that takes long, when AttachPlanned is called.
func (p *planner) planFile(t *traced, opened *plan.Source, library *process.Library) error {
	if t.plans.took > planBudget {
		opened.Close()
		if !t.said.plans {
			t.said.plans = true
			p.job.warnOf("incomplete", "planning_budget", 1, "pid %d: finding the places for probes in its files took more than %s of a CPU: its "+
				"further files, from %s on, have none",
				t.process.PID, planBudget, library.Path)
		}
		return nil
	}
	found := make(chan looked, 1)
	go func() { found <- p.look(opened, library.Path) }()
	began := time.Now()
	timer := time.NewTimer(p.patience.left(began, t))
	defer timer.Stop()
	select {
	case l := <-found:
		p.patience.spend(began, t)
		t.plans.took += l.took
		return p.attachLooked(t, opened, library, l)
	case <-timer.C:
	}
	p.patience.spend(began, t)
	late := &planning{opened: opened, mappers: []mapper{{t.process.PID, library}}}
	p.underway[library.ID()] = late
	go func() {
		late.looked = <-found
		p.done <- late
	}()
	return nil
}

// attachLooked puts the probes of a file in that was looked into.
func (p *planner) attachLooked(t *traced, opened *plan.Source, library *process.Library, l looked) error {
	switch {
	case l.err != nil:
		opened.Close()
		if t.said.isNewReason(l.err) {
			p.job.warnOf("library", library.Path, 1, "no probes: %v", l.err)
		}
		return nil
	case l.plugin:
		return p.job.newPlugin(t, opened, library)
	case l.plan == nil:
		opened.Close()
		return nil
	}
	if p.job.asked.planned(l.plan); l.plan.OnlyAsked && len(l.plan.Probes) == 0 {
		opened.Close() // whatever was asked for is in another file
		return nil
	}
	return p.job.probe(t, opened, l.plan, library)
}

// Planned gives what AttachPlanned takes: files whose plan took longer than the manager
// waits.
func (p *planner) Planned() <-chan *planning { return p.done }

// AttachPlanned puts the probes of such a file in.
func (p *planner) AttachPlanned(late *planning) error {
	id := late.mappers[0].library.ID()
	delete(p.underway, id)
	attached := false
	for _, m := range late.mappers {
		t := p.job.processes[m.pid]
		if t == nil {
			continue
		}
		if !attached {
			t.plans.took += late.looked.took
		}
		if t.row.EndedNS != nil {
			continue
		}
		switch file := p.job.config.Probes.Files()[id]; {
		case !attached:
			attached = true
			if err := p.attachLooked(t, late.opened, m.library, late.looked); err != nil {
				return err
			}
		case file != nil:
			if err := p.job.config.Probes.Join(file, m.pid, m.library); err != nil {
				return err
			}
		default: // a plugin, or nothing to probe: to be looked at by itself
			delete(t.seen.paths, id)
		}
	}
	if !attached {
		late.opened.Close()
	}
	return nil
}
