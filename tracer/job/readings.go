package job

import (
	"runtime"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/threadclock"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// What one process can make the tracer do is bounded, so that its neighbours'
// recording goes on: process.MaxMaps and process.MaxLibraries are what is read of
// it, these what is kept. docs/security.md lists all of them.
const (
	// longRead is when reading a process's maps takes long: 2 ms are usual, for
	// 65,530 mappings it is 80. Such a process is looked at for no more than a
	// twentieth of the time, whatever its dynamic linker reports. That goes by the CPU
	// time of the reading: while a library is being mapped, or others have the CPUs, it
	// waits, and what comes next must not be missed for that. Of waiting it is half.
	longRead    = 20 * time.Millisecond
	restOfReads = 20
	// readShare is what part of a CPU the shorter readings of one process may take, after
	// the savedReads that it may take at once: a job of PyTorch loads a hundred libraries
	// in its first seconds, and each is found at once. One that loads without end, with
	// maps that are just short enough, would keep the manager busy.
	readShare  = 10
	savedReads = 250 * time.Millisecond
)

// readings are those of a process's maps.
type readings struct {
	next  time.Time
	hurry bool // then there will be something new
	rests rests
	count int
	// What the last one found: process.CodeDigest, 0 before, and the libraries.
	code      uint64
	libraries []*process.Library
}

// rests spaces the looks at a process that take long, or come often.
type rests struct {
	until time.Time
	taken time.Duration // of a CPU, less the share that has passed since
	at    time.Time     // of the last look
	often bool          // there were too many, for all that each was short
}

// read takes account of a look that has just ended.
func (r *rests) read(now time.Time, took, cpu time.Duration) {
	if !r.at.IsZero() {
		r.taken = max(0, r.taken-now.Sub(r.at)/readShare)
	}
	r.at, r.taken = now, r.taken+cpu
	if took > longRead {
		r.until = now.Add(max(took, restOfReads*cpu))
		return
	}
	if over := r.taken - savedReads; over > 0 {
		r.until, r.often = now.Add(over*readShare), true
	}
}

// reading is a look at a process's maps. It stays on one thread, whose time tells what
// it took.
type reading struct {
	began time.Time
	cpu   time.Duration
}

func beginReading() reading {
	runtime.LockOSThread()
	return reading{time.Now(), threadclock.Now()}
}

// end says how long it took, and how much of that the CPU.
func (r reading) end() (took, cpu time.Duration) {
	took, cpu = time.Since(r.began), threadclock.Now()-r.cpu
	runtime.UnlockOSThread()
	return took, cpu
}

// warnLeftOut says, once, what of a process is beyond the limits.
func (l *libraries) warnLeftOut(t *traced) {
	cut, files := t.process.LeftOut()
	warn := func(said *bool, source string, count int, format string, arguments ...any) {
		if !*said {
			*said = true
			l.job.warnOf("incomplete", source, count, "pid %d: "+format, append([]any{t.process.PID}, arguments...)...)
		}
	}
	if cut {
		warn(&t.said.maps, "maps_cut", 1, "its list of mappings is longer than %d MiB: what lies beyond has no probes and no names",
			process.MaxMaps>>20)
	}
	if t.maps.rests.often {
		warn(&t.said.busy, "maps_busy", 1, "it loads libraries so often that its mappings are read for no more than a %dth of a CPU: what it "+
			"loads is found later", readShare)
	}
	if files > 0 {
		warn(&t.said.files, "files_beyond_limit", files, "it maps more than %d files as code: those at higher addresses have no probes "+
			"and no names", process.MaxLibraries)
	}
}
