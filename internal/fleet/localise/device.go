package localise

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// deviceFindings compares what ran on devices: of each worker it is known how long that took
// at the least and at the most. So one differs from its peers only where its least is more
// than most of them can have needed: as far as two shares have to be apart elsewhere, and
// where there are peers to tell it from.
func (t *table) deviceFindings(k key, method string) (all []Finding) {
	row := t.rows[k]
	if method == "none" {
		return nil
	}
	most := mostOf(row)
	for w, p := range row {
		if p == nil {
			continue
		}
		if f, ok := t.moreThan(w, p, middleWithout(most, p.BetaHi)); ok {
			f.Kind = Special
			all = append(all, f)
		}
	}
	if 2*len(all) > len(row) {
		return nil // the few that need less are no trouble
	}
	return all
}

// grownOnDevice finds those whose device took longer for a function at the least than it
// can have taken before at the most. Only windows have launches, so that the normal time
// needs one as well.
func (t *table) grownOnDevice(k key, before *table, was []int) (all []Finding) {
	for w, p := range t.rows[k] {
		if p == nil || was[w] < 0 || before.launches[was[w]] == 0 {
			continue
		}
		most := 0.0
		if row := before.rows[k]; row != nil && row[was[w]] != nil {
			most = row[was[w]].BetaHi
		}
		if f, ok := t.moreThan(w, p, most); ok {
			f.Kind = Own
			all = append(all, f)
		}
	}
	return all
}

// moreThan is the finding that a worker's device took more at the least than the most
// that another share can have been, by as far as two have to be apart.
func (t *table) moreThan(w int, p *pattern.Pattern, most float64) (f Finding, ok bool) {
	more := p.BetaLo - most
	if more < floor || more < far*p.BetaLo {
		return f, false
	}
	return Finding{Workers: []Worker{t.workers[w]}, Pattern: *p, PeersBeta: most, Delta: more / p.BetaLo, Score: more}, true
}

// mostOf is what each worker can have needed, sorted; those without the function nothing.
func mostOf(row []*pattern.Pattern) []float64 {
	all := make([]float64, len(row))
	for w, p := range row {
		if p != nil {
			all[w] = p.BetaHi
		}
	}
	slices.Sort(all)
	return all
}
