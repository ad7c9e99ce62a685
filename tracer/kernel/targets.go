package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// errTooManyProcesses: the kernel's table of traced processes is full.
var errTooManyProcesses = errors.New("as many processes are traced already as --limit processes allows")

// errTooManyOfUser: of the processes in it, one user's are as many as those may be.
var errTooManyOfUser = errors.New("as many processes are traced already as one user may have: three quarters of --limit processes")

// targetOf is a process as the kernel's table knows it: a pid is used again, a pid
// and a start are not.
func targetOf(p *process.Process, follow bool) bpf.CallTarget {
	t := bpf.CallTarget{StartTicks: kernelTicks(p.StartTicks), User: process.User(p.PID)}
	if follow {
		t.Follow = 1
	}
	return t
}

// kernelTicks are a start's without what a time namespace adds, localTicks the
// other way round.
func kernelTicks(local uint64) uint64 { return local - uint64(process.NamespaceTicks()) }

func localTicks(kernel uint64) uint64 { return kernel + uint64(process.NamespaceTicks()) }

// targets are the programs' table of the processes that are traced.
type targets struct {
	call   *ebpf.Collection
	shares *shares
}

// Trace puts a process into the kernel's table. One that the kernel has put there
// itself, when it was forked, keeps what has been counted for it since. Where the
// process has ended meanwhile it is not left in the table, and the error wraps
// process.ErrExited.
func (k *targets) Trace(p *process.Process, follow bool) error {
	targets, want := k.call.Maps["targets"], targetOf(p, follow)
	var there bpf.CallTarget
	known := targets.Lookup(uint32(p.PID), &there) == nil
	if known && there.StartTicks == want.StartTicks {
		return nil
	}
	if k.hasShare(want.User) {
		return errTooManyOfUser
	}
	if err := k.note(p.PID); err != nil {
		return err
	}
	if known && targets.Delete(uint32(p.PID)) == nil { // the end of the one before was not told
		k.shares.change(there.User, bpf.CallShareSHARE_PROCESSES, -1)
	}
	err := targets.Update(uint32(p.PID), want, ebpf.UpdateNoExist)
	switch {
	case err == nil:
		k.shares.change(want.User, bpf.CallShareSHARE_PROCESSES, 1)
	case errors.Is(err, ebpf.ErrKeyExist):
		err = nil // the kernel was faster
	}
	switch {
	case full(err):
		return errTooManyProcesses
	case err != nil:
		return fmt.Errorf("putting it into the kernel's table of processes: %w", err)
	case !p.Alive(): // an exit that came before is not reported: the pid may be another's
		k.Untrace(p)
		return &process.Error{PID: p.PID, Reason: process.ErrExited}
	}
	return nil
}

// hasShare reports whether a user has as many processes as one may.
func (k *targets) hasShare(user uint32) bool {
	for _, of := range k.shares.Of(bpf.CallShareSHARE_PROCESSES) {
		if of.User == user {
			return of.Taken >= userPart(int(k.call.Maps["targets"].MaxEntries()))
		}
	}
	return false
}

// note has the programs look for a process in the table (maybe_targets in bpf/maps.h).
func (k *targets) note(pid int) error {
	memory, err := k.call.Maps[".data.targets"].Memory()
	if err == nil {
		_, err = memory.WriteAt([]byte{1}, int64(pid&0xffff))
	}
	if err != nil {
		return fmt.Errorf("noting a process in the kernel: %w", err)
	}
	return nil
}

// Untrace takes a process out of the kernel's tables. What was put there for the
// next process of the pid stays.
func (k *targets) Untrace(p *process.Process) {
	pid := uint32(p.PID)
	var there bpf.CallTarget
	targets := k.call.Maps["targets"]
	if targets.Lookup(pid, &there) != nil || there.StartTicks != kernelTicks(p.StartTicks) {
		return
	}
	if targets.Delete(pid) == nil {
		k.shares.change(there.User, bpf.CallShareSHARE_PROCESSES, -1)
	}
	k.untraceThreads(pid)
}

// untraceThreads takes the threads of a process that goes on out of the table:
// the call programs take an entry there for proof that its process is traced.
func (k *targets) untraceThreads(pid uint32) {
	var tid uint32
	gone := map[uint32]uint32{} // the user that each is charged to
	var state bpf.CallThreadState
	threads := k.call.Maps["threads"]
	for it := threads.Iterate(); it.Next(&tid, &state); {
		if state.Tgid == pid {
			gone[tid] = state.User
		}
	}
	for tid, user := range gone {
		if threads.Delete(tid) == nil {
			k.shares.change(user, bpf.CallShareSHARE_THREADS, -1)
		}
	}
}

// TargetPIDs lists the processes in the kernel's table.
func (k *targets) TargetPIDs() (pids []int) {
	var pid uint32
	var t bpf.CallTarget
	for it := k.call.Maps["targets"].Iterate(); it.Next(&pid, &t); {
		pids = append(pids, int(pid))
	}
	return pids
}

// full reports whether a table of the kernel had no room.
func full(err error) bool { return errors.Is(err, unix.E2BIG) || errors.Is(err, unix.ENOSPC) }
