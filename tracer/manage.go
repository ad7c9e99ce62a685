package tracer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// tracedProcess is one process of the job.
type tracedProcess struct {
	process                          *process.Process
	row                              Process
	mapped                           map[fileKey]bool // libraries already written
	linker                           *linkSet         // on the dynamic linker's hook
	rescanAt                         time.Time        // when its maps are to be read next
	rescans                          int
	restUntil                        time.Time                  // and not before: it takes long
	saidMaps, saidFiles, saidPlanned bool                       // that it is beyond a limit
	waited, planned                  time.Duration              // for its plans, and what they took
	hurry                            bool                       // at rescanAt there will be something new
	waiting                          map[fileKey]*waitingPlugin // plugins that have not made their function table

	code      uint64             // process.CodeDigest when its maps were read, 0 before
	libraries []*process.Library // of then
}

func newTracedProcess(p *process.Process, row Process) *tracedProcess {
	return &tracedProcess{process: p, row: row, mapped: map[fileKey]bool{}, waiting: map[fileKey]*waitingPlugin{}}
}

// manage follows the processes until it is time to stop.
func (s *Session) manage(ctx context.Context, life <-chan bpf.CallLifeRecord, decoded <-chan error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-decoded:
			return decodeError{err}
		case r := <-life:
			if err := s.lifeEvent(r); err != nil {
				return err
			}
			if len(life) == 0 && s.exited() {
				return nil
			}
			if bpf.CallRecordKind(r.Kind) == bpf.CallRecordKindRECORD_LINK_MAP {
				timer.Reset(s.untilTick())
			}
		case p := <-s.planned:
			if err := s.attachLate(p); err != nil {
				return err
			}
		case <-timer.C:
			if err := s.tick(); err != nil {
				return err
			}
			if s.exited() {
				return nil
			}
			timer.Reset(s.untilTick())
		}
	}
}

// untilTick is how long the manager may sleep: the governor's wait, or less
// where a process is known to have something new, or has just begun.
func (s *Session) untilTick() time.Duration {
	wait := s.governor.wait()
	for _, t := range s.processes {
		if t.row.EndedNS != nil {
			continue
		}
		least := time.Millisecond
		if !t.hurry {
			least = youngTick
		}
		wait = min(wait, max(least, time.Until(t.due())))
	}
	return wait
}

// youngTick is how often processes are looked at that load their libraries.
const youngTick = 250 * time.Millisecond

func decodeLife(raw []byte) (r bpf.CallLifeRecord, ok bool) {
	if len(raw) < binary.Size(r) {
		return r, false
	}
	_, err := binary.Decode(raw, binary.NativeEndian, &r)
	return r, err == nil
}

func (s *Session) lifeEvent(r bpf.CallLifeRecord) error {
	pid := int(r.Tgid)
	p := s.processes[pid]
	switch bpf.CallRecordKind(r.Kind) {
	case bpf.CallRecordKindRECORD_FORK:
		return s.forked(r)
	case bpf.CallRecordKindRECORD_EXEC:
		return s.execed(pid)
	case bpf.CallRecordKindRECORD_LINK_MAP:
		if p != nil && p.rescanAt.After(time.Now().Add(linkSettle)) {
			p.rescanAt, p.hurry = time.Now().Add(linkSettle), true
			p.retryPlugins()
		}
	case bpf.CallRecordKindRECORD_EXIT:
		s.ended(p, r)
	case bpf.CallRecordKindRECORD_THREAD:
		s.thread(r, nil)
	case bpf.CallRecordKindRECORD_THREAD_EXIT:
		ended := int64(r.TsNs) + s.offsetNS
		s.thread(r, &ended)
	}
	return nil
}

// linkSettle is how long after the dynamic linker's hook the maps are read:
// one dlopen calls it several times.
const linkSettle = 2 * time.Millisecond

func (s *Session) thread(r bpf.CallLifeRecord, ended *int64) {
	name := unsignedString(r.Comm[:])
	t, ok := s.threads[int32(r.Tid)]
	if !ok || ended == nil {
		t = Thread{PID: int32(r.Tgid), TID: int32(r.Tid), Name: name}
	}
	if role := process.Role(name, r.Tid == r.Tgid); role != "" {
		t.Role = &role
	}
	t.Name, t.EndedNS = name, ended
	s.threads[t.TID] = t
	s.do(func(d *decoder) { d.keep(d.sink.Thread(t)) })
}

func unsignedString(comm []int8) string {
	var b strings.Builder
	for _, c := range comm {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// tick reads the maps of the processes that are due and lets the governor act.
func (s *Session) tick() error {
	now := time.Now()
	for pid, p := range s.processes {
		if p.row.EndedNS != nil || now.Before(p.due()) {
			continue
		}
		if err := s.rescan(pid); err != nil {
			return err
		}
	}
	if err := s.yieldToForeign(); err != nil {
		return err
	}
	if now.Sub(s.lossesAt) > lossesEvery {
		s.lossesAt = now
		losses, err := s.kernel.losses()
		if err != nil {
			return err
		}
		s.stats.lose(losses)
	}
	return s.governor.step()
}

// lossesEvery is how often the counters of losses are read, for whoever watches:
// each is a system call.
const lossesEvery = time.Second

// addProcess begins to trace a process.
func (s *Session) addProcess(p *process.Process) error {
	if _, ok := s.processes[p.PID]; ok {
		return nil
	}
	s.processes[p.PID] = newTracedProcess(p, processRow(p))
	s.follow(p.PID)
	if err := s.kernel.trace(p.PID, s.options.Follow); err != nil {
		return fmt.Errorf("tracing pid %d: %w", p.PID, err)
	}
	return s.rescan(p.PID)
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
	s.do(func(d *decoder) { d.keep(d.sink.Process(row)) })
}

// forked begins to trace a child. The kernel has made it a target already; it
// maps what its parent maps.
func (s *Session) forked(r bpf.CallLifeRecord) error {
	pid := int(r.Tgid)
	if _, ok := s.processes[pid]; ok {
		return nil
	}
	p, err := process.Open(pid)
	if err != nil {
		// It came and went; what is known of it is from the records alone.
		row := Process{ID: process.ID(hostname(), pid, uint64(r.TsNs)), PID: int32(pid), StartedNS: int64(r.TsNs) + s.offsetNS}
		parent := int32(r.ParentTgid)
		row.ParentPID = &parent
		if t := s.processes[int(r.ParentTgid)]; t != nil {
			row.Exe, row.Command, row.Framework, row.FrameworkVersion = t.row.Exe, t.row.Command, t.row.Framework, t.row.FrameworkVersion
			row.PythonVersion = t.row.PythonVersion
		}
		s.processes[pid] = newTracedProcess(&process.Process{PID: pid}, row)
		s.writeProcess(row)
		return nil
	}
	return s.addProcess(p)
}

// execed: another program runs in the process now.
func (s *Session) execed(pid int) error {
	t := s.processes[pid]
	if t == nil {
		return nil
	}
	s.unmap(pid)
	if s.walks != nil {
		s.walks.execed(pid)
	}
	p, err := process.Open(pid)
	if errors.Is(err, process.ErrNotFound) || errors.Is(err, process.ErrExited) {
		return nil // it came and went
	}
	if err != nil {
		s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "process", Source: fmt.Sprint(pid), Count: 1, Detail: "after exec: " + err.Error()})
		return nil
	}
	started, waited, planned := t.row.StartedNS, t.waited, t.planned
	*t = *newTracedProcess(p, processRow(p))
	t.row.StartedNS, t.waited, t.planned = started, waited, planned
	return s.rescan(pid)
}

// unmap takes a process off every file.
func (s *Session) unmap(pid int) {
	for _, f := range s.files {
		delete(f.mapped, pid)
		for _, tier := range f.tiers() {
			if set, ok := tier[pid]; ok && pid != 0 {
				set.Close()
				delete(tier, pid)
			}
		}
	}
	if t := s.processes[pid]; t != nil {
		s.forgetPlugins(t)
		t.linker.closeIfAny()
		t.linker = nil
	}
}

func (s *Session) ended(t *tracedProcess, r bpf.CallLifeRecord) {
	if t == nil || t.row.EndedNS != nil {
		return
	}
	ended := int64(r.TsNs) + s.offsetNS
	t.row.EndedNS = &ended
	s.unmap(int(r.Tgid))
	if s.walks != nil {
		s.walks.ended(int(r.Tgid))
	}
	s.unfollow(int(r.Tgid))
	s.writeProcess(t.row)
	s.do(func(d *decoder) { d.ended(int32(r.Tgid)) })
}

// forget ends a process of whose exit the kernel may not have told, because it
// came before the process was a target.
func (s *Session) forget(pid int) {
	t := s.processes[pid]
	if t == nil || t.row.EndedNS != nil {
		return
	}
	now := time.Now().UnixNano()
	t.row.EndedNS = &now
	s.unmap(pid)
	s.unfollow(pid)
	s.writeProcess(t.row)
}
