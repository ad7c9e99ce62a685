package process

import (
	"bytes"
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// Wanted says which processes Find looks for: those that are all of what is given.
type Wanted struct {
	Command   *regexp.Regexp // matches somewhere in the command line, arguments joined by spaces
	Container string         // the id of the container or the beginning of it, or the name of an LXC container
}

// Found is a process that Find found.
type Found struct {
	PID       int
	Command   string
	Container Container // the zero value if no container is looked for
}

// Container is one that a control group names. Anyone to whom a control group was delegated may name one below it
// like a container: two with the same id and different groups are two.
type Container struct {
	ID    string
	Group string // the path of its control group
}

// Find lists the processes that are wanted and whose parent is not: children are recorded with their parents. The
// caller and its ancestors are left out, since a shell or sudo has the caller's arguments in its own command line, and
// so are others that run the caller's program. Processes that end meanwhile are left out too.
func Find(wanted Wanted) ([]Found, error) { return FS{}.Find(wanted, os.Getpid()) }

// Find is the function Find on a given proc filesystem, for the caller that has pid self.
func (f FS) Find(wanted Wanted, self int) ([]Found, error) {
	pids, err := f.pids()
	if err != nil {
		return nil, err
	}
	own := f.ancestors(self)
	matched := map[int]Found{}
	for _, pid := range pids {
		if own[pid] {
			continue
		}
		if found, ok := f.match(pid, wanted); ok {
			matched[pid] = found
		}
	}
	f.leaveOutRecorders(matched, self)
	found := make([]Found, 0, len(matched))
	for pid, match := range matched {
		if !f.belowAny(pid, matched) {
			found = append(found, match)
		}
	}
	slices.SortFunc(found, func(a, b Found) int { return cmp.Compare(a.PID, b.PID) })
	return found, nil
}

// match reads of a process what is asked for, and no more: on a large machine thousands are looked at.
func (f FS) match(pid int, wanted Wanted) (Found, bool) {
	found := Found{PID: pid}
	if wanted.Container != "" {
		lines, err := procfile.Read(f.pidPath(pid, "cgroup"), 0)
		if err != nil {
			return found, false
		}
		if found.Container = containerIn(lines); !wanted.names(found.Container.ID) {
			return found, false
		}
	}
	command, err := procfile.Read(f.pidPath(pid, "cmdline"), maxCommand)
	if err != nil || len(command) == 0 { // a kernel thread, or an exited process
		return found, false
	}
	found.Command = commandLine(command)
	return found, wanted.Command == nil || wanted.Command.MatchString(found.Command)
}

// leaveOutRecorders leaves out processes that run the same program as self, and those in front of them (sudo, timeout)
// whose command lines end with theirs: they were given the same pattern, or a command that matches it.
func (f FS) leaveOutRecorders(matched map[int]Found, self int) {
	own, err := os.Readlink(f.pidPath(self, "exe"))
	if err != nil {
		return
	}
	for pid, match := range matched {
		if exe, err := os.Readlink(f.pidPath(pid, "exe")); err != nil || exe != own {
			continue
		}
		delete(matched, pid)
		for above := range f.ancestors(pid) {
			if strings.HasSuffix(matched[above].Command, " "+match.Command) {
				delete(matched, above)
			}
		}
	}
}

// names reports whether a container is the one that is looked for.
func (w *Wanted) names(id string) bool {
	return id == w.Container || isContainerHash(id) && strings.HasPrefix(id, w.Container)
}

// containerIn is the container of the innermost control group that names one.
func containerIn(lines []byte) (c Container) {
	for line := range bytes.Lines(lines) {
		fields := strings.SplitN(strings.TrimSuffix(string(line), "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if id := containerID(fields[2]); id != "" {
			c = Container{ID: id, Group: upTo(fields[2], id)}
		}
	}
	return c
}

// upTo is a path up to its last component with this text: processes of one container may be in groups below its own.
func upTo(path, text string) string {
	at := strings.LastIndex(path, text)
	if end := strings.IndexByte(path[at:], '/'); end >= 0 {
		return path[:at+end]
	}
	return path
}

func commandLine(arguments []byte) string {
	return string(bytes.ReplaceAll(bytes.TrimRight(arguments, "\x00"), []byte{0}, []byte{' '}))
}

// mostAncestors bounds the way up to init: processes that end meanwhile and pids that are given out again can make it a
// circle.
const mostAncestors = 1024

// ancestors are a process, its parent and so on.
func (f FS) ancestors(pid int) map[int]bool {
	all := map[int]bool{}
	for pid > 0 && !all[pid] && len(all) < mostAncestors {
		all[pid] = true
		s, err := f.stat(pid)
		if err != nil {
			break
		}
		pid = s.parent
	}
	return all
}

// belowAny reports whether an ancestor of a process is among these.
func (f FS) belowAny(pid int, these map[int]Found) bool {
	for above := range f.ancestors(pid) {
		if _, ok := these[above]; ok && above != pid {
			return true
		}
	}
	return false
}
