package output

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ebpfprof/ebpfprof/internal/directory"
	"github.com/ebpfprof/ebpfprof/output/columnfile"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TableStats counts what was written to one table.
type TableStats struct {
	Table string
	Rows  int64 // written, whether or not in a closed file yet
	Bytes int64
	Files int // closed
}

// job is one piece of work for the writer's goroutine. Its done, if any, is
// called with the result even when an earlier error keeps run from running.
type job struct {
	run  func() error
	done func(error)
	last bool // the goroutine ends after it
}

// writer owns all files of a dataset. Everything below jobs belongs to its
// goroutine.
type writer struct {
	dir         *directory.Directory
	rotateBytes int64
	jobs        chan job
	finished    chan struct{}

	failed atomic.Pointer[error]
	stats  struct {
		sync.Mutex
		tables []*TableStats
	}

	session string
	tool    string
	encoder *columnfile.Encoder
	scratch scratch
	growing []*growingFile
	small   []*smallFile
}

// growingFile is the state of a table that grows.
type growingFile struct {
	name     string
	columns  []columnfile.Column
	stats    *TableStats
	sequence int
	open     *openFile
}

// smallFile is the state of a table that is rewritten whole, but for final rows.
type smallFile struct {
	name     string
	columns  []columnfile.Column
	stats    *TableStats
	rows     smallRows
	write    func(*openFile, any) error
	pending  bool // taken, not published
	sequence int
	final    TableStats // of the files of final rows
}

// takenRows are those of a small table at one moment.
type takenRows struct {
	rows    any // to be written again
	count   int
	leaving any // to be written once
	left    int
}

type smallRows interface {
	// take returns the rows, and whether they changed since the last take.
	take() (t takenRows, changed bool)
	// published forgets so many of those that were leaving.
	published(leaving int)
}

func newWriter(dir *directory.Directory, rotateBytes int64) (*writer, error) {
	encoder, err := columnfile.NewEncoder()
	if err != nil {
		return nil, err
	}
	return &writer{dir: dir, rotateBytes: rotateBytes, encoder: encoder, jobs: make(chan job, 1), finished: make(chan struct{})}, nil
}

func (w *writer) addStats(name string) *TableStats {
	s := &TableStats{Table: name}
	w.stats.tables = append(w.stats.tables, s)
	return s
}

func (w *writer) addGrowing(name string, columns []columnfile.Column) *growingFile {
	g := &growingFile{name: name, columns: columns, stats: w.addStats(name)}
	w.growing = append(w.growing, g)
	return g
}

func (w *writer) addSmall(s *smallFile) {
	s.stats = w.addStats(s.name)
	w.small = append(w.small, s)
}

// setSession comes before the first job.
func (w *writer) setSession(r event.Recording) {
	if w.session == "" {
		w.session, w.tool = r.ID, r.ToolVersion
	}
}

func (w *writer) run() {
	defer close(w.finished)
	for {
		j := <-w.jobs
		err := w.failure()
		if err == nil {
			if err = j.run(); err != nil {
				err = w.fail(err)
			}
		}
		if j.done != nil {
			j.done(err)
		}
		if j.last {
			return
		}
	}
}

// fail keeps the first error and gives up the unfinished files.
func (w *writer) fail(err error) error {
	err = explain(w.dir.Path(), err)
	w.failed.Store(&err)
	for _, g := range w.growing {
		w.abandon(g)
	}
	return err
}

func (w *writer) abandon(g *growingFile) {
	if g.open == nil {
		return
	}
	w.count(g.stats, -g.open.parquet.Rows(), -g.open.counted, 0)
	g.open.discard()
	g.open = nil
}

func (w *writer) failure() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// submit queues a job, or drops it when the goroutine has ended.
func (w *writer) submit(j job) {
	select {
	case w.jobs <- j:
	case <-w.finished:
	}
}

// do has the goroutine run f and waits for it.
func (w *writer) do(f func() error) error {
	result := make(chan error, 1)
	w.submit(job{run: f, done: func(err error) { result <- err }})
	select {
	case err := <-result:
		return err
	case <-w.finished:
		return ErrClosed
	}
}

// start has the goroutine run f; an error shows in a later call.
func (w *writer) start(f func() error) error {
	w.submit(job{run: f})
	return w.failure()
}

// close publishes everything and ends the goroutine. After an error the small
// tables are still tried: what they say about the rest is worth most then, and
// giving up the unfinished files may have made room.
func (w *writer) close() error {
	w.submit(job{last: true, run: func() error {
		if w.session == "" {
			return nil
		}
		return w.publish()
	}})
	<-w.finished
	if err := w.failure(); err != nil {
		_ = w.publishSmall()
		return err
	}
	return nil
}

// writeRowGroup writes rows to the table's file, a new one if need be, and
// rotates when it has grown enough.
func (w *writer) writeRowGroup(g *growingFile, rows int, write func(*openFile) error) error {
	if g.open == nil {
		g.sequence++
		f, err := w.create(g.name, fmt.Sprintf("%s-%06d.parquet", w.session, g.sequence), g.columns)
		if err != nil {
			return err
		}
		g.open = f
	}
	if err := write(g.open); err != nil {
		return err
	}
	size := g.open.parquet.Size()
	w.count(g.stats, int64(rows), size-g.open.counted, 0)
	g.open.counted = size
	if size >= w.rotateBytes {
		return w.publish()
	}
	return nil
}

// publish makes everything written so far visible.
func (w *writer) publish() error { return w.publishThese(w.growing, w.small) }

// publishGrowing makes visible what was written of one table.
func (w *writer) publishGrowing(g *growingFile) error {
	return w.publishThese([]*growingFile{g}, nil)
}

// publishSmall rewrites the small tables that changed.
func (w *writer) publishSmall() error { return w.publishThese(nil, w.small) }

// publishNamed is publishSmall of the tables with these names.
func (w *writer) publishNamed(names ...string) error {
	var small []*smallFile
	for _, s := range w.small {
		if slices.Contains(names, s.name) {
			small = append(small, s)
		}
	}
	return w.publishThese(nil, small)
}

func (w *writer) publishThese(growing []*growingFile, small []*smallFile) error {
	var all []*due
	for _, g := range growing {
		if g.open != nil {
			all = append(all, w.dueGrowing(g))
		}
	}
	var failed error
	for _, s := range small {
		d, err := w.dueSmall(s)
		if err != nil {
			failed = err
			break
		}
		if d != nil {
			all = append(all, d)
		}
	}
	return errors.Join(publishTogether(all), failed)
}

func (w *writer) dueGrowing(g *growingFile) *due {
	f := g.open
	g.open = nil
	return &due{
		files:     []*openFile{f},
		published: func() { w.count(g.stats, 0, f.parquet.Size()-f.counted, 1) },
		failed:    func() { w.count(g.stats, -f.parquet.Rows(), -f.counted, 0) },
	}
}

// dueSmall writes a small table that changed, nil if it did not. Final rows leave the
// file that is rewritten in the moment in which they get their own.
func (w *writer) dueSmall(s *smallFile) (*due, error) {
	t, changed := s.rows.take()
	if !changed && !s.pending {
		return nil, nil
	}
	s.pending = true
	var final *openFile
	var files []*openFile
	if t.left > 0 {
		var err error
		if final, err = w.writeSmall(s, fmt.Sprintf("%s-%06d.parquet", w.session, s.sequence+1), t.leaving); err != nil {
			return nil, err
		}
		files = append(files, final)
	}
	again, err := w.writeSmall(s, w.session+".parquet", t.rows)
	if err != nil {
		if final != nil {
			final.discard()
		}
		return nil, err
	}
	return &due{files: append(files, again), published: func() {
		s.pending = false
		if final != nil {
			s.sequence++
			s.rows.published(t.left)
			s.final.Rows += int64(t.left)
			s.final.Bytes += final.parquet.Size()
			s.final.Files++
		}
		w.stats.Lock()
		defer w.stats.Unlock()
		*s.stats = TableStats{
			Table: s.name, Rows: s.final.Rows + int64(t.count), Bytes: s.final.Bytes + again.parquet.Size(), Files: s.final.Files + 1,
		}
	}}, nil
}

// writeSmall writes a small table's rows under a hidden name.
func (w *writer) writeSmall(s *smallFile, name string, rows any) (*openFile, error) {
	f, err := w.create(s.name, name, s.columns)
	if err != nil {
		return nil, err
	}
	if err := s.write(f, rows); err != nil {
		f.discard()
		return nil, err
	}
	return f, nil
}

func (w *writer) count(s *TableStats, rows, bytes int64, files int) {
	w.stats.Lock()
	defer w.stats.Unlock()
	s.Rows += rows
	s.Bytes += bytes
	s.Files += files
}

func (w *writer) statistics() []TableStats {
	w.stats.Lock()
	defer w.stats.Unlock()
	var all []TableStats
	for _, s := range w.stats.tables {
		all = append(all, *s)
	}
	return all
}
