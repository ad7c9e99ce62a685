package export

import (
	"cmp"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// edges are those from forward operators to backward nodes: 24 bytes each, since a
// long recording has millions.
type edges struct {
	all     []edge // in order of from; one of each, and one to each
	targets ids    // in order
	from    ids
}

type edge struct{ from, to int64 }

// ids are looked up in about their own order.
type ids struct {
	n  int
	of func(i int) int64
	at int
}

// stepsAside is how far a search looks beside the last one before it begins anew.
const stepsAside = 8

func (x *ids) find(id int64) (int, bool) {
	i := x.at
	for range stepsAside {
		if i < x.n && x.of(i) < id {
			i++
		} else if i > 0 && x.of(i-1) >= id {
			i--
		} else {
			break
		}
	}
	if i < x.n && x.of(i) < id || i > 0 && x.of(i-1) >= id {
		low, high := 0, x.n
		for low < high {
			if middle := (low + high) / 2; x.of(middle) < id {
				low = middle + 1
			} else {
				high = middle
			}
		}
		i = low
	}
	x.at = i
	return i, i < x.n && x.of(i) == id
}

func (s *stream) edges() (*edges, error) {
	// Counted first: a slice that grows takes twice what it holds.
	var most int64
	if err := s.db.Row(s.ctx, "SELECT count(*) FROM flow WHERE kind = 'forward_backward'", nil, &most); err != nil {
		return nil, err
	}
	e := &edges{all: make([]edge, 0, most)}
	const from, to, kind = 1, 2, 3
	err := s.db.Scan(s.ctx, dataset.Scan{Table: "flow", Columns: []string{"ts_ns", "from_span_id", "to_span_id", "kind"}}, func(b *dataset.Batch) error {
		for i := range b.Rows {
			if x := (edge{b.Columns[from][i], b.Columns[to][i]}); x.from > 0 && x.to > 0 && b.Text(b.Columns[kind][i]) == "forward_backward" {
				e.all = append(e.all, x)
			}
		}
		return nil
	})
	slices.SortStableFunc(e.all, func(a, b edge) int { return cmp.Compare(a.to, b.to) })
	e.all = slices.CompactFunc(e.all, func(a, b edge) bool { return a.to == b.to })
	slices.SortStableFunc(e.all, func(a, b edge) int { return cmp.Compare(a.from, b.from) })
	e.all = slices.CompactFunc(e.all, func(a, b edge) bool { return a.from == b.from })
	targets := make([]int64, len(e.all))
	for i, x := range e.all {
		targets[i] = x.to
	}
	slices.Sort(targets)
	e.from = ids{n: len(e.all), of: func(i int) int64 { return e.all[i].from }}
	e.targets = ids{n: len(targets), of: func(i int) int64 { return targets[i] }}
	return e, err
}

// target is where the edge from an operator leads.
func (e *edges) target(id int64) (to int64, is bool) {
	i, is := e.from.find(id)
	if !is {
		return 0, false
	}
	return e.all[i].to, true
}

func (e *edges) isTarget(id int64) bool {
	_, is := e.targets.find(id)
	return is
}
