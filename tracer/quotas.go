package tracer

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// What one process can make the tracer do is bounded, so that its neighbours'
// recording goes on: process.MaxMaps and process.MaxLibraries are what is read of
// it, these what is kept. docs/security.md lists all of them.
const (
	// maxTracedFiles bounds the files with probes, or that could have had some: each
	// takes a descriptor and a mapping. A job of eight processes with all runtimes
	// has a dozen, for they share them.
	maxTracedFiles = 1024
	// longRead is when reading a process's maps takes long: 2 ms are usual, for
	// 65,530 mappings it is 80. Such a process is looked at no more than a
	// twentieth of the time, whatever its dynamic linker reports.
	longRead    = 20 * time.Millisecond
	restOfReads = 20
)

// rest spaces the looks at a process that takes long to look at.
func (t *tracedProcess) rest(began time.Time) {
	if took := time.Since(began); took > longRead {
		t.restUntil = time.Now().Add(restOfReads * took)
	}
}

// due is when the process's maps are read next.
func (t *tracedProcess) due() time.Time {
	if t.rescanAt.Before(t.restUntil) {
		return t.restUntil
	}
	return t.rescanAt
}

// warnLeftOut says, once, what of a process is beyond the limits.
func (s *Session) warnLeftOut(t *tracedProcess) {
	cut, files := t.process.LeftOut()
	warn := func(said *bool, source string, count int, detail string) {
		if *said {
			return
		}
		*said = true
		s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "incomplete", Source: source, Count: int64(count), Detail: fmt.Sprintf("pid %d: ", t.process.PID) + detail})
	}
	if cut {
		warn(&t.saidMaps, "maps_cut", 1, fmt.Sprintf("its list of mappings is longer than %d MiB: what lies beyond has no probes and no names", process.MaxMaps>>20))
	}
	if files > 0 {
		warn(&t.saidFiles, "files_beyond_limit", files, fmt.Sprintf("it maps more than %d files as code: those at higher addresses have no probes and no names", process.MaxLibraries))
	}
}

// nameLosses are the names that limits cost.
func (s *Session) nameLosses() []Warning {
	if s.walks == nil {
		return nil
	}
	unnamed, mangled := s.walks.spaces.names.Lost()
	return []Warning{
		{Kind: "incomplete", Source: "file_closed", Count: int64(unnamed), Detail: "frames in files that were closed to make room for others and were gone when they were asked for: they have no function"},
		{Kind: "incomplete", Source: "name_mangled", Count: int64(mangled), Detail: "functions whose file has names that take too long to demangle: they have their mangled ones"},
	}
}
