package process

import (
	"os"
	"slices"
)

// Children lists all processes below pid that are alive now: children, their
// children, and so on, sorted. One whose parent exited belongs to init and is
// not found. The caller, where the process started it, is no part of it, nor
// are those that the caller started.
func Children(pid int) ([]int, error) { return FS{}.Children(pid) }

// Children is the function Children on a given proc filesystem.
func (f FS) Children(pid int) ([]int, error) {
	pids, err := f.pids()
	if err != nil {
		return nil, err
	}
	below := map[int][]int{}
	for _, p := range pids {
		if s, err := f.stat(p); err == nil && !s.exited() {
			below[s.parent] = append(below[s.parent], p)
		}
	}
	self := os.Getpid()
	var found []int
	for next := below[pid]; len(next) > 0; {
		p := next[0]
		next = next[1:]
		if p == self {
			continue
		}
		next = append(next, below[p]...)
		found = append(found, p)
		delete(below, p)
	}
	slices.Sort(found)
	return found, nil
}

// Parent is the parent of a process, as it is now.
func Parent(pid int) (parent int, ok bool) {
	s, err := FS{}.stat(pid)
	return s.parent, err == nil
}
