package tracer

import (
	"fmt"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/mapped"
)

// writeLosses puts every loss counter into the dataset.
func (s *Session) writeLosses() error {
	losses, err := s.kernel.AllLost()
	if err != nil {
		return err
	}
	s.stats.lose(losses)
	now := time.Now().UnixNano()
	for i, n := range losses {
		if n == 0 {
			continue
		}
		kind := "incomplete"
		if kernel.Losses[i].Row {
			kind = "lost"
		}
		err := s.sink.Warning(Warning{TSNS: now, Kind: kind, Source: kernel.Losses[i].Name, Count: int64(n), Detail: kernel.Losses[i].Detail})
		if err != nil {
			return err
		}
	}
	if err := s.writeIncomplete(now); err != nil {
		return err
	}
	if err := s.writeUnresolvedLines(now); err != nil {
		return err
	}
	if err := s.writeMemo(now); err != nil {
		return err
	}
	if err := s.writeKnownCode(now); err != nil {
		return err
	}
	for _, w := range slices.Concat(s.decoder.Losses(), s.unheardLibraries(), s.nameLosses(), s.probes.Accounts().Distrusted(), s.filtered.Losses()) {
		w.TSNS = now
		if w.Count == 0 {
			continue
		}
		if w.Kind == "lost" {
			s.stats.loseMore(w.Source, uint64(w.Count))
		}
		if err := s.sink.Warning(w); err != nil {
			return err
		}
	}
	return nil
}

// unheardLibraries are the limits of what is known of the libraries that processes map.
func (s *Session) unheardLibraries() []Warning {
	return []Warning{
		{
			Kind: "incomplete", Source: "linker_hooks", Count: int64(s.job.Unhooked()),
			Detail: "processes beyond the first 64 children: what they loaded while they were recorded was found up to 2 s later",
		},
		{
			Kind: "incomplete", Source: "library_quota", Count: int64(s.classes.files.Refused() + s.stubs.Unopened()),
			Detail: fmt.Sprintf("libraries beyond the %d that are open at once: autograd nodes and kernels that are in them have no name", mapped.MaxOpen),
		},
	}
}

// nameLosses are the names that limits cost.
func (s *Session) nameLosses() []Warning {
	if s.walks == nil {
		return nil
	}
	unnamed, mangled := s.walks.Unnamed()
	refused := s.walks.Refused()
	return []Warning{
		{Kind: "incomplete", Source: "unwind_table_full", Count: int64(refused.Full), Detail: "files for whose unwind table there was no room beside those of other processes: stacks end at code of theirs that keeps no frame pointer"},
		{Kind: "incomplete", Source: "unwind_quota", Count: int64(refused.Quota), Detail: "files of a process that had a quarter of the room for unwind tables, or whose user had half of it: stacks end at code of theirs that keeps no frame pointer"},
		{Kind: "incomplete", Source: "file_closed", Count: int64(unnamed), Detail: "frames in files that were closed to make room for others and were gone when they were asked for: they have no function"},
		{Kind: "incomplete", Source: "name_mangled", Count: int64(mangled), Detail: "functions whose file has names that take too long to demangle: they have their mangled ones"},
	}
}
