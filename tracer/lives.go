package tracer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/waits"
)

// The lives of the traced processes: how they begin, become another program and
// end. A process is a pid and a start; the pid alone is used again.

// lifeEvent follows what the kernel tells of a process. What goes wrong with one
// costs the recording that one.
func (s *Session) lifeEvent(r *bpf.CallLifeRecord) {
	t := s.lifeOf(r)
	switch bpf.CallRecordKind(r.Kind) {
	case bpf.CallRecordKindRECORD_FORK:
		s.forked(t, r)
	case bpf.CallRecordKindRECORD_EXEC:
		s.execed(t)
	case bpf.CallRecordKindRECORD_LINK_MAP:
		if t != nil {
			t.linked(time.Now())
		}
	case bpf.CallRecordKindRECORD_EXIT:
		s.ended(t, int64(r.TsNs)+s.offsetNS)
	case bpf.CallRecordKindRECORD_THREAD:
		s.thread(t, r, nil)
	case bpf.CallRecordKindRECORD_THREAD_EXIT:
		ended := int64(r.TsNs) + s.offsetNS
		s.thread(t, r, &ended)
	}
}

// linkSettle is how long after the dynamic linker's hook the maps are read:
// one dlopen calls it several times.
const linkSettle = 2 * time.Millisecond

// linked notes that the dynamic linker of a process has loaded something: its maps are
// read soon, and no later for all that it loads until then.
func (t *tracedProcess) linked(now time.Time) {
	soon := now.Add(linkSettle)
	if t.hurry && !t.rescanAt.After(soon) {
		return
	}
	if t.rescanAt.After(soon) {
		t.rescanAt = soon
	}
	t.hurry = true
	t.retryPlugins()
}

// lifeOf is the process that a record speaks of, nil where it is none of those
// that are traced now. A pid that has another start by now is another process's:
// the end of the one before was not told, or is still to come.
func (s *Session) lifeOf(r *bpf.CallLifeRecord) *tracedProcess {
	t := s.processes[int(r.Tgid)]
	switch {
	case t == nil:
		return nil
	case t.process.StartTicks < r.ProcessTicks:
		s.ended(t, int64(r.TsNs)+s.offsetNS)
		return nil
	case t.process.StartTicks > r.ProcessTicks:
		return nil
	}
	return t
}

// addProcess begins to trace a process.
func (s *Session) addProcess(p *process.Process) error {
	if _, ok := s.processes[p.PID]; ok {
		return nil
	}
	s.processes[p.PID] = newTracedProcess(p, processRow(p))
	s.follow(p.PID)
	if err := s.kernel.Trace(p, s.options.Follow); err != nil {
		return fmt.Errorf("tracing pid %d: %w", p.PID, err)
	}
	return s.rescan(p.PID)
}

// addChild is addProcess for a process that nobody named: without it the
// recording goes on.
func (s *Session) addChild(p *process.Process) {
	if err := s.addProcess(p); err != nil {
		s.drop(s.processes[p.PID], err)
	}
}

// forked begins to trace a child. The kernel has made it a target already; it
// maps what its parent maps.
func (s *Session) forked(t *tracedProcess, r *bpf.CallLifeRecord) {
	if t != nil {
		return // found in /proc before
	}
	pid := int(r.Tgid)
	if p, err := process.Open(pid); err == nil && p.StartTicks == r.ProcessTicks {
		s.addChild(p)
		return
	}
	// It came and went; what is known of it is from the records alone.
	row := Process{ID: process.ID(hostname(), pid, r.ProcessTicks), PID: int32(pid), StartedNS: int64(r.TsNs) + s.offsetNS}
	parent := int32(r.ParentTgid)
	row.ParentPID = &parent
	if t := s.processes[int(r.ParentTgid)]; t != nil {
		row.Exe, row.Command, row.Framework, row.FrameworkVersion = t.row.Exe, t.row.Command, t.row.Framework, t.row.FrameworkVersion
		row.PythonVersion = t.row.PythonVersion
	}
	s.processes[pid] = newTracedProcess(&process.Process{PID: pid, StartTicks: r.ProcessTicks}, row)
	s.writeProcess(row)
}

// execed: another program runs in the process now.
func (s *Session) execed(t *tracedProcess) {
	if t == nil {
		return
	}
	pid := t.process.PID
	s.unmap(t)
	if s.walks != nil {
		s.walks.Execed(pid)
	}
	p, err := process.Open(pid)
	if errors.Is(err, process.ErrNotFound) || errors.Is(err, process.ErrExited) || err == nil && p.StartTicks != t.process.StartTicks {
		return // it came and went
	}
	if err != nil {
		s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "process", Source: fmt.Sprint(pid), Count: 1, Detail: "after exec: " + err.Error()})
		return
	}
	started, threads, waited, planned := t.row.StartedNS, t.threads, t.waited, t.planned
	*t = *newTracedProcess(p, processRow(p))
	t.row.StartedNS, t.threads, t.waited, t.planned = started, threads, waited, planned
	s.orDrop(t, s.rescan(pid))
}

// mayHookLinker reports whether a process may have a hook of its own on the dynamic
// linker. Those that the user named have one; their children while there are few.
func (s *Session) mayHookLinker(t *tracedProcess) bool {
	if slices.Contains(s.options.PIDs, t.process.PID) || slices.Contains(s.options.Starting, t.process.PID) {
		return true
	}
	hooks := 0
	for _, other := range s.processes {
		if other.linker != nil {
			hooks++
		}
	}
	if hooks < MaxLinkerHooks {
		return true
	}
	if !t.unhooked {
		t.unhooked = true
		s.do(func(d *decoder) { d.unhooked++ })
	}
	return false
}

// unmap takes a process off every file.
func (s *Session) unmap(t *tracedProcess) {
	for _, f := range s.files {
		s.unmapFile(f, t.process.PID)
	}
	s.forgetPlugins(t)
	s.detaching.Close(t.linker)
	t.linker = nil
}

// ended writes the end of a process and lets go of what was kept of it.
func (s *Session) ended(t *tracedProcess, endedNS int64) {
	if t == nil || t.row.EndedNS != nil {
		return
	}
	t.row.EndedNS = &endedNS
	s.kernel.Untrace(t.process) // put there when it was exiting, it would stay
	s.endThreads(t)
	s.writeProcess(t.row)
	s.letGo(t)
}

// letGo ends the tracing of a process. Its last calls may still be in the rings:
// what is known of it is forgotten when they have been read.
func (s *Session) letGo(t *tracedProcess) {
	pid := t.process.PID
	s.unmap(t)
	if s.walks != nil {
		s.walks.Ended(pid)
	}
	s.classes.ended(pid)
	s.stubs.Ended(pid)
	s.unfollow(pid)
	if s.processes[pid] == t {
		delete(s.processes, pid)
	}
	s.leaveScopes(s.kernel.TakeScopes(func(c *kernel.OpenCall) bool { return c.Tgid == uint32(pid) }))
	s.do(func(d *decoder) { d.ended(int32(pid)) })
}

// forget ends a process of whose exit the kernel has not told: it came before the
// process was a target, or its record was lost.
func (s *Session) forget(pid int) {
	t := s.processes[pid]
	if t == nil {
		return
	}
	s.ended(t, time.Now().UnixNano())
}

// exitDelay is how long after a process has gone the record of its exit is waited for.
const exitDelay = 2 * time.Second

// overdue reports whether a process has been gone for longer than the record of
// its exit takes.
func (s *Session) overdue(t *tracedProcess, now time.Time) bool {
	if t.process.Alive() {
		return false
	}
	if t.goneAt.IsZero() {
		t.goneAt = now
	}
	return now.Sub(t.goneAt) > exitDelay
}

// drop ends the recording of one process that goes on, and of no other.
func (s *Session) drop(t *tracedProcess, why error) {
	if t == nil {
		return
	}
	if !t.process.Alive() {
		return // its exit is on the way, and why it could not be read
	}
	s.warn(Warning{
		TSNS: time.Now().UnixNano(), Kind: "process", Source: fmt.Sprint(t.process.PID), Count: 1,
		Detail: "not recorded from here on: " + why.Error(),
	})
	s.kernel.Untrace(t.process)
	s.writeProcess(t.row)
	s.letGo(t)
}

// orDrop drops a process with which something went wrong.
func (s *Session) orDrop(t *tracedProcess, err error) {
	if err != nil {
		s.drop(t, err)
	}
}

// adopt begins to trace those that the kernel traces and of whose beginning
// nothing was heard: the ring was full.
func (s *Session) adopt() {
	for _, pid := range s.kernel.TargetPIDs() {
		if _, ok := s.processes[pid]; ok {
			continue
		}
		if p, err := process.Open(pid); err == nil {
			s.addChild(p)
		}
	}
}

// exited reports whether every traced process has ended.
func (s *Session) exited() bool {
	if len(s.processes) == 0 {
		s.adopt()
	}
	return len(s.processes) == 0
}

func processRow(p *process.Process) Process {
	row := Process{
		ID: process.ID(hostname(), p.PID, p.StartTicks), PID: int32(p.PID), StartedNS: p.StartedNS,
		Exe: p.Exe, Command: p.Command, JobID: p.Job.JobID, Rank: p.Job.Rank, LocalRank: p.Job.LocalRank, WorldSize: p.Job.WorldSize,
		ContainerID: present(p.ContainerID), Cgroup: present(p.Cgroup),
	}
	parent := int32(p.ParentPID)
	row.ParentPID = &parent
	if p.NSPID != nil {
		ns := int32(*p.NSPID)
		row.NSPID = &ns
	}
	return row
}

func present(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (s *Session) writeProcess(row Process) {
	job := waits.Job{WorldSize: row.WorldSize}
	if row.JobID != nil {
		job.ID = *row.JobID
	}
	s.do(func(d *decoder) {
		if row.EndedNS == nil {
			d.waits.Process(row.PID, job)
		}
		d.keep(d.sink.Process(row))
	})
}
