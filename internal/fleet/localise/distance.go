package localise

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// point is a pattern as distances are taken of it.
type point struct{ beta, mu, sigma float64 }

func pointOf(p *pattern.Pattern) point { return point{p.Beta, p.Mu, p.Sigma} }

// mostBeta is the upper end of a class's box; compute has none (an operator has no
// expected share), and what the machine does is compared with peers only.
var mostBeta = map[pattern.Class]float64{
	pattern.Python: 0.01, pattern.Loader: 0.05, pattern.IO: 0.05, pattern.Copy: 0.1, pattern.Collective: 0.3,
}

// expectation is D: the sum of the relative excesses over the class's box, each at
// most 1. best is the highest throughput that any worker reached with the function;
// 0 where none is measured.
func expectation(p *pattern.Pattern, best float64) (d float64) {
	if box, ok := mostBeta[p.Class]; ok && p.Beta > box {
		d += min(1, (p.Beta-box)/box)
	}
	if p.Class == pattern.Collective && p.Resource == "bytes_per_second" && best > 0 && p.Mu < best/2 {
		d += min(1, (best/2-p.Mu)/(best/2))
	}
	return d
}

// findings of one function.
func (t *table) findings(k key, method string) (all []Finding) {
	row := t.rows[k]
	points := make([]point, len(row))
	var most point
	for w, p := range row {
		if p != nil {
			points[w] = pointOf(p)
			most = point{max(most.beta, p.Beta), max(most.mu, p.Mu), max(most.sigma, p.Sigma)}
		}
	}
	if most.beta < floor {
		return nil
	}
	scale := most
	if k.basis == pattern.Sampled {
		// Shares of a CPU have a scale of their own: 1 % is not three times as busy as
		// 0.3 % in a sense that matters.
		scale.mu, scale.sigma = 1, 1
	}
	// A worker without the function has no share of it; of how it would use its
	// resource nothing is known, so that it does not differ there.
	medians := mediansOf(row)
	center := medians.all()
	for w, p := range row {
		if p == nil {
			points[w] = point{0, center.mu, center.sigma}
		}
	}
	err := samplingError(row)
	normal := make([]point, len(points))
	for w, p := range points {
		normal[w] = point{over(p.beta, scale.beta), over(p.mu, scale.mu), over(p.sigma, scale.sigma)}
	}
	deltas, outlier := compare(normal, method, k.function)
	var common []int
	for w, p := range row {
		d := 0.0
		if p != nil && p.Beta >= floor {
			d = expectation(p, most.mu)
		}
		if outlier(w) && differs(row, w, medians, center, err) {
			// To be kept from running less than its peers is no fault.
			if f := t.special(row, w, medians.without(p), d, deltas[w]); f.Pattern.Class != pattern.Host || f.more() {
				all = append(all, f)
			}
			continue
		}
		if d > 0 {
			common = append(common, w)
		}
	}
	all = telling(all)
	if len(all) > 0 && all[0].Pattern.Class == pattern.Host && 2*len(all) > len(row) {
		all = nil // most of them share a machine that is busy
	}
	if len(common) > 0 && 2*len(common) > len(row) {
		all = append(all, t.common(row, common, most.mu))
	}
	return all
}

// telling leaves out what another finding of the same function says already. Where
// some workers have more of it and others less, those with more are the news; of a
// collective those with less: the others wait for them.
func telling(all []Finding) []Finding {
	more := slices.ContainsFunc(all, Finding.more)
	less := slices.ContainsFunc(all, func(f Finding) bool { return !f.more() })
	if !more || !less {
		return all
	}
	return slices.DeleteFunc(all, func(f Finding) bool {
		return f.more() == (f.Pattern.Class == pattern.Collective)
	})
}

// more says whether the worker has more of the function than its peers.
func (f Finding) more() bool { return f.Pattern.Beta >= f.PeersBeta }

func over(value, most float64) float64 {
	if most <= 0 {
		return 0
	}
	return value / most
}

// compare returns each worker's distance from its peers and says which are outliers.
func compare(normal []point, method string, seed uint64) (deltas []float64, outlier func(int) bool) {
	n := len(normal)
	deltas = make([]float64, n)
	switch method {
	case "none":
		return deltas, func(int) bool { return false }
	case "leave_one_out":
		for w := range normal {
			others := slices.Concat(normal[:w], normal[w+1:])
			deltas[w] = manhattan(normal[w], median(others))
		}
		return deltas, func(w int) bool { return deltas[w] > far }
	}
	random := rand.New(rand.NewPCG(seed, 1))
	for w := range normal {
		away, compared := 0, min(peers, n-1)
		for i := range compared {
			other := i
			if n-1 > peers {
				other = random.IntN(n - 1)
			}
			if other >= w {
				other++
			}
			if manhattan(normal[w], normal[other]) > far {
				away++
			}
		}
		deltas[w] = float64(away) / float64(compared)
	}
	center := middle(deltas)
	deviation := make([]float64, n)
	for w, d := range deltas {
		deviation[w] = math.Abs(d - center)
	}
	limit := center + deviations*max(middle(deviation), leastMAD)
	return deltas, func(w int) bool { return deltas[w] > limit }
}

func manhattan(a, b point) float64 {
	return math.Abs(a.beta-b.beta) + math.Abs(a.mu-b.mu) + math.Abs(a.sigma-b.sigma)
}

// differs says whether a worker's share differs from its peers' by more than the
// samples can be off, and by more than the floor: mu and sigma of a function that is
// hardly ever seen say nothing. center is the median of all workers; of few the one
// in question is left out.
func differs(row []*pattern.Pattern, w int, medians medians, center point, err float64) bool {
	if len(row) < fewWorkers {
		center = medians.without(row[w])
	}
	beta := 0.0
	if row[w] != nil {
		beta = row[w].Beta
	}
	difference := math.Abs(beta - center.beta)
	return difference >= floor && difference > standard*err*math.Sqrt2
}

// samplingError is the largest standard error of a share of the function.
func samplingError(row []*pattern.Pattern) (err float64) {
	for _, p := range row {
		if p != nil {
			err = max(err, (p.BetaHi-p.BetaLo)/2/1.96)
		}
	}
	return err
}

// medians are what medians of a function over workers are taken from, component by
// component, in order; workers without the function count with a share of 0 and no mu and
// sigma.
type medians struct{ beta, mu, sigma []float64 }

func mediansOf(row []*pattern.Pattern) (m medians) {
	for _, p := range row {
		if p == nil {
			m.beta = append(m.beta, 0)
			continue
		}
		m.beta, m.mu, m.sigma = append(m.beta, p.Beta), append(m.mu, p.Mu), append(m.sigma, p.Sigma)
	}
	for _, values := range [][]float64{m.beta, m.mu, m.sigma} {
		slices.Sort(values)
	}
	return m
}

func (m medians) all() point {
	return point{middleOf(m.beta), middleOf(m.mu), middleOf(m.sigma)}
}

// without is the median of all workers but the one whose pattern this is, nil of one that
// has none.
func (m medians) without(p *pattern.Pattern) point {
	if p == nil {
		return point{middleWithout(m.beta, 0), middleOf(m.mu), middleOf(m.sigma)}
	}
	return point{middleWithout(m.beta, p.Beta), middleWithout(m.mu, p.Mu), middleWithout(m.sigma, p.Sigma)}
}

// middleWithout is the median of sorted values but one of them.
func middleWithout(sorted []float64, value float64) float64 {
	n := len(sorted) - 1
	if n <= 0 {
		return 0
	}
	out, _ := slices.BinarySearch(sorted, value)
	at := func(i int) float64 {
		if i >= out {
			i++
		}
		return sorted[i]
	}
	return (at((n-1)/2) + at(n/2)) / 2
}

func median(points []point) point {
	var beta, mu, sigma []float64
	for _, p := range points {
		beta, mu, sigma = append(beta, p.beta), append(mu, p.mu), append(sigma, p.sigma)
	}
	return point{middle(beta), middle(mu), middle(sigma)}
}

// middle is the median, 0 of nothing.
func middle(values []float64) float64 {
	return middleOf(slices.Sorted(slices.Values(values)))
}

// middleOf is that of sorted values.
func middleOf(s []float64) float64 {
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// special is the finding of one worker; m is the median of the others.
func (t *table) special(row []*pattern.Pattern, w int, m point, d, delta float64) Finding {
	f := Finding{Kind: Special, Workers: []Worker{t.workers[w]}, PeersBeta: m.beta, PeersMu: m.mu, PeersSigma: m.sigma, D: d, Delta: delta}
	if p := row[w]; p != nil {
		f.Pattern = *p
	} else { // it lacks what the others have
		for _, p := range row {
			if p != nil {
				f.Pattern = *p
				break
			}
		}
		f.Pattern.Beta, f.Pattern.BetaLo, f.Pattern.BetaHi, f.Pattern.Count = 0, 0, 0, 0
		f.Pattern.Host, f.Pattern.PID, f.Pattern.Rank = t.workers[w].Host, t.workers[w].PID, t.workers[w].Rank
	}
	f.Score = max(d, delta) * max(f.Pattern.Beta, f.PeersBeta)
	return f
}

func (t *table) common(row []*pattern.Pattern, common []int, best float64) Finding {
	slices.SortFunc(common, func(a, b int) int {
		switch {
		case row[a].Beta < row[b].Beta:
			return -1
		case row[a].Beta > row[b].Beta:
			return 1
		}
		return a - b
	})
	p := row[common[len(common)/2]]
	f := Finding{Kind: Common, Pattern: *p, PeersBeta: p.Beta, PeersMu: p.Mu, PeersSigma: p.Sigma, D: expectation(p, best)}
	f.Score = f.D * p.Beta
	slices.Sort(common)
	for _, w := range common {
		f.Workers = append(f.Workers, t.workers[w])
	}
	return f
}
