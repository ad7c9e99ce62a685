package output

import (
	"slices"

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
