package localise

import (
	"cmp"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// Own is a finding of what a worker spends more on than in its own normal time. Peers do
// not show what has become slow on all of them, nor where there are fewer than three.
const Own Kind = "own"

// CompareOwn compares workers with themselves: the windows of now with those of a time
// that was normal. Workers are known by their rank, so that a restart does not matter. As
// a share that grows makes all others smaller, only what grew is a finding.
func CompareOwn(now, normal []pattern.Pattern) []Finding {
	t, before := arrange(now), arrange(normal)
	was := make([]int, len(t.workers)) // place in before; -1: it is new
	for i, w := range t.workers {
		was[i] = slices.IndexFunc(before.workers, w.continues)
	}
	var all []Finding
	for _, k := range t.keys() {
		var found []Finding
		switch k.basis {
		case pattern.Sampled:
			found = t.grown(k, before, was)
		case pattern.Device:
			found = t.grownOnDevice(k, before, was)
		}
		all = append(all, t.oneOfMost(found)...)
	}
	for i := range all {
		t.explain(&all[i])
	}
	rank(all)
	return all
}

// continues reports whether another worker was this one before.
func (w Worker) continues(before Worker) bool {
	if w.Rank >= 0 {
		return before.Rank == w.Rank
	}
	return before == w
}

// grown finds the workers on which a function has more of the time than it had.
func (t *table) grown(k key, before *table, was []int) []Finding {
	var all []Finding
	for w, p := range t.rows[k] {
		if p == nil || p.Beta < floor || was[w] < 0 {
			continue
		}
		old := pattern.Pattern{Mu: p.Mu, Sigma: p.Sigma} // without a share nothing is known of how it used its resource
		if row := before.rows[k]; row != nil && row[was[w]] != nil {
			old = *row[was[w]]
		}
		a, b := pointOf(p), pointOf(&old)
		most := max(a.beta, b.beta)
		a.beta, b.beta = over(a.beta, most), over(b.beta, most)
		distance := manhattan(a, b)
		difference := p.Beta - old.Beta
		err := max(p.BetaHi-p.BetaLo, old.BetaHi-old.BetaLo) / 2 / 1.96
		if distance <= far || difference < floor || difference <= standard*err*math.Sqrt2 {
			continue
		}
		all = append(all, Finding{
			Kind: Own, Workers: []Worker{t.workers[w]}, Pattern: *p, PeersBeta: old.Beta, PeersMu: old.Mu, PeersSigma: old.Sigma,
			D: expectation(p, 0), Delta: distance, Score: distance * difference,
		})
	}
	return all
}

// oneOfMost makes one finding of those of a function that most workers have, of the
// worker with the median share.
func (t *table) oneOfMost(all []Finding) []Finding {
	if len(all) < 2 || 2*len(all) <= len(t.workers) {
		return all
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Pattern.Beta, b.Pattern.Beta) })
	one := all[len(all)/2]
	one.Workers = nil
	for _, f := range all {
		one.Workers = append(one.Workers, f.Workers...)
	}
	slices.SortFunc(one.Workers, func(a, b Worker) int { return cmp.Compare(a.Rank, b.Rank) })
	return []Finding{one}
}
