package process

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// maxCommand bounds the command line that is kept.
const maxCommand = 4096

// Process is what does not change while a process lives, as Open saw it. What
// may change (threads, libraries) and what costs more (interpreter, framework)
// are methods.
type Process struct {
	PID       int
	ParentPID int
	// NSPID is its pid in its own pid namespace, nil where proc does not say.
	NSPID *int
	// PIDNamespace is the inode of its pid namespace, 0 where not readable.
	PIDNamespace uint64
	Comm         string // the main thread's name
	// StartTicks is when it began, in 1/100 s since boot: exact, and the same
	// to every reader, so that pid and StartTicks name a process.
	StartTicks uint64
	// StartedNS is the same since the epoch, by the wall clock of when the first
	// process was looked at.
	StartedNS  int64
	Exe        string // in its own mount namespace
	ExeDeleted bool
	Command    string // arguments joined by spaces, at most 4,096 bytes
	Cgroup     string // its path in the hierarchy that says most, "" at the root
	// ContainerID is the runtime's id (64 hex digits) or the name of an LXC
	// container, "" outside containers.
	ContainerID string
	Job         JobIdentity

	fs   FS
	left leftOut
	// living is the thread through which proc shows the process where its main thread has ended, else 0.
	living int32

	versions *versions // nil of a Process that was not opened: nothing is remembered
	packages *packages
}

// Open reads what the process is. The errors are *Error with the reasons
// ErrNotFound, ErrKernelThread, ErrExited, ErrPermission, Err32Bit, ErrStatic
// and ErrUnsupported.
func Open(pid int) (*Process, error) { return FS{}.Open(pid) }

// Open is the function Open on a given proc filesystem.
func (f FS) Open(pid int) (*Process, error) {
	s, err := f.settled(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{pid, ErrNotFound, err}
	}
	if err != nil {
		return nil, vanished(pid, "reading stat", err)
	}
	if s.kernelThread() {
		return nil, &Error{PID: pid, Reason: ErrKernelThread}
	}
	if s.exited() {
		return nil, &Error{PID: pid, Reason: ErrExited}
	}
	p := &Process{
		PID: pid, ParentPID: s.parent, Comm: s.comm, fs: f, living: int32(s.living),
		StartTicks: s.startTicks, StartedNS: f.bootNS() + int64(s.startTicks)*nsPerTick,
		versions: &versions{}, packages: &packages{},
	}
	if err := p.readProgram(); err != nil {
		return nil, p.orExited(err)
	}
	p.readStatus()
	if err := p.readJob(); err != nil {
		return nil, p.orExited(err)
	}
	if !p.Alive() {
		return nil, &Error{PID: pid, Reason: ErrExited}
	}
	return p, nil
}

// Alive reports whether the process still runs: not exited, and its pid not
// given to another one.
func (p *Process) Alive() bool {
	s, err := p.fs.stat(p.PID)
	if err != nil || s.startTicks != p.StartTicks || s.exited() {
		return false
	}
	atomic.StoreInt32(&p.living, int32(s.living))
	return true
}

// through is the thread whose files in proc show the process: its main one, or another where that has ended.
func (p *Process) through() int {
	if tid := atomic.LoadInt32(&p.living); tid != 0 {
		return int(tid)
	}
	return p.PID
}

// orExited prefers the plain reason: files of a process that just exited fail
// in many ways.
func (p *Process) orExited(err error) error {
	if p.Alive() {
		return err
	}
	return &Error{p.PID, ErrExited, err}
}

// readProgram reads what the process executes, and refuses what has nothing
// that could be probed.
func (p *Process) readProgram() error {
	exe, err := os.Readlink(p.path("exe"))
	if err != nil {
		return vanished(p.PID, "reading the program", err)
	}
	p.Exe, p.ExeDeleted = strings.CutSuffix(exe, " (deleted)")
	command, _, err := p.fs.text(p.through(), maxCommand, "cmdline")
	if err != nil {
		return vanished(p.PID, "reading the command line", err)
	}
	p.Command = commandLine(command)

	program, err := p.openProgram()
	switch {
	case errors.Is(err, elf.Err32Bit):
		return &Error{p.PID, Err32Bit, err}
	case errors.Is(err, elf.ErrNotELF), errors.Is(err, elf.ErrUnsupportedMachine):
		return &Error{p.PID, ErrUnsupported, err}
	case err != nil:
		return vanished(p.PID, "opening the program", err)
	}
	defer program.Close()
	if program.Interpreter() != "" {
		return nil
	}
	// The dynamic loader run as a program (`ld.so ./job`) names no loader
	// either; the job's libraries are mapped beside it.
	libraries, err := p.Libraries()
	if err != nil {
		return err
	}
	if len(libraries) <= 1 {
		return &Error{PID: p.PID, Reason: ErrStatic}
	}
	return nil
}

func (p *Process) readStatus() {
	status, err := procfile.Read(p.fs.pidPath(p.PID, "status"), 0)
	if err == nil {
		p.NSPID = parseNSPID(status)
	}
	p.PIDNamespace = namespaceInode(p.path("ns", "pid"))
}

// parseNSPID reads the last field of "NSpid: 4711 12": the innermost namespace.
func parseNSPID(status []byte) *int {
	for line := range bytes.Lines(status) {
		value, ok := bytes.CutPrefix(line, []byte("NSpid:"))
		if !ok {
			continue
		}
		fields := bytes.Fields(value)
		if len(fields) == 0 {
			return nil
		}
		pid, err := strconv.Atoi(string(fields[len(fields)-1]))
		if err != nil {
			return nil
		}
		return &pid
	}
	return nil
}

// PIDNamespace is the inode of a process's pid namespace, 0 where it cannot be read.
func PIDNamespace(pid int) uint64 { return namespaceInode(FS{}.pidPath(pid, "ns", "pid")) }

// namespaceInode reads "pid:[4026531836]".
func namespaceInode(link string) uint64 {
	target, err := os.Readlink(link)
	if err != nil {
		return 0
	}
	_, number, _ := strings.Cut(target, "[")
	inode, _ := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
	return inode
}

func (p *Process) path(parts ...string) string { return p.fs.pidPath(p.through(), parts...) }

// ID is a stable, non-negative number for a process: the same from every
// reader, different for the next process with its pid. start is StartTicks.
func ID(host string, pid int, start uint64) int64 {
	b := binary.LittleEndian.AppendUint64([]byte(host+"\x00"), uint64(pid))
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(b, start))
	return int64(binary.LittleEndian.Uint64(sum[:]) &^ (1 << 63))
}
