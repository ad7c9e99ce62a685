package tracer

import (
	"fmt"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/mapped"
	"github.com/ebpfprof/ebpfprof/tracer/python"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// What a Session has lost, and what is incomplete. It is written on the decoder's
// goroutine, when the manager has ended.

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
		err := s.sink.Write(&event.Batch{Warnings: []event.Warning{{
			TSNS: now, Kind: kind, Source: kernel.Losses[i].Name, Count: int64(n),
			Detail: kernel.Losses[i].Detail + s.refused.whose(s, kernel.Losses[i].Name),
		}}})
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
	if err := s.writeCachedCode(now); err != nil {
		return err
	}
	for _, w := range slices.Concat(s.decoder.Losses(), s.unheardLibraries(), s.nameLosses(), s.probes.Accounts().Distrusted(),
		s.probes.Late.Losses(), s.filtered.Losses()) {
		w.TSNS = now
		if w.Count == 0 {
			continue
		}
		if w.Kind == "lost" {
			s.stats.loseMore(w.Source, uint64(w.Count))
		}
		if err := s.sink.Write(&event.Batch{Warnings: []event.Warning{w}}); err != nil {
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
			Kind: "incomplete", Source: "library_quota", Count: int64(s.classes.Unopened() + s.stubs.Unopened()),
			Detail: fmt.Sprintf("libraries beyond the %d that are open at once: autograd nodes and kernels that are in them have no name",
				mapped.MaxOpen),
		},
	}
}

// nameLosses are the names that limits cost.
func (s *Session) nameLosses() []Warning {
	if s.sampling.walks == nil {
		return nil
	}
	unnamed, mangled := s.sampling.walks.Unnamed()
	refused := s.sampling.walks.Refused()
	return []Warning{
		{Kind: "incomplete", Source: "unwind_table_full", Count: int64(refused.Full), Detail: "files for whose unwind table there was no room " +
			"beside those of other processes: stacks end at code of theirs that keeps no frame pointer"},
		{Kind: "incomplete", Source: "unwind_quota", Count: int64(refused.Quota), Detail: "files of a process that had a quarter of the room " +
			"for unwind tables, or whose user had half of it: stacks end at code of theirs that keeps no frame pointer" + mostlyOf(refused.User,
			refused.OfUser)},
		{Kind: "incomplete", Source: "file_closed", Count: int64(unnamed), Detail: "frames in files that were closed to make room for others " +
			"and were gone when they were asked for: they have no function"},
		{Kind: "incomplete", Source: "name_mangled", Count: int64(mangled), Detail: "functions whose file has names that take too long to " +
			"demangle: they have their mangled ones"},
	}
}

// writeIncomplete says how many samples and spans have a stack that does not
// reach down to its thread's start, and why.
func (s *Session) writeIncomplete(now int64) error {
	totals := &s.decoder.Rows.Sums.Totals.Stacks
	for status, n := range totals.Incomplete {
		err := s.sink.Write(&event.Batch{Warnings: []event.Warning{{TSNS: now, Kind: "incomplete", Source: status, Count: int64(n),
			Detail: stacks.StatusDetail(status)}}})
		if err != nil {
			return err
		}
	}
	if s.sampling.walks != nil {
		for reason, n := range s.sampling.walks.Unresolved() {
			err := s.sink.Write(&event.Batch{Warnings: []event.Warning{{TSNS: now, Kind: "incomplete", Source: reason, Count: int64(n),
				Detail: "Python frames without a name"}}})
			if err != nil {
				return err
			}
		}
	}
	if totals.Refused > 0 {
		err := s.sink.Write(&event.Batch{Warnings: []event.Warning{{
			TSNS: now, Kind: "incomplete", Source: "stack_quota", Count: int64(totals.Refused),
			Detail: fmt.Sprintf("samples and spans without a stack: the recording, their process or its user has had all of the different stacks "+
				"that it may have (%d, a quarter of what was left, half of what was not others')", s.options.limit("stacks")) +
				mostlyOf(totals.RefusedUser, totals.MostRefused),
		}}})
		if err != nil {
			return err
		}
	}
	if totals.Unresolved == 0 {
		return nil
	}
	return s.sink.Write(&event.Batch{Warnings: []event.Warning{{
		TSNS: now, Kind: "incomplete", Source: stacks.StackUnresolved, Count: int64(totals.Unresolved),
		Detail: "samples and spans without a stack: its frames had not come, or were lost",
	}}})
}

// writeUnresolvedLines says how many rows have no line because its frames were lost.
func (s *Session) writeUnresolvedLines(now int64) error {
	n := s.decoder.Rows.Sums.Totals.Lines.Unresolved
	if n == 0 {
		return nil
	}
	return s.sink.Write(&event.Batch{Warnings: []event.Warning{{
		TSNS: now, Kind: "incomplete", Source: "line_unresolved", Count: int64(n),
		Detail: "spans and allocations without a Python stack: its frames had not come, or were lost",
	}}})
}

// writeMemo says how many stacks were memoised and how often that was wrong.
func (s *Session) writeMemo(now int64) error {
	for _, of := range []struct {
		first  bpf.CallMemoCount
		totals *kernel.MemoTotals
		source string
		what   string
	}{
		{0, &s.decoder.Rows.Sums.Totals.Memo, "stack", "stacks of calls"},
		{bpf.CallMemoCountMEMO_LINES, &s.decoder.Rows.Sums.Totals.Lines.Memo, "python_stack", "Python frames behind calls"},
	} {
		t, err := s.kernel.Memo.Totals(of.first)
		if err != nil {
			return err
		}
		*of.totals = t
		if t.Found == 0 {
			continue
		}
		err = s.sink.Write(&event.Batch{Warnings: []event.Warning{{
			TSNS: now, Kind: "memoised", Source: of.source, Count: int64(t.Found),
			Detail: fmt.Sprintf("%s that were memoised and not walked; %d were walked to compare, and %d of them were other stacks (%.3g %%)",
				of.what, t.Verified, t.Mismatched, 100*t.MismatchRate()),
		}}})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeCachedCode says how many code objects that samples had cached
// (bpf/python_code.h) were compared, and how many of them were others.
func (s *Session) writeCachedCode(now int64) error {
	if s.sampling.sampler == nil {
		return nil
	}
	checked, err := s.sampling.sampler.PythonCount(python.CodeChecked)
	if err != nil {
		return err
	}
	differed, err := s.sampling.sampler.PythonCount(python.CodeDiffered)
	if err != nil || checked == 0 {
		return err
	}
	return s.sink.Write(&event.Batch{Warnings: []event.Warning{{
		TSNS: now, Kind: "memoised", Source: "python_code", Count: int64(checked),
		Detail: fmt.Sprintf("code objects of Python frames that were known from the samples before, one in eight, were read again; %d of them "+
			"were other code objects (%.3g %%): samples that met these before may name the one before",
			differed, 100*float64(differed)/float64(checked)),
	}}})
}
