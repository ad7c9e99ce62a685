package registrar

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/dataset/manifest"
	"github.com/ebpfprof/ebpfprof/internal/fleet/iceberg"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// tables that are merged, and how their rows are.
var tables = map[string]func() merging{
	"pattern":     rowsOf[store.PatternRow],
	"worker_step": rowsOf[store.StepRow],
	"upload":      rowsOf[store.UploadRow],

	store.HangTable:    rowsOf[store.HangRow],
	store.FailureTable: rowsOf[store.FailureRow],
}

// merging takes files, and makes one.
type merging interface {
	// columns are those of its rows, as Iceberg has them.
	columns() []iceberg.Column
	// add takes a file, or says why it does not.
	add(content []byte) (why, err error)
	bytes() int64 // of what it has made so far
	finish() (content []byte, rows int64, err error)
}

// errNewer is of a file with columns that this version does not know: they would be lost.
var errNewer = errors.New("written by a newer version")

// rows of one type.
type rows[T any] struct {
	schema *parquet.Schema
	known  map[string]bool
	out    bytes.Buffer
	writer *parquet.GenericWriter[T]
	count  int64
}

// rowGroupRows is how many rows a row group of a merged file has: readers skip those whose
// times are not wanted.
const rowGroupRows = 50_000

func rowsOf[T any]() merging {
	r := &rows[T]{schema: parquet.SchemaOf(new(T)), known: map[string]bool{}}
	for _, column := range r.schema.Columns() {
		r.known[strings.Join(column, ".")] = true
	}
	return r
}

func (r *rows[T]) add(content []byte) (why, err error) {
	all, why := r.decode(content)
	if why != nil {
		return why, nil
	}
	if r.writer == nil {
		r.writer = parquet.NewGenericWriter[T](&r.out, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroupRows))
	}
	_, err = r.writer.Write(all)
	r.count += int64(len(all))
	return nil, err
}

// mostRows of a small file: who may write into the store must not fill the memory.
const mostRows = 4 << 20

// decode reads all rows. The reader was not made for files of others: it may panic.
func (r *rows[T]) decode(content []byte) (all []T, err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("it is damaged: %v", what)
		}
	}()
	file, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	for _, column := range file.Schema().Columns() {
		if !r.known[strings.Join(column, ".")] {
			return nil, errNewer
		}
	}
	if file.NumRows() > mostRows {
		return nil, fmt.Errorf("%d rows are too many", file.NumRows())
	}
	all, err = parquet.Read[T](bytes.NewReader(content), int64(len(content)))
	if err == nil && int64(len(all)) != file.NumRows() {
		err = fmt.Errorf("%d of %d rows can be read", len(all), file.NumRows())
	}
	return all, err
}

func (r *rows[T]) bytes() int64 { return int64(r.out.Len()) }

func (r *rows[T]) finish() ([]byte, int64, error) {
	if r.writer == nil {
		return nil, 0, nil
	}
	if err := r.writer.Close(); err != nil {
		return nil, 0, err
	}
	content, count := bytes.Clone(r.out.Bytes()), r.count
	r.writer, r.count = nil, 0
	r.out.Reset()
	// What is not as it was written must not take the place of what is.
	file, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil || file.NumRows() != count {
		return nil, 0, errors.Join(err, fmt.Errorf("a merged file of %d rows cannot be read again", count))
	}
	return content, count, nil
}

// Bounds of what is merged into one generation.
const (
	mostMerged      = 10_000
	mostMergedBytes = 256 << 20
)

// merge makes large files of small ones, and has them count instead. More is whether there
// may be more to merge.
func (p *pass) merge(d day, keys []string, m *manifest.Manifest, into merging) (more bool, err error) {
	small := p.small(d, keys, m)
	if len(small) < max(p.Least, 2) {
		return false, nil
	}
	if p.DryRun {
		p.Merged += len(small)
		return false, nil
	}
	next := int64(1)
	if m != nil {
		next = m.Generation + 1
	}
	w := &writing{pass: p, day: d, generation: next, into: into}
	for _, key := range small {
		if len(w.of) >= mostMerged || w.read > mostMergedBytes {
			more = true
			break
		}
		if err := w.add(key); errors.Is(err, fs.ErrNotExist) {
			p.OtherRuns++ // it was merged and removed meanwhile
			return false, w.drop()
		} else if err != nil {
			return false, errors.Join(err, w.drop())
		}
	}
	if err := w.flush(); err != nil {
		return false, errors.Join(err, w.drop())
	}
	if len(w.of) < 2 {
		return false, w.drop()
	}
	won, err := p.commit(d, m.Next(p.Now().UnixNano(), w.of, w.made))
	if err != nil {
		return false, err // whether it counts is not known: what was made stays for the next pass
	}
	if !won {
		p.OtherRuns++
		return false, w.drop()
	}
	p.Merged, p.Into = p.Merged+len(w.of), p.Into+len(w.made)
	for _, f := range w.made {
		p.Rows += f.Rows
	}
	p.Waiting += len(w.of)
	return more, nil
}

// small are the keys of the files that count and are not large, in order of their times.
func (p *pass) small(d day, keys []string, m *manifest.Manifest) (small []string) {
	large := map[string]bool{}
	if m != nil {
		for _, f := range m.Files {
			large[f.Name] = f.Bytes >= p.Target/2
		}
	}
	for _, key := range keys {
		name := path.Base(key)
		_, made := manifest.GenerationOf(name)
		if m.Counts(name) && !large[name] && (made || manifest.Uploaded(name)) && !p.damaged[key] {
			small = append(small, key)
		}
	}
	slices.SortStableFunc(small, func(a, b string) int { return store.Entry{Key: a}.At().Compare(store.Entry{Key: b}.At()) })
	// One merged file, and hardly anything new: it is not written again for that.
	uploaded := 0
	for _, key := range small {
		if manifest.Uploaded(path.Base(key)) {
			uploaded++
		}
	}
	if uploaded < p.Least && len(small)-uploaded < p.Least {
		return nil
	}
	return small
}

// writing is what becomes a generation.
type writing struct {
	*pass
	day        day
	generation int64
	into       merging
	of         []string        // names of what was merged
	made       []manifest.File // of that
	newest     time.Time       // of what into has
	read       int64           // bytes
}

// add merges a file. One that cannot be read stays as it is, with a warning.
func (w *writing) add(key string) error {
	name := path.Base(key)
	content, err := w.pass.read(key, w.Target)
	if errors.Is(err, errTooLarge) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := intact(name, content); err != nil {
		w.leave(key, err)
		return nil
	}
	if why, err := w.into.add(content); err != nil {
		return err
	} else if why != nil {
		w.leave(key, why)
		return nil
	}
	w.of, w.read = append(w.of, name), w.read+int64(len(content))
	if at := (store.Entry{Key: key}).At(); at.After(w.newest) {
		w.newest = at
	}
	if w.into.bytes() >= w.Target {
		return w.flush()
	}
	return nil
}

// leave notes what is not merged, now and in later rounds of this pass.
func (w *writing) leave(key string, why error) {
	w.damaged[key] = true
	w.Notes = append(w.Notes, fmt.Sprintf("left as it is: %s: %v", key, why))
}

// intact compares a file with the hash in its name.
func intact(name string, content []byte) error {
	if !manifest.Uploaded(name) {
		return nil
	}
	sum := sha256.Sum256(content)
	if !strings.HasSuffix(name, "-"+hex.EncodeToString(sum[:8])+".parquet") {
		return errors.New("it is not what was sent: its hash is another")
	}
	return nil
}

// flush puts a file. Nobody takes note of it before its manifest.
func (w *writing) flush() error {
	content, rows, err := w.into.finish()
	if err != nil || rows == 0 {
		return err
	}
	name := manifest.MergedName(w.newest, w.generation, random())
	if err := w.s.Put(w.ctx, w.day.prefix()+name, content); err != nil {
		return err
	}
	w.made, w.newest = append(w.made, manifest.File{Name: name, Bytes: int64(len(content)), Rows: rows}), time.Time{}
	return nil
}

// drop removes what will never count.
func (w *writing) drop() error {
	for _, f := range w.made {
		if err := w.s.Remove(w.ctx, w.day.prefix()+f.Name); err != nil {
			return err
		}
	}
	return nil
}
