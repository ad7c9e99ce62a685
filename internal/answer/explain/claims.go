package explain

import (
	"cmp"
	"math"
	"slices"
)

// rows claims the rows of the pace-setting thread for which is holds.
func (r *Recording) rows(is func(*Row) bool) map[int]float64 {
	claims := map[int]float64{}
	for i := range r.Rows {
		if is(&r.Rows[i]) {
			claims[i] = 1
		}
	}
	return claims
}

// sum is the time that claims hold, in ns.
func (r *Recording) sum(claims map[int]float64) (ns float64) {
	for i, part := range claims {
		ns += part * r.Rows[i].NS
	}
	return ns
}

func (r *Recording) share(claims map[int]float64) float64 { return r.sum(claims) / r.Wall() }

// weighed is a thing and how much time it holds.
type weighed[K comparable] struct {
	of K
	ns float64
}

// heaviest sorts what key finds in rows by time, the most first; the zero K is left out.
func heaviest[K comparable](rows []Row, claims map[int]float64, key func(*Row) K, less func(a, b K) int) []weighed[K] {
	var none K
	sums := map[K]float64{}
	add := func(i int, part float64) {
		if k := key(&rows[i]); k != none {
			sums[k] += part * rows[i].NS
		}
	}
	if claims == nil {
		for i := range rows {
			add(i, 1)
		}
	}
	for _, i := range sortedKeys(claims) { // in order, so that sums of floats are the same each time
		add(i, claims[i])
	}
	all := make([]weighed[K], 0, len(sums))
	for k, ns := range sums {
		all = append(all, weighed[K]{k, ns})
	}
	slices.SortFunc(all, func(a, b weighed[K]) int { return cmp.Or(cmp.Compare(b.ns, a.ns), less(a.of, b.of)) })
	return all
}

func sortedKeys(m map[int]float64) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func byPlace(a, b *Frame) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Function, b.Function))
}

// top is the frame that the most time of the claims shows, nil if none does.
func (r *Recording) top(claims map[int]float64, key func(*Row) *Frame) *Frame {
	if all := heaviest(r.Rows, claims, key, byPlace); len(all) > 0 {
		return all[0].of
	}
	return nil
}

func innermost(row *Row) *Frame { return row.Stack.Innermost() }

// measure fills in the share of an explanation and its interval: a jackknife over blocks of time.
func (r *Recording) measure(e *Explanation) {
	wall := r.Wall()
	blocks := make([]float64, r.blocks)
	sum, half := 0.0, 0.0
	for _, i := range sortedKeys(e.claims) {
		row := &r.Rows[i]
		ns := e.claims[i] * row.NS
		sum += ns
		blocks[row.Block] += ns
		if row.Stack.isModel() {
			half += ns / 2
		}
	}
	if e.Explained == 0 {
		e.Explained = sum / wall
	}
	e.score = e.Explained
	if e.Kind == "hot_line" || e.Kind == "kernel" {
		e.score -= half / wall // the model's own operators are what the job is for
	}
	if len(e.claims) == 0 || r.blocks < 2 {
		return
	}
	n := float64(r.blocks)
	each := wall / n
	variance := 0.0
	for _, b := range blocks {
		d := (sum-b)/(wall-each) - sum/wall
		variance += d * d * (n - 1) / n
	}
	reach := 1.96 * math.Sqrt(variance)
	lo, hi := max(0, e.Explained-reach), min(1, e.Explained+reach)
	e.Lo, e.Hi, e.own = &lo, &hi, [2]*float64{&lo, &hi}
}

// merged sorts the explanations and makes one of two that share more than half of the smaller one's samples: the one of
// the earlier kind names the cause, the other is its evidence, unless that would hide most of the time. It takes the
// other's share if that is mostly of the same samples; else a wait of a few percent within a line that holds all would
// seem to explain everything.
func merged(r *Recording, found []Explanation) []Explanation {
	slices.SortStableFunc(found, func(a, b Explanation) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.score, a.score))
	})
	var kept []Explanation
	for _, e := range found {
		into := -1
		for i := range kept {
			if len(e.claims) == 0 || len(kept[i].claims) == 0 || kept[i].class == slowGrowth || kept[i].alone || e.alone && kept[i].Kind != "quota" {
				continue
			}
			shared := r.shared(kept[i].claims, e.claims)
			if shared > min(r.sum(kept[i].claims), r.sum(e.claims))/2 && !r.hides(&kept[i], &e) {
				into = i
				break
			}
		}
		if into < 0 {
			kept = append(kept, e)
			continue
		}
		k := &kept[into]
		if e.Explained > k.Explained && r.shared(k.claims, e.claims) > r.sum(e.claims)/2 {
			k.Explained, k.Lo, k.Hi, k.score = e.Explained, e.Lo, e.Hi, max(k.score, e.score)
		}
		if k.HeadroomMS == nil {
			k.HeadroomMS = e.HeadroomMS
		}
		if k.Kind == "rare_steps" && e.Kind != "hot_line" && e.Kind != "kernel" && e.rank > k.rank && e.sentence != "" {
			// What makes steps heavy is the cause that a reader looks for.
			k.Evidence, k.Advice, k.Place = "In them: "+e.sentence, e.Advice, e.Place
		}
		if k.Place == "" {
			k.Place = e.Place
		}
	}
	slices.SortStableFunc(kept, func(a, b Explanation) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(b.score, a.score), cmp.Compare(a.rank, b.rank))
	})
	return kept
}

// muchMore is how many times as long a part of an explanation must be as what an earlier kind claims in it, not to be
// named by that.
const muchMore = 3

// hides reports whether an explanation would disappear behind a small part of it: most of its time is not the other's, and
// not the model's own operators either, which are what the job is for.
func (r *Recording) hides(small, large *Explanation) bool {
	rest := 0.0
	for i, part := range large.claims {
		if row := &r.Rows[i]; !row.Stack.isModel() {
			rest += max(0, part-small.claims[i]) * row.NS
		}
	}
	return rest >= leastShare*r.Wall() && rest > muchMore*r.sum(small.claims)
}

func (r *Recording) shared(a, b map[int]float64) (ns float64) {
	for i, part := range a {
		ns += min(part, b[i]) * r.Rows[i].NS
	}
	return ns
}
