package job

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// lives follow how processes begin, become another program and end.
type lives struct{ job *Job }

// Event follows what the kernel tells of a process. What goes wrong with one
// costs the recording that one.
func (l *lives) Event(r *bpf.CallLifeRecord) {
	t := l.of(r)
	switch bpf.CallRecordKind(r.Kind) {
	case bpf.CallRecordKindRECORD_FORK:
		l.forked(t, r)
	case bpf.CallRecordKindRECORD_YOUNG:
		l.job.youth.told(time.Now())
	case bpf.CallRecordKindRECORD_EXEC:
		l.execed(t, r)
	case bpf.CallRecordKindRECORD_LINK_MAP:
		if t != nil {
			t.linked(time.Now())
		}
	case bpf.CallRecordKindRECORD_OUT_OF_MEMORY:
		l.killed(t, r)
	case bpf.CallRecordKindRECORD_EXIT:
		if t != nil {
			t.row.ExitCode, t.row.ExitSignal = exit(r.ExitCode)
		}
		l.ended(t, int64(r.TsNs)+l.job.config.OffsetNS)
	case bpf.CallRecordKindRECORD_THREAD:
		l.thread(t, r, nil)
	case bpf.CallRecordKindRECORD_THREAD_EXIT:
		ended := int64(r.TsNs) + l.job.config.OffsetNS
		l.thread(t, r, &ended)
	}
}

// exit is how a process ended, of what wait(2) says of it.
func exit(status int32) (code, signal *int32) {
	if n := status & 0x7f; n != 0 {
		return nil, &n
	}
	n := status >> 8 & 0xff
	return &n, nil
}

// of is the process that a record speaks of, nil where it is none of those
// that are traced now. A pid that has another start by now is another process's:
// the end of the one before was not told, or is still to come.
func (l *lives) of(r *bpf.CallLifeRecord) *traced {
	t := l.job.processes[int(r.Tgid)]
	switch {
	case t == nil:
		return nil
	case t.process.StartTicks < r.ProcessTicks:
		l.ended(t, int64(r.TsNs)+l.job.config.OffsetNS)
		return nil
	case t.process.StartTicks > r.ProcessTicks:
		return nil
	}
	return t
}

// add begins to trace a process, if that was not done yet, and puts the probes into what it maps.
func (l *lives) add(p *process.Process) error {
	switch t := l.job.processes[p.PID]; {
	case t == nil:
		if err := l.trace(p); err != nil {
			return err
		}
	case !t.begun:
		return nil
	default:
		t.begun = false
	}
	return l.job.rescan(p.PID)
}

// begin begins to trace a process and tells the walks of its code, which is all that samples need.
func (l *lives) begin(p *process.Process) error {
	if l.job.processes.Traced(p.PID) {
		return nil
	}
	if err := l.trace(p); err != nil {
		return err
	}
	l.job.processes[p.PID].begun = true
	if walks := l.job.config.Walks; walks != nil {
		if mapped, err := p.Libraries(); err == nil { // else rescan will say why
			walks.Mapped(p, mapped)
		}
	}
	return nil
}

// trace makes a process a target.
func (l *lives) trace(p *process.Process) error {
	l.job.processes[p.PID] = newTraced(p, processRow(p))
	l.job.began(p.PID)
	if by := features.Debugger(p.PID); by != 0 {
		l.job.warnOf("attach", fmt.Sprint(p.PID), 1, "pid %d is being traced by pid %d: %s", p.PID, by, features.DebuggerHarm)
	}
	if err := l.job.config.Kernel.Trace(p, l.job.config.Follow); err != nil {
		return fmt.Errorf("tracing pid %d: %w", p.PID, err)
	}
	return nil
}

// addChild is add for a process that was not chosen: without it the
// recording goes on.
func (l *lives) addChild(p *process.Process) {
	if err := l.add(p); err != nil {
		l.drop(l.job.processes[p.PID], err)
	}
}

// forked begins to trace a child that the kernel has made a target already: at its fork, or
// when it called what is probed.
func (l *lives) forked(t *traced, r *bpf.CallLifeRecord) {
	if t != nil {
		return // found in /proc before
	}
	l.job.youth.began()
	pid := int(r.Tgid)
	if p, err := process.Open(pid); err == nil && p.StartTicks == r.ProcessTicks {
		l.addChild(p)
		return
	}
	// It came and went; what is known of it is from the records alone.
	gone := &process.Process{PID: pid, StartTicks: r.ProcessTicks}
	l.addUnread(gone, l.rowOf(gone, int64(r.TsNs), int32(r.ParentTgid), r.Execed != 0, unsignedString(r.Comm[:])))
}

// rowOf is what is known of a process without a look at it. Until it executes another program
// it is its parent's copy.
func (l *lives) rowOf(p *process.Process, startNS int64, parent int32, executed bool, command string) event.Process {
	row := event.Process{ID: process.ID(hostname(), p.PID, p.StartTicks), PID: int32(p.PID), StartedNS: startNS + l.job.config.OffsetNS}
	row.ParentPID = &parent
	if executed {
		row.Command = command
	} else if t := l.job.processes[int(parent)]; t != nil {
		row.Exe, row.Command, row.Framework, row.FrameworkVersion = t.row.Exe, t.row.Command, t.row.Framework, t.row.FrameworkVersion
		row.PythonVersion = t.row.PythonVersion
	}
	return row
}

// addUnread follows a target that cannot be read.
func (l *lives) addUnread(p *process.Process, row event.Process) {
	l.job.processes[p.PID] = newTraced(p, row)
	l.job.config.Decoder.Process(row)
}

// execed: another program runs in the process now.
func (l *lives) execed(t *traced, r *bpf.CallLifeRecord) {
	if t == nil {
		return
	}
	pid := t.process.PID
	l.unmap(t)
	if walks := l.job.config.Walks; walks != nil {
		walks.Execed(pid)
	}
	p, err := process.Open(pid)
	if errors.Is(err, process.ErrNotFound) || errors.Is(err, process.ErrExited) || err == nil && p.StartTicks != t.process.StartTicks {
		// It came and went. What it was before the exec, it was no longer.
		t.row.Exe, t.row.Command = "", unsignedString(r.Comm[:])
		t.row.Framework, t.row.FrameworkVersion, t.row.PythonVersion = nil, nil, nil
		l.job.config.Decoder.Process(t.row)
		return
	}
	if err != nil {
		l.job.warnOf("process", fmt.Sprint(pid), 1, "after exec: %v", err)
		return
	}
	started, threads, plans := t.row.StartedNS, t.threads, t.plans
	*t = *newTraced(p, processRow(p))
	t.row.StartedNS, t.threads, t.plans = started, threads, plans
	if err := l.job.rescan(pid); err != nil {
		l.drop(t, err)
	}
}

// killed: the kernel kills it, since there is no memory left. Its end is reported when it comes.
func (l *lives) killed(t *traced, r *bpf.CallLifeRecord) {
	if t == nil {
		return
	}
	l.job.config.Decoder.Killed(t.process.PID, int64(r.TsNs)+l.job.config.OffsetNS)
	name := make([]byte, 0, len(r.Comm))
	for _, c := range r.Comm {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	l.job.warnOf("process", fmt.Sprint(t.process.PID), 1, "the kernel killed it, since there was no memory left when %q (pid %d) "+
		"asked for some", name, r.ParentTgid)
}

// unmap takes a process off every file.
func (l *lives) unmap(t *traced) {
	l.job.config.Probes.Unmap(t.process.PID, nil)
	l.job.unhook(t)
}

// ended writes the end of a process and lets go of what was kept of it.
func (l *lives) ended(t *traced, endedNS int64) {
	if t == nil || t.row.EndedNS != nil {
		return
	}
	t.row.EndedNS = &endedNS
	l.job.config.Kernel.Untrace(t.process) // put there when it was exiting, it would stay
	l.endThreads(t)
	l.job.config.Decoder.Process(t.row)
	l.letGo(t)
}

// letGo ends the tracing of a process. Its last calls may still be in the rings:
// what is known of it is forgotten when they have been read.
func (l *lives) letGo(t *traced) {
	pid, c := t.process.PID, &l.job.config
	l.unmap(t)
	if c.Walks != nil {
		c.Walks.Ended(pid)
	}
	for _, k := range c.Keepers {
		k.Ended(pid)
	}
	if l.job.processes[pid] == t {
		delete(l.job.processes, pid)
	}
	c.Decoder.Left(c.Kernel.TakeScopes(func(o *kernel.OpenCall) bool { return o.Tgid == uint32(pid) }))
	c.Decoder.Ended(pid)
}

// forget ends a process of whose exit the kernel has not told: it came before the
// process was a target, or its record was lost.
func (l *lives) forget(pid int) {
	if t := l.job.processes[pid]; t != nil {
		l.ended(t, time.Now().UnixNano())
	}
}

// drop ends the recording of one process that goes on, and of no other.
func (l *lives) drop(t *traced, why error) {
	if t == nil {
		return
	}
	if !t.process.Alive() {
		return // its exit is on the way, and why it could not be read
	}
	l.job.warnOf("process", fmt.Sprint(t.process.PID), 1, "not recorded from here on: %v", why)
	l.job.config.Kernel.Untrace(t.process)
	l.job.config.Decoder.Process(t.row)
	l.letGo(t)
}

// Adopt begins to trace those that the kernel traces and of whose beginning
// nothing was heard: the ring was full.
func (l *lives) Adopt() {
	l.job.youth.takeUpAll()
	for _, pid := range l.job.config.Kernel.TargetPIDs() {
		if l.job.processes.Traced(pid) {
			continue
		}
		if p, err := process.Open(pid); err == nil {
			l.addChild(p)
		}
	}
}

func processRow(p *process.Process) event.Process {
	row := event.Process{
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

func hostname() string {
	name, _ := os.Hostname()
	return name
}
