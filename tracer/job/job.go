// Package job follows the processes that are traced: how they begin, load libraries,
// become another program and end. It owns what is known of each, and tells the others:
// package probes which file which process maps, the decoder what there is a row of, and
// whoever keeps something of a process when that is gone. A file that a process maps is
// looked into here, with package plan, and what there is to probe in it is handed on.
//
// All of it belongs to one goroutine, the manager's. Files are looked into on others,
// which share nothing with it but the channel that Planned returns.
//
// The package is no part of the public API: it may change with any version.
package job

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probes"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// Config is what a Job stands on.
type Config struct {
	Kernel    *kernel.Programs
	Detaching *kernel.Detacher
	Processes Processes // none yet: who else asks for them has the same map
	Probes    *probes.Set
	Walks     *stacks.Walks // nil: nothing takes stacks
	Groups    []spec.Group
	Filter    *filter.Filter
	Plans     plan.Cache
	// Named are the processes that the user named; Follow says that children are traced too.
	Named    []int
	Follow   bool
	OffsetNS int64 // Unix epoch minus CLOCK_MONOTONIC
	Keepers  []Keeper
	// AllowUserMounts has probes put into files that a user without privileges may serve.
	AllowUserMounts bool

	Decoder Decoder
	Warn    func(event.Warning)
}

// Keeper keeps something of each process.
type Keeper interface {
	Began(pid int)
	// Mapped tells what a process maps now.
	Mapped(pid int, libraries []*process.Library)
	// Ended comes when a process is not traced any more; the last records of it are in
	// the rings yet.
	Ended(pid int)
}

// Decoder gets what its rows need to know. It takes note on its own goroutine, in the
// order in which it came.
type Decoder interface {
	Process(row event.Process)
	ShortProcesses(rows []event.ShortProcess)
	Thread(row event.Thread)
	ThreadEnded(pid, tid int32)
	// Library notes what a process maps; again: its row has been written.
	Library(row event.Library, again bool)
	Remapped(pid int)
	Ended(pid int)
	// Killed notes that the kernel kills a process for want of memory.
	Killed(pid int, ns int64)
	// Left makes rows of scopes whose end will not be seen.
	Left(open []kernel.OpenCall)
}

// Job are the processes that are traced.
type Job struct {
	config    Config
	processes Processes
	lives
	youth
	libraries
	planner
	plugins
	asked
}

// New makes a Job without processes.
func New(c Config) *Job {
	j := &Job{config: c, processes: c.Processes}
	j.lives.job, j.libraries.job, j.plugins.job = j, j, j
	j.youth = newYouth(j)
	j.planner = newPlanner(j)
	j.asked = newAsked(c.Groups)
	return j
}

// Expect waits for a process to exec the job.
func (j *Job) Expect(pid int) error {
	if err := j.config.Probes.CheckReturns(pid); err != nil {
		return err
	}
	j.began(pid)
	ticks, err := process.StartTicks(pid)
	if err != nil {
		return err
	}
	t := newTraced(&process.Process{PID: pid, StartTicks: ticks}, event.Process{PID: int32(pid), StartedNS: time.Now().UnixNano()})
	t.maps.next = time.Now().Add(365 * 24 * time.Hour)
	j.processes[pid] = t
	return j.config.Kernel.Trace(t.process, j.config.Follow)
}

// Begin begins to trace a process that the user named, and its children: from then on it can be sampled. No
// file that it maps has been looked into yet: that can take seconds, and Add does it.
func (j *Job) Begin(p *process.Process) error { return j.family(p, j.begin) }

// Add puts the probes into the files of a process that the user named, and of its children.
func (j *Job) Add(p *process.Process) error { return j.family(p, j.add) }

// family does something for a process that the user named, and its children. Without the only
// one there is nothing to record; without one of many the recording goes on.
func (j *Job) family(p *process.Process, do func(*process.Process) error) error {
	if err := do(p); err != nil {
		if len(j.config.Named) == 1 || errors.Is(err, features.ErrNotPermitted) {
			return err
		}
		j.drop(j.processes[p.PID], err)
	}
	if !j.config.Follow {
		return nil
	}
	children, err := process.Children(p.PID)
	if err != nil {
		return err
	}
	for _, pid := range children {
		child, err := process.Open(pid)
		if err != nil {
			continue
		}
		if err := do(child); err != nil {
			j.drop(j.processes[pid], err)
		}
	}
	return nil
}

// Tick reads the maps of the processes that are due.
func (j *Job) Tick(now time.Time) {
	j.youth.tick(now)
	for pid, t := range j.processes {
		if now.Before(t.due()) {
			continue
		}
		if t.overdue(now) {
			j.forget(pid)
			continue
		}
		if err := j.rescan(pid); err != nil {
			j.drop(t, err)
		}
	}
}

// youngTick is how often processes are looked at that load their libraries.
const youngTick = 250 * time.Millisecond

// Wait is how long the next Tick may wait: less where a process is known to have something
// new, or has just begun.
func (j *Job) Wait() time.Duration {
	wait := max(time.Millisecond, time.Until(j.youth.at))
	for _, t := range j.processes {
		least := time.Millisecond
		if !t.maps.hurry {
			least = youngTick
		}
		wait = min(wait, max(least, time.Until(t.due())))
	}
	return wait
}

// Exited reports whether every traced process has ended.
func (j *Job) Exited() bool {
	if len(j.processes) == 0 {
		j.Adopt()
	}
	return len(j.processes) == 0
}

// Processes are those that are traced, by their pids: what is known of the Job below it.
// They belong to its goroutine.
type Processes map[int]*traced

// Traced reports whether a process is.
func (p Processes) Traced(pid int) bool { return p[pid] != nil }

// Alive reports whether a process is traced, and not exiting.
func (p Processes) Alive(pid int) bool {
	t := p[pid]
	return t != nil && t.process.Alive()
}

// Row is what is known of one that is traced.
func (j *Job) Row(pid int) (row event.Process, traced bool) {
	if t := j.processes[pid]; t != nil {
		return t.row, true
	}
	return event.Process{}, false
}

// Processes counts those that are traced.
func (j *Job) Processes() int { return len(j.processes) }

// PIDs are those of the processes.
func (j *Job) PIDs() []int { return slices.Sorted(maps.Keys(j.processes)) }

// Rows are those of the processes, by their pids.
func (j *Job) Rows() []event.Process {
	rows := make([]event.Process, 0, len(j.processes))
	for _, t := range j.processes {
		rows = append(rows, t.row)
	}
	slices.SortFunc(rows, func(a, b event.Process) int { return int(a.PID) - int(b.PID) })
	return rows
}

// Watched are the pids of the processes that can hang: with a framework or a Python interpreter, or
// else all of the job.
func (j *Job) Watched() []int { return j.processes.watched() }

// mostWatched processes of a job without Python are watched.
const mostWatched = 64

func (p Processes) watched() (pids []int) {
	for pid, t := range p {
		if t.row.Framework != nil || t.row.PythonVersion != nil {
			pids = append(pids, pid)
		}
	}
	if len(pids) > 0 {
		return pids
	}
	pids = slices.Sorted(maps.Keys(p))
	return pids[:min(len(pids), mostWatched)]
}

// WithFramework are the pids of the processes that have a framework.
func (p Processes) WithFramework() (pids []int) {
	for pid, t := range p {
		if t.row.Framework != nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Unhook takes out the probes that report the libraries of the processes.
func (j *Job) Unhook() {
	for _, t := range j.processes {
		j.unhook(t)
	}
}

// unhook does it for one.
func (j *Job) unhook(t *traced) {
	j.forgetPlugins(t)
	j.config.Detaching.Close(t.linker)
	t.linker = nil
}

func (j *Job) began(pid int) {
	for _, k := range j.config.Keepers {
		k.Began(pid)
	}
}

// warnOf says something of a process.
func (j *Job) warnOf(kind, source string, count int, format string, arguments ...any) {
	j.config.Warn(event.Warning{TSNS: time.Now().UnixNano(), Kind: kind, Source: source, Count: int64(count), Detail: fmt.Sprintf(format,
		arguments...)})
}
