package export

import (
	"database/sql/driver"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// edges are those from forward operators to backward nodes. A long recording has millions, so that
// they are sorted in pieces.
type edges struct {
	from    index // by the operator: its node; one each, and one to each
	targets index // by the node
}

// edges reads them: of several to a node the first one counts, of several from an operator that to
// the lowest.
func (s *stream) edges() (*edges, error) {
	e := &edges{}
	byTarget, bySource, kept := &sorter{}, &sorter{}, &sorter{}
	defer func() { byTarget.close(); bySource.close(); kept.close() }()
	const from, to, kind = 1, 2, 3
	whole, err := s.bothEnds()
	if err != nil {
		return nil, err
	}
	err = s.db.Scan(s.ctx, dataset.Scan{Table: "flow", Columns: []string{"ts_ns", "from_span_id", "to_span_id", "kind"}},
		func(b *dataset.Batch) error {
			for i := range b.Rows {
				x := pair{b.Columns[to][i], b.Columns[from][i]}
				if whole != nil && !whole[x] || x.key <= 0 || x.value <= 0 || b.Text(b.Columns[kind][i]) != "forward_backward" {
					continue
				}
				if err := byTarget.add(x); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	if err := s.firsts(byTarget, func(p pair) error { return bySource.add(pair{p.value, p.key}) }); err != nil {
		return nil, err
	}
	err = s.firsts(bySource, func(p pair) error {
		if err := e.from.add(p); err != nil {
			return err
		}
		return kept.add(pair{key: p.value})
	})
	if err == nil {
		err = s.firsts(kept, e.targets.add)
	}
	if err == nil {
		err = e.from.done()
	}
	if err == nil {
		err = e.targets.done()
	}
	if err != nil {
		e.close()
	}
	return e, err
}

// bothEnds are the edges of which both ends are written, where a part of the time is; nil is all.
// They are held: a part is what somebody looks at.
func (s *stream) bothEnds() (map[pair]bool, error) {
	if !s.db.Part().Windowed() {
		return nil, nil
	}
	whole := map[pair]bool{}
	err := s.db.Each(s.ctx, `SELECT to_span_id, from_span_id FROM flow WHERE kind = 'forward_backward'
		AND (session_id, from_span_id) IN (SELECT (session_id, span_id) FROM export_span)
		AND (session_id, to_span_id) IN (SELECT (session_id, span_id) FROM export_span)`,
		func(v []driver.Value) error {
			to, _ := v[0].(int64)
			from, _ := v[1].(int64)
			whole[pair{to, from}] = true
			return nil
		})
	return whole, err
}

// firsts calls f for the first pair of each key.
func (s *stream) firsts(sorted *sorter, f func(pair) error) error {
	last := int64(0) // no key is
	n := 0
	return sorted.each(func(p pair) error {
		if n++; n%(1<<16) == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if p.key == last {
			return nil
		}
		last = p.key
		return f(p)
	})
}

// target is where the edge from an operator leads.
func (e *edges) target(id int64) (to int64, is bool) { return e.from.find(id) }

func (e *edges) isTarget(id int64) bool {
	_, is := e.targets.find(id)
	return is
}

// failed is the first error of a lookup.
func (e *edges) failed() error {
	if e.from.err != nil {
		return e.from.err
	}
	return e.targets.err
}

func (e *edges) close() {
	e.from.close()
	e.targets.close()
}
