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
	for _, w := range slices.Concat(s.decoder.Losses(), s.linkerHooks(), s.unopened(), s.nameLosses(), s.distrusted(), s.filtered.Losses()) {
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

// linkerHooks says how many processes' dynamic linkers have no hook.
func (s *Session) linkerHooks() []Warning {
	return []Warning{{
		Kind: "incomplete", Source: "linker_hooks", Count: s.unhooked,
		Detail: "processes beyond the first 64 children: what they loaded while they were recorded was found up to 2 s later",
	}}
}

// unopened says how many libraries were not opened to name what is in them.
func (s *Session) unopened() []Warning {
	return []Warning{{
		Kind: "incomplete", Source: "library_quota", Count: int64(s.classes.files.Refused() + s.stubs.Unopened()),
		Detail: fmt.Sprintf("libraries beyond the %d that are open at once: autograd nodes and kernels that are in them have no name", mapped.MaxOpen),
	}}
}
