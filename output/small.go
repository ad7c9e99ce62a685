package output

import (
	"slices"
	"sync"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// small keeps the rows of a table that stays small, by key. It is rewritten whole at
// each rotation. Rows that are final, of a process or a thread that has ended, are
// not: they go into a file of their own at the next rotation, and are forgotten.
type small[K comparable, T any] struct {
	table *table[T]
	key   func(T) K
	final func(*T) bool // nil: none is

	mu      sync.Mutex
	rows    []T
	index   map[K]int
	dirty   bool
	any     bool
	leaving []T           // final, and not published yet
	left    recentKeys[K] // of final rows: later reports of them add nothing
}

func newSmall[K comparable, T any](w *writer, t *table[T], key func(T) K, final func(*T) bool) *small[K, T] {
	s := &small[K, T]{table: t, key: key, final: final, index: map[K]int{}, dirty: true}
	w.addSmall(&smallFile{name: t.Name, columns: t.fileColumns(), rows: s, write: func(f *openFile, rows any) error {
		return writeAll(f, w, t, rows.([]T))
	}})
	return s
}

func writeAll[T any](f *openFile, w *writer, t *table[T], rows []T) error {
	for group := range slices.Chunk(rows, RowGroupRows) {
		if err := t.writeRowGroup(f.parquet, &w.scratch, w.session, group); err != nil {
			return err
		}
	}
	return nil
}

// put adds or replaces a row and says whether it is the table's first.
func (s *small[K, T]) put(row T) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, s.any = !s.any, true
	k := s.key(row)
	if s.final != nil && s.left.has(k) {
		return first
	}
	s.dirty = true
	i, known := s.index[k]
	switch {
	case !known:
		s.index[k] = len(s.rows)
		s.rows = append(s.rows, row)
	case s.final == nil || !s.final(&s.rows[i]): // the first report of the end stays
		s.rows[i] = row
	}
	return first
}

// putAll puts rows and says whether the table's first is one of them.
func (s *small[K, T]) putAll(rows []T) (first bool) {
	for i := range rows {
		first = s.put(rows[i]) || first
	}
	return first
}

func (s *small[K, T]) replace(rows []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.dirty = rows, true
}

// take implements smallRows.
func (s *small[K, T]) take() (t takenRows, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, s.dirty = s.dirty, false
	if s.final != nil && slices.ContainsFunc(s.rows, func(row T) bool { return s.final(&row) }) {
		s.part()
	}
	return takenRows{slices.Clone(s.rows), len(s.rows), slices.Clone(s.leaving), len(s.leaving)}, changed
}

// part takes the final rows out of those that are written again.
func (s *small[K, T]) part() {
	stay := make([]T, 0, len(s.rows))
	clear(s.index)
	for i := range s.rows {
		k := s.key(s.rows[i])
		if s.final(&s.rows[i]) {
			s.left.add(k)
			s.leaving = append(s.leaving, s.rows[i])
			continue
		}
		s.index[k] = len(stay)
		stay = append(stay, s.rows[i])
	}
	s.rows = stay
}

// published implements smallRows.
func (s *small[K, T]) published(leaving int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = slices.Clone(s.leaving[leaving:])
}

// recentKeys are those that were added last: between half of maxRecentKeys and all.
type recentKeys[K comparable] struct{ young, old map[K]struct{} }

const maxRecentKeys = 1 << 16

func (r *recentKeys[K]) has(k K) bool {
	_, young := r.young[k]
	_, old := r.old[k]
	return young || old
}

func (r *recentKeys[K]) add(k K) {
	if r.young == nil || len(r.young) >= maxRecentKeys/2 {
		r.young, r.old = map[K]struct{}{}, r.young
	}
	r.young[k] = struct{}{}
}

func processEnded(p *event.Process) bool { return p.EndedNS != nil }

func threadEnded(t *event.Thread) bool { return t.EndedNS != nil }

func probeGone(p *event.Probe) bool { return p.Gone }

// libraryEnded: nothing is added to what is known of a mapping.
func libraryEnded(*event.Library) bool { return true }
