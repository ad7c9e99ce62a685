package localise

import "github.com/ebpfprof/ebpfprof/internal/fleet/pattern"

// deviceFindings compares what ran on devices: of each worker it is known how long that took
// at the least and at the most. So one is told from its peers only where its least is more
// than most of them can have needed: as far as two shares have to be apart elsewhere, and
// where there are peers to tell it from.
func (t *table) deviceFindings(k key, method string) (all []Finding) {
	row := t.rows[k]
	if method == "none" {
		return nil
	}
	for w, p := range row {
		if p == nil {
			continue
		}
		most := middle(mostOf(row, w))
		if p.BetaLo-most < floor || p.BetaLo-most < far*p.BetaLo {
			continue
		}
		f := Finding{Kind: Special, Workers: []Worker{t.workers[w]}, Pattern: *p, PeersBeta: most, Delta: (p.BetaLo - most) / p.BetaLo}
		f.Score = f.Delta * p.BetaLo
		all = append(all, f)
	}
	if 2*len(all) > len(row) {
		return nil // the few that need less are no trouble
	}
	return all
}

// mostOf is what each worker but one can have needed; those without the function nothing.
func mostOf(row []*pattern.Pattern, but int) (all []float64) {
	for w, p := range row {
		switch {
		case w == but:
		case p == nil:
			all = append(all, 0)
		default:
			all = append(all, p.BetaHi)
		}
	}
	return all
}
