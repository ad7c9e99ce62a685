// Package hang says who keeps whom waiting: which rank of a group has not come to the
// collective in which the others are. It owns the verdict and its words; what is open, and
// how far each rank has come arrives in plain values: of a dataset or a store by package
// evidence, of a job that is recorded now by package live.
package hang

import "sort"

// Report is what waits in a dataset, one entry for each group of ranks.
type Report struct {
	Groups []Group `json:"groups"`
	// Unseen is what waits in collectives whose begin was not recorded; nil: nothing.
	Unseen *Unseen `json:"unseen,omitempty"`
	// Standing are all processes with threads that stood still when the dataset was written last.
	Standing []Process `json:"standing,omitempty"`
}

// Group is a group of ranks of which some wait.
type Group struct {
	Name       string  `json:"name"` // what the job calls it, or PyTorch; "" without a name
	Ranks      int     `json:"ranks"`
	Number     int64   `json:"sequence_number"` // of the collective in which the first of them wait
	Collective string  `json:"collective"`
	Seconds    float64 `json:"seconds"` // since the first rank asked for it, when the table was written
	Waiting    []Rank  `json:"waiting"`
	Missing    []Rank  `json:"missing"`
	// Mismatch: ranks have asked for different collectives under the same number.
	Mismatch bool `json:"mismatch"`
}

// Rank is one rank of such a group.
type Rank struct {
	Rank       int    `json:"rank"`
	PID        *int64 `json:"pid"`         // null: not in the recording
	LastNumber *int64 `json:"last_number"` // the last collective that it asked for
	Collective string `json:"collective,omitempty"`
	Ended      bool   `json:"ended"`             // its process has
	Stopped    string `json:"stopped,omitempty"` // by what, where its process can't run
	// Place is the innermost line of its own code: where it waits, or where a rank that is
	// missing was seen last. "" is not known.
	Place   string `json:"place,omitempty"`
	Sampled bool   `json:"sampled"` // Place is of its last sample
	// Threads are where its threads stood when one of the ranks stood still.
	Threads []Thread `json:"threads,omitempty"`
	Host    string   `json:"host,omitempty"`

	in int // which recording
}

// Analyse judges recordings of one job, of several nodes perhaps: a group of ranks has the
// same name on all of them.
func Analyse(all ...*Recording) *Report {
	groups := map[int64][]Member{}
	var order []int64
	for i, r := range all {
		for _, m := range r.Members {
			if groups[m.Group] == nil {
				order = append(order, m.Group)
			}
			m.in = i
			groups[m.Group] = append(groups[m.Group], m)
		}
	}
	report := &Report{Groups: []Group{}}
	for _, id := range order {
		ranks := groups[id]
		sort.SliceStable(ranks, func(i, j int) bool { return ranks[i].Rank < ranks[j].Rank })
		g, ok := judge(ranks, func(m *Member) (Wait, bool) { w, ok := all[m.in].Waits[Of{id, m.PID}]; return w, ok })
		if !ok {
			continue
		}
		for i := range g.Waiting {
			w := &g.Waiting[i]
			r := all[w.in]
			w.Host, w.Threads, w.Stopped = r.Host, r.Threads[*w.PID], haltOf(r.Threads[*w.PID])
			w.Place = r.waitsAt(Of{id, *w.PID})
		}
		if !g.byThreads() {
			continue
		}
		for i := range g.Missing {
			if m := &g.Missing[i]; m.PID != nil {
				all[m.in].find(m)
			}
		}
		report.Groups = append(report.Groups, *g)
	}
	sort.SliceStable(report.Groups, func(i, j int) bool { return report.Groups[i].Seconds > report.Groups[j].Seconds })
	for i, r := range all {
		r.unseen(i, report)
		r.standing(report)
	}
	if u := report.Unseen; u != nil && len(u.Waiting) == 0 {
		report.Unseen = nil
	}
	return report
}

// mostMissing bounds how many ranks without a row are listed.
const mostMissing = 1 << 12

// judge tells those who wait in the group's first open collective from those who have not
// come to it; false where none waits.
func judge(ranks []Member, waits func(*Member) (Wait, bool)) (*Group, bool) {
	g := &Group{Name: ranks[0].Name, Ranks: int(ranks[0].Ranks), Waiting: []Rank{}, Missing: []Rank{}}
	first := true
	for i := range ranks {
		k := &ranks[i]
		if o, ok := waits(k); ok && !k.Ended && (first || o.Number < g.Number) {
			g.Number, first = o.Number, false
		}
	}
	if first {
		return nil, false
	}
	here, rows := map[int64]Rank{}, map[int64]*Member{}
	for i := range ranks { // of a rank that has had several processes, the one that came furthest is last
		k := &ranks[i]
		pid := k.PID
		r := Rank{in: k.in, Rank: int(k.Rank), PID: &pid, LastNumber: k.Number, Collective: k.Collective, Ended: k.Ended}
		here[k.Rank], rows[k.Rank] = r, k
		o, waiting := waits(k)
		if !waiting || o.Number != g.Number || k.Ended {
			continue
		}
		g.Seconds = max(g.Seconds, o.Seconds)
		g.Mismatch = g.Mismatch || g.Collective != "" && g.Collective != o.Collective
		g.Collective = o.Collective
	}
	for rank := range min(g.Ranks, mostMissing) {
		r, ok := here[int64(rank)]
		switch {
		case !ok:
			g.Missing = append(g.Missing, Rank{Rank: rank})
		case r.Ended || r.LastNumber == nil || *r.LastNumber < g.Number:
			g.Missing = append(g.Missing, r)
		default:
			if o, waiting := waits(rows[int64(rank)]); waiting && o.Number == g.Number {
				r.Collective = o.Collective
				g.Waiting = append(g.Waiting, r)
			}
		}
	}
	return g, true
}
