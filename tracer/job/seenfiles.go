package job

import "github.com/ebpfprof/ebpfprof/tracer/process"

// seenFiles are the libraries of a process that have been written already.
type seenFiles struct {
	paths   map[process.FileID]string
	refused map[process.FileID]refusal
}

// refusal is of a file that a process maps and that has no probes, since there was no
// room for them or it could not be opened. It is not held open: once its process has
// unlinked it, its inode number may be the next file's, at the same addresses.
type refusal struct {
	path  string
	freed int // Set.SlotsFreed then: there may be room once it is another
}

// isNews reports whether a file is mapped since the last time, or whether there may be
// room now for one that was refused. The inode number of a file that is held open cannot
// be another's. freed is Set.SlotsFreed.
func (f *seenFiles) isNews(key process.FileID, path string, held bool, freed int) bool {
	before, seen := f.paths[key]
	if !seen || held {
		return !seen
	}
	r, refused := f.refused[key]
	return before != path || refused && r.freed != freed
}

// wasRefused reports whether a file has been refused before: its warning has been given.
func (f *seenFiles) wasRefused(key process.FileID, path string) bool {
	r, ok := f.refused[key]
	return ok && r.path == path
}

// keep forgets the files that are not present any more.
func (f *seenFiles) keep(present map[process.FileID]bool) {
	for key := range f.paths {
		if !present[key] {
			delete(f.paths, key)
			delete(f.refused, key)
		}
	}
}
