package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// FS is a mounted proc filesystem, or a recording of one. The zero value is
// this machine's.
type FS struct {
	Root string // "/proc" if empty
}

func (f FS) path(parts ...string) string {
	root := f.Root
	if root == "" {
		root = "/proc"
	}
	return filepath.Join(append([]string{root}, parts...)...)
}

func (f FS) pidPath(pid int, parts ...string) string {
	return f.path(append([]string{strconv.Itoa(pid)}, parts...)...)
}

// pids lists the processes that proc shows now.
func (f FS) pids() ([]int, error) { return numbers(f.path()) }

// numbers lists the entries of a directory that are numbers.
func numbers(path string) ([]int, error) {
	directory, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	names, err := directory.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var found []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n > 0 {
			found = append(found, n)
		}
	}
	return found, nil
}

// stat is /proc/PID/stat, or a thread's.
type stat struct {
	comm       string
	state      byte
	parent     int
	flags      uint64
	startTicks uint64 // since boot, 100 a second
	startCode  uint64 // address of the program's code; 1 where we may not know it
	// living is a thread that goes on where the main thread has ended (pthread_exit), 0 otherwise.
	living int
}

// parseStat reads the fields of proc_pid_stat(5). The name, in parentheses,
// may hold spaces and parentheses itself: the last one ends it.
func parseStat(b []byte) (stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return stat{}, fmt.Errorf("stat without a name")
	}
	fields := strings.Fields(string(b[end+1:]))
	if len(fields) < 24 {
		return stat{}, fmt.Errorf("stat with %d fields", len(fields)+2)
	}
	s := stat{comm: string(b[open+1 : end]), state: fields[0][0]}
	var errs [4]error
	s.parent, errs[0] = strconv.Atoi(fields[1])
	s.flags, errs[1] = strconv.ParseUint(fields[6], 10, 64)
	s.startTicks, errs[2] = strconv.ParseUint(fields[19], 10, 64)
	s.startCode, errs[3] = strconv.ParseUint(fields[23], 10, 64)
	for _, err := range errs {
		if err != nil {
			return stat{}, fmt.Errorf("stat: %w", err)
		}
	}
	return s, nil
}

func (s stat) kernelThread() bool { return s.flags&0x00200000 != 0 } // PF_KTHREAD

// exiting: its memory has gone, or will.
func (s stat) exiting() bool { return s.flags&0x4 != 0 } // PF_EXITING

func (s stat) exited() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

// inExec reports whether the process is between the end of its old program and
// the start of its new one: its memory is new, and its arguments and environment
// read as empty. fs/binfmt_elf.c sets the code's address last.
func (s stat) inExec() bool { return s.startCode == 0 && !s.kernelThread() && !s.exited() }

// settled is stat of a process that is not in the middle of an exec, or that has
// been for a second.
func (f FS) settled(pid int) (stat, error) {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		s, err := f.stat(pid)
		if err != nil || !s.inExec() || time.Now().After(deadline) {
			return s, err
		}
	}
}

func (f FS) stat(pid int) (stat, error) {
	b, err := procfile.Read(f.pidPath(pid, "stat"), 4096)
	if err != nil {
		return stat{}, err
	}
	s, err := parseStat(b)
	if err == nil && s.exited() {
		f.goesOn(pid, &s)
	}
	return s, err
}

// mostLooked threads of a process whose main thread has ended are looked at.
const mostLooked = 4096

// goesOn makes the stat of a main thread that has ended that of the process, if other threads live: the
// kernel shows the main thread as a zombie until the last of them ends.
func (f FS) goesOn(pid int, s *stat) {
	tids, err := numbers(f.pidPath(pid, "task"))
	if err != nil {
		return
	}
	for _, tid := range tids[:min(len(tids), mostLooked)] {
		if tid == pid {
			continue
		}
		b, err := procfile.Read(f.pidPath(pid, "task", strconv.Itoa(tid), "stat"), 4096)
		if err != nil {
			continue
		}
		if t, err := parseStat(b); err == nil && !t.exited() {
			s.state, s.flags, s.startCode, s.living = t.state, t.flags, t.startCode, tid
			return
		}
	}
}

const (
	ticksPerSecond = 100 // USER_HZ, part of the ABI on x86-64 and arm64
	nsPerTick      = 1e9 / ticksPerSecond
)

// bootTimes caches btime per proc root: the kernel derives it from the wall
// clock, so reading it again after the clock was set would move every start.
var bootTimes sync.Map

// bootNS is when the machine booted: by its clocks, or in a recording from the
// line btime of /proc/stat, which knows whole seconds.
func (f FS) bootNS() int64 {
	path := f.path("stat")
	if ns, ok := bootTimes.Load(path); ok {
		return ns.(int64)
	}
	if f.Root == "" {
		ns, _ := bootTimes.LoadOrStore(path, clockBootNS())
		return ns.(int64)
	}
	b, err := procfile.Read(path, 0)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if value, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			seconds, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
			if err != nil {
				return 0
			}
			ns, _ := bootTimes.LoadOrStore(path, seconds*1e9)
			return ns.(int64)
		}
	}
	return 0
}
