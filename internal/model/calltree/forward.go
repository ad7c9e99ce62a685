package calltree

import (
	"errors"
	"iter"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// forwards finds the forward operator of a backward node without holding all edges of
// a long recording: an edge is read when its node begins, and an operator's place is
// kept as long as the recorder itself keeps operators to join nodes with.
type forwards struct {
	edges  *edges
	from   map[rowKey]int64 // by the node that has not begun, its operator
	wanted map[rowKey]bool  // operators that an edge was read of before they began, as in imports
	places kept[*Node]      // of operators that a node may come of
}

// mostKept is how many operators the recorder looks back (maxForwards in package tracer).
const mostKept = 500_000

// kept is a map of the latest entries: between mostKept/2 and mostKept of them.
type kept[V any] struct{ young, old map[rowKey]V }

func (k *kept[V]) put(key rowKey, v V) {
	if len(k.young) >= mostKept/2 {
		k.old, k.young = k.young, nil
	}
	if k.young == nil {
		k.young = map[rowKey]V{}
	}
	k.young[key] = v
}

func (k *kept[V]) get(key rowKey) (V, bool) {
	v, ok := k.young[key]
	if !ok {
		v, ok = k.old[key]
	}
	return v, ok
}

// edges are those of table flow from operators to backward nodes, in order of time.
type edges struct {
	next  func() (*dataset.Batch, bool)
	stop  func()
	batch *dataset.Batch
	at    int
	err   error
}

var errStopped = errors.New("no more edges are wanted")

const (
	edgeTime = iota
	edgeFrom
	edgeTo
	edgeKind
	edgeSession
)

func (l *loader) openEdges() *edges {
	e := &edges{}
	scan := dataset.Scan{Table: "flow", Columns: []string{"ts_ns", "from_span_id", "to_span_id", "kind", "session_id"}}
	e.next, e.stop = iter.Pull(func(yield func(*dataset.Batch) bool) {
		err := l.db.Scan(l.ctx, scan, func(b *dataset.Batch) error {
			if !yield(b) {
				return errStopped
			}
			return nil
		})
		if !errors.Is(err, errStopped) {
			e.err = err
		}
	})
	return e
}

// until takes the edges whose nodes have begun by a time.
func (f *forwards) until(t int64) {
	for e := f.edges; ; {
		if e.batch == nil || e.at == e.batch.Rows {
			if e.next == nil {
				return
			}
			b, more := e.next()
			if !more {
				e.batch, e.next = nil, nil
				return
			}
			e.batch, e.at = b, 0
			continue
		}
		c := e.batch.Columns
		if c[edgeTime][e.at] > t {
			return
		}
		if e.batch.Text(c[edgeKind][e.at]) == "forward_backward" {
			session := e.batch.Text(c[edgeSession][e.at])
			from, to := c[edgeFrom][e.at], rowKey{session, c[edgeTo][e.at]}
			f.from[to] = from
			if operator := (rowKey{session, from}); !f.began(operator) {
				f.wanted[operator] = true
			}
		}
		e.at++
	}
}

func (f *forwards) began(operator rowKey) bool {
	_, ok := f.places.get(operator)
	return ok
}

// of is where the forward operator of a row stands, if it is a node's, or an operator's
// that stands for one.
func (f *forwards) of(r *row) *Node {
	if len(f.from) == 0 {
		return nil
	}
	from, ok := f.from[r.key]
	if !ok {
		return nil
	}
	delete(f.from, r.key)
	place, _ := f.places.get(rowKey{r.key.session, from})
	return place
}

// note keeps where an operator stands that a node may come of.
func (f *forwards) note(r *row, at *Node) {
	may := r.layer == "op" && r.sequence != dataset.Absent
	if !may && len(f.wanted) > 0 {
		may = f.wanted[r.key]
	}
	if may {
		f.places.put(r.key, at)
		delete(f.wanted, r.key)
	}
}
