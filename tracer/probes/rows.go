package probes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Report counts the probes of one file.
type Report struct {
	Path     string
	Planned  int
	Attached int
	Skipped  int // no site, or none that is safe; the probe table says why
}

// Accounts is what readers learn of the probes.
type Accounts struct{ *Set }

// Accounts are those of the Set.
func (s *Set) Accounts() Accounts { return Accounts{s} }

// LeftOut is a sentence on the groups that the budget leaves out; empty if there are none.
func (s Accounts) LeftOut() string { return s.config.Chosen.LeftOut() }

// Reports are those of all files, by their paths.
func (s Accounts) Reports() []Report {
	reports := make([]Report, 0, len(s.files))
	for _, f := range s.files {
		r := Report{Path: f.plan.Path, Planned: len(f.plan.Probes)}
		for i := range f.plan.Probes {
			switch {
			case s.at(f.base + uint32(i)).attached:
				r.Attached++
			case !f.plan.Probes[i].Usable():
				r.Skipped++
			}
		}
		reports = append(reports, r)
	}
	slices.SortFunc(reports, func(a, b Report) int { return strings.Compare(a.Path, b.Path) })
	return reports
}

// Attached is how many probes have been put into files that are still there. Where the
// budget has a group in slices, its probes are out in between.
func (s Accounts) Attached() (n int) {
	for _, p := range s.own {
		if p.attached && !p.gone {
			n++
		}
	}
	return n
}

// Rows describes every planned probe, with what it saw. It runs on the decoder's
// goroutine, when the manager has ended.
func (s Accounts) Rows() []event.Probe {
	rows := make([]event.Probe, 0, len(s.own))
	for _, p := range s.own {
		if p.gone {
			continue
		}
		if row, ok := s.row(p); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// row describes one.
func (s Accounts) row(p *Probe) (row event.Probe, ok bool) {
	count, err := s.config.Kernel.Count(p.Index)
	if err != nil {
		return row, false
	}
	hits := int64(max(count.Entries-p.before.Entries, count.Exits-p.before.Exits))
	row = event.Probe{
		Library: p.file.plan.Path, Symbol: p.Planned.Symbol, Name: p.Planned.Call.Name, Layer: p.Planned.Call.Layer, Kind: p.Planned.Kind(),
		Attached: p.attached, Reason: p.Planned.Reason(), Hits: hits,
		Lost: int64(count.Lost - p.before.Lost), FirstIn: p.firstIn, Thinned: int64(s.config.Thinned[p.Index] - p.thinnedBefore),
	}
	row.PID = p.file.firstPID
	if p.Planned.EntryErr == nil {
		offset := int64(p.Planned.Entry.Offset)
		row.Site, row.SiteCost = &offset, p.Planned.Entry.Cost.String()
	}
	if !p.attached && p.Planned.Usable() {
		row.Reason = fmt.Sprintf("not attached: the job was not seen to use it (%s)", row.Reason)
	}
	return row, true
}

// Distrusted says of which files the tensors are not where the table has them. It runs on
// the decoder's goroutine, as Rows does.
func (s Accounts) Distrusted() (warnings []event.Warning) {
	for _, f := range s.files {
		if t := &f.trust; t.Refused() {
			warnings = append(warnings, event.Warning{
				Kind: "shapes", Source: f.plan.Path, Count: int64(t.Disagreed),
				Detail: fmt.Sprintf("tensors whose sizes, strides, elements and storage do not agree, beside %d where they do: this build of PyTorch "+
					"keeps them elsewhere than its version does, and no shapes of it were recorded from then on", t.Agreed),
			})
		}
	}
	return warnings
}
