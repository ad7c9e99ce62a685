package job

import (
	"errors"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// traced is one process of the job: a pid and a start, since the pid alone is used again.
type traced struct {
	process   *process.Process
	row       event.Process
	maps      readings
	seen      seenFiles
	linker    *kernel.Links                     // on the dynamic linker's hook
	plugins   map[process.FileID]*unbuiltPlugin // that have not made their function table
	threads   map[int32]event.Thread            // that have had events and not ended
	plans     planTime
	said      said
	begun     bool      // its files are to be looked into by add
	rankTries int       // of asking for its rank
	goneAt    time.Time // when it was first seen to be gone, before its exit was reported
}

// said holds the warnings that were given of a process: that it is beyond a limit.
type said struct {
	maps, busy, files, plans bool
	unhooked                 bool // no hook on its dynamic linker: there are too many
	unreadable               []error
	unprobed                 map[string]bool // file systems that a user may serve
}

// isNewReason reports whether an error of one of a process's files says what was not said
// yet. That the process has exited, or may not be read, is true of all its files.
func (s *said) isNewReason(err error) bool {
	var of *process.Error
	if !errors.As(err, &of) {
		return true
	}
	if slices.Contains(s.unreadable, of.Reason) {
		return false
	}
	s.unreadable = append(s.unreadable, of.Reason)
	return true
}

// planTime is what the plans of a process's files took, and how long they were waited for.
type planTime struct{ took, waited time.Duration }

func newTraced(p *process.Process, row event.Process) *traced {
	return &traced{
		process: p, row: row, seen: seenFiles{paths: map[process.FileID]string{}, refused: map[process.FileID]refusal{}},
		plugins: map[process.FileID]*unbuiltPlugin{}, threads: map[int32]event.Thread{},
	}
}

// exitDelay is how long after a process has gone the record of its exit is waited for.
const exitDelay = 2 * time.Second

// overdue reports whether a process has been gone for longer than the record of
// its exit takes.
func (t *traced) overdue(now time.Time) bool {
	if t.process.Alive() {
		return false
	}
	if t.goneAt.IsZero() {
		t.goneAt = now
	}
	return now.Sub(t.goneAt) > exitDelay
}

// due is when the process's maps are read next.
func (t *traced) due() time.Time {
	if t.maps.next.Before(t.maps.rests.until) {
		return t.maps.rests.until
	}
	return t.maps.next
}

// linkSettle is how long after the dynamic linker's hook the maps are read:
// one dlopen calls it several times.
const linkSettle = 2 * time.Millisecond

// linked notes that the dynamic linker of a process has loaded something: its maps are
// read soon, and no later for all that it loads until then.
func (t *traced) linked(now time.Time) {
	soon := now.Add(linkSettle)
	if t.maps.hurry && !t.maps.next.After(soon) {
		return
	}
	if t.maps.next.After(soon) {
		t.maps.next = soon
	}
	t.maps.hurry = true
	for _, w := range t.plugins { // the quick succession begins anew
		w.tries = 0
	}
}

// readSoon has the maps read again after a while.
func (t *traced) readSoon(in time.Duration) { t.maps.next, t.maps.hurry = time.Now().Add(in), true }
