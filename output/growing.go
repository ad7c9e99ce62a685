package output

import (
	"slices"
	"sync"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// growing buffers the rows of a table until they fill a row group. There are
// two buffers: one fills while the writer works on the other.
type growing[T any] struct {
	writer *writer
	table  *table[T]
	rows   []T
	free   chan []T
	file   *growingFile
}

func newGrowing[T any](w *writer, t *table[T]) *growing[T] {
	g := &growing[T]{writer: w, table: t, free: make(chan []T, 1), file: w.addGrowing(t.Name, t.fileColumns())}
	g.free <- nil
	return g
}

func (g *growing[T]) add(rows []T) {
	for len(rows) > 0 {
		n := min(len(rows), RowGroupRows-len(g.rows))
		if len(g.rows)+n > RowGroupRows/32 { // more than a trickle: no growing by and by
			g.rows = slices.Grow(g.rows, RowGroupRows-len(g.rows))
		}
		g.rows = append(g.rows, rows[:n]...)
		rows = rows[n:]
		if len(g.rows) == RowGroupRows {
			g.flush()
		}
	}
}

// flush hands the buffer to the writer as a row group. It blocks while the
// writer is two row groups behind.
func (g *growing[T]) flush() {
	if len(g.rows) == 0 {
		return
	}
	rows := g.rows
	g.rows = <-g.free
	g.writer.submit(job{
		run: func() error {
			return g.writer.writeRowGroup(g.file, len(rows), func(f *openFile) error {
				return g.table.writeRowGroup(f.parquet, &g.writer.scratch, g.writer.session, rows)
			})
		},
		done: func(error) {
			clear(rows) // lets go of Details
			g.free <- rows[:0]
		},
	})
}

// small keeps the rows of a table that stays small, by key.
type small[K comparable, T any] struct {
	table *table[T]
	key   func(T) K

	mu    sync.Mutex
	rows  []T
	index map[K]int
	dirty bool
}

func newSmall[K comparable, T any](w *writer, t *table[T], key func(T) K) *small[K, T] {
	s := &small[K, T]{table: t, key: key, index: map[K]int{}, dirty: true}
	w.addSmall(t.Name, t.fileColumns(), s.take, func(f *openFile, rows any) error {
		return writeAll(f, w, t, rows.([]T))
	})
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

// put adds or replaces a row and says whether its key is new.
func (s *small[K, T]) put(row T) (added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = true
	k := s.key(row)
	if i, ok := s.index[k]; ok {
		s.rows[i] = row
		return false
	}
	s.index[k] = len(s.rows)
	s.rows = append(s.rows, row)
	return true
}

func (s *small[K, T]) replace(rows []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.dirty = rows, true
}

func (s *small[K, T]) snapshot() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rows)
}

// take returns the rows when they changed since the last take.
func (s *small[K, T]) take() (rows any, n int, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, s.dirty = s.dirty, false
	return slices.Clone(s.rows), len(s.rows), changed
}

type threadKey struct {
	pid, tid int32
	started  int64
}

func keyOfThread(t event.Thread) threadKey {
	started, _ := ofInt64(t.StartedNS)
	return threadKey{t.PID, t.TID, started}
}

type libraryKey struct {
	pid   int32
	path  string
	start int64
}

func keyOfLibrary(l event.Library) libraryKey {
	return libraryKey{l.PID, l.Path, l.StartAddress}
}

type probeKey struct {
	pid                   int32
	library, symbol, kind string
	site                  int64
}

func keyOfProbe(p event.Probe) probeKey {
	site := int64(-1)
	if p.Site != nil {
		site = *p.Site
	}
	return probeKey{p.PID, p.Library, p.Symbol, p.Kind, site}
}
