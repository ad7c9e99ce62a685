// Package whatif says what a slow worker, stage or type of operation costs a
// training job, by replaying the job's operations with some of them at their
// ideal.
//
// It reads the public trace format of "Understanding Stragglers in Large Model
// Training Using What-if Analysis" (OSDI'25, github.com/ByteDance-Seed/StragglerAnalysis):
// a Parquet file with a row per operation and a YAML file about the job. The
// dependencies between operations are model.go, the replay is package graph.
package whatif

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/output/columnfile"
)

// ErrBadTrace is returned for a file that is no trace of the format; the message
// says what is wrong with it.
var ErrBadTrace = errors.New("not a trace of operations")

// Op is one operation. Times are in seconds.
type Op struct {
	DPRank, Stage   int // the worker
	Rank            int // of the file: the first rank of the worker's tensor group
	Step            int64
	Type            OpType
	Start, Duration float64
	Seq             int // numbers the operations of one type, worker and step
	Chunk           int // model chunk of the stage (column mc), -1 without one
	GlobalChunk     int // model chunk of the whole model (column gmc), -1 without one
	MicroBatch      int // -1 without one
}

// End is when the operation ended.
func (o Op) End() float64 { return o.Start + o.Duration }

// Trace is what a file holds.
type Trace struct {
	Ops      []Op
	Warnings []string // what was left out, and why
}

// column is one that the format has, and what it may hold.
type column struct {
	name     string
	kinds    []parquet.Kind
	nullable bool
	set      func(*Op, value)
}

var traceColumns = []column{
	{"dp_rank", numbers, false, func(o *Op, v value) { o.DPRank = int(v.integer) }},
	{"stage", numbers, false, func(o *Op, v value) { o.Stage = int(v.integer) }},
	{"rank", numbers, false, func(o *Op, v value) { o.Rank = int(v.integer) }},
	{"step", numbers, false, func(o *Op, v value) { o.Step = v.integer }},
	{"optype", []parquet.Kind{parquet.ByteArray}, false, func(o *Op, v value) { o.Type = OpType(v.text) }},
	{"start_ts", floats, false, func(o *Op, v value) { o.Start = v.float }},
	{"duration", floats, false, func(o *Op, v value) { o.Duration = v.float }},
	{"seq_id", numbers, false, func(o *Op, v value) { o.Seq = int(v.integer) }},
	{"mc", numbers, true, func(o *Op, v value) { o.Chunk = int(v.integer) }},
	{"mb_id", numbers, true, func(o *Op, v value) { o.MicroBatch = int(v.integer) }},
	{"gmc", numbers, true, func(o *Op, v value) { o.GlobalChunk = int(v.integer) }},
}

var (
	// Who writes a table with pandas gets floats for integers with nulls among them.
	numbers = []parquet.Kind{parquet.Int32, parquet.Int64, parquet.Float, parquet.Double}
	floats  = []parquet.Kind{parquet.Float, parquet.Double}
)

type value struct {
	integer int64
	float   float64
	text    string
}

// ReadTrace reads the Parquet file. The errors are those of the file system and
// ErrBadTrace.
func ReadTrace(path string) (*Trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	defer file.Close()
	t, err := readTrace(file)
	if err != nil {
		return nil, fmt.Errorf("reading the trace %s: %w", path, err)
	}
	return t, nil
}

// A few damaged bytes can stand for any number of equal rows. No two operations of a
// trace are equal: each takes some bytes, whatever the encoding.
const (
	rowsOfByte = 2
	leastRows  = 1 << 16
)

func readTrace(file *os.File) (t *Trace, err error) {
	// The library panics on some damaged pages.
	defer func() {
		if r := recover(); r != nil {
			t, err = nil, fmt.Errorf("%w: damaged Parquet (%v)", ErrBadTrace, r)
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, fmt.Errorf("%w: it is a directory, give the Parquet file", ErrBadTrace)
	case info.Size() == 0:
		return nil, fmt.Errorf("%w: the file is empty", ErrBadTrace)
	}
	// The library makes room for whatever length a damaged file claims.
	most := max(leastRows, rowsOfByte*info.Size())
	if err := columnfile.CheckPages(file, most); err != nil {
		return nil, fmt.Errorf("%w: not readable as Parquet (%w)", ErrBadTrace, err)
	}
	f, err := parquet.OpenFile(file, info.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, fmt.Errorf("%w: not readable as Parquet (%w)", ErrBadTrace, err)
	}
	columns, err := findColumns(f)
	if err != nil {
		return nil, err
	}
	t = new(Trace)
	for _, group := range f.RowGroups() {
		var ops []Op
		chunks := group.ColumnChunks()
		for i, c := range traceColumns {
			// The first column says how many rows there are: what a damaged footer
			// says may be any number.
			n, err := readColumn(chunks[columns[i]], c, func(row int, v value) error {
				switch {
				case row < len(ops):
				case i == 0 && int64(len(t.Ops)+len(ops)) >= most:
					return errors.New("more rows than a file of its size can have")
				case i == 0:
					ops = append(ops, Op{})
				default:
					return errors.New("more values than rows")
				}
				c.set(&ops[row], v)
				return nil
			})
			if err == nil && n < len(ops) {
				err = fmt.Errorf("%d values for %d rows", n, len(ops))
			}
			if err != nil {
				return nil, fmt.Errorf("%w: column %s: %w", ErrBadTrace, c.name, err)
			}
		}
		t.Ops = append(t.Ops, ops...)
	}
	return t, t.check()
}

// findColumns returns the place of each of traceColumns among the file's leaves.
func findColumns(f *parquet.File) (places []int, err error) {
	var missing, wrong []string
	for _, c := range traceColumns {
		leaf, ok := f.Schema().Lookup(c.name)
		switch {
		case !ok:
			missing = append(missing, c.name)
			continue
		case !slices.Contains(c.kinds, leaf.Node.Type().Kind()) || leaf.MaxRepetitionLevel > 0:
			wrong = append(wrong, fmt.Sprintf("%s is %s", c.name, leaf.Node.Type()))
		}
		places = append(places, leaf.ColumnIndex)
	}
	switch {
	case len(missing) > 0:
		return nil, fmt.Errorf("%w: it has no column %s", ErrBadTrace, strings.Join(missing, ", "))
	case len(wrong) > 0:
		return nil, fmt.Errorf("%w: columns of the wrong type: %s", ErrBadTrace, strings.Join(wrong, ", "))
	}
	return places, nil
}

// readColumn hands over the column's values in order and says how many there were.
func readColumn(chunk parquet.ColumnChunk, c column, set func(row int, v value) error) (row int, err error) {
	pages := chunk.Pages()
	defer pages.Close()
	buffer := make([]parquet.Value, 4096)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return row, nil
		}
		if err != nil {
			return row, err
		}
		values := page.Values()
		for err == nil {
			var n int
			n, err = values.ReadValues(buffer)
			for _, v := range buffer[:n] {
				converted, err := c.read(v)
				if err != nil {
					return row, fmt.Errorf("row %d %w", row, err)
				}
				if err := set(row, converted); err != nil {
					return row, err
				}
				row++
			}
		}
		parquet.Release(page)
		if !errors.Is(err, io.EOF) {
			return row, err
		}
	}
}

// read takes a value for what the column holds.
func (c column) read(v parquet.Value) (value, error) {
	if !v.IsNull() {
		read := valueOf(v)
		if k := v.Kind(); !slices.Contains(c.kinds, parquet.Int32) || k == parquet.Int32 || k == parquet.Int64 {
			return read, nil
		}
		if read.integer = int64(read.float); float64(read.integer) == read.float {
			return read, nil
		}
		if !math.IsNaN(read.float) {
			return value{}, fmt.Errorf("has %v where a whole number belongs", read.float)
		}
	}
	if !c.nullable {
		return value{}, errors.New("has no value")
	}
	return value{integer: -1}, nil
}

func valueOf(v parquet.Value) value {
	switch v.Kind() {
	case parquet.Int32:
		return value{integer: int64(v.Int32())}
	case parquet.Int64:
		return value{integer: v.Int64()}
	case parquet.Float:
		return value{float: float64(v.Float())}
	case parquet.Double:
		return value{float: v.Double()}
	default:
		return value{text: string(v.ByteArray())}
	}
}

// maxNumber bounds ranks, stages and sequence numbers: far above any cluster,
// and small enough that a damaged number allocates nothing.
const maxNumber = 1 << 24

// check refuses what no operation can be and leaves out what the replay does
// not know, with a warning.
func (t *Trace) check() error {
	others := map[OpType]int{}
	kept := t.Ops[:0]
	for i, o := range t.Ops {
		for _, n := range []int{o.DPRank, o.Stage, o.Seq} {
			if n < 0 || n > maxNumber {
				return fmt.Errorf("%w: row %d has dp_rank %d, stage %d, seq_id %d", ErrBadTrace, i, o.DPRank, o.Stage, o.Seq)
			}
		}
		if bad(o.Start) || bad(o.Duration) || o.Duration < 0 {
			return fmt.Errorf("%w: row %d starts at %v and takes %v seconds", ErrBadTrace, i, o.Start, o.Duration)
		}
		if !o.Type.known() {
			others[o.Type]++
			continue
		}
		kept = append(kept, o)
	}
	t.Ops = kept
	for _, name := range slices.Sorted(maps.Keys(others)) {
		t.warn("left out %d operations of type %q, which the replay does not know", others[name], name)
	}
	if len(t.Ops) == 0 {
		return fmt.Errorf("%w: it has no operations", ErrBadTrace)
	}
	if err := t.oneRankAWorker(); err != nil {
		return err
	}
	t.wholeSteps()
	return nil
}

func bad(seconds float64) bool { return math.IsNaN(seconds) || math.IsInf(seconds, 0) }

func (t *Trace) warn(format string, a ...any) {
	t.Warnings = append(t.Warnings, fmt.Sprintf(format, a...))
}

// oneRankAWorker keeps the lowest rank of each worker: the others of a tensor
// group do the same at the same time.
func (t *Trace) oneRankAWorker() error {
	lowest := map[[2]int]int{}
	for _, o := range t.Ops {
		w := [2]int{o.DPRank, o.Stage}
		if rank, ok := lowest[w]; !ok || o.Rank < rank {
			lowest[w] = o.Rank
		}
	}
	before := len(t.Ops)
	t.Ops = slices.DeleteFunc(t.Ops, func(o Op) bool { return o.Rank != lowest[[2]int{o.DPRank, o.Stage}] })
	if left := before - len(t.Ops); left > 0 {
		t.warn("left out %d operations of further ranks of a tensor group: the lowest stands for it", left)
	}
	type id struct {
		dp, stage, seq int
		step           int64
		optype         OpType
	}
	seen := make(map[id]bool, len(t.Ops))
	for _, o := range t.Ops {
		k := id{o.DPRank, o.Stage, o.Seq, o.Step, o.Type}
		if seen[k] {
			return fmt.Errorf("%w: step %d, dp_rank %d, stage %d has two operations %s with seq_id %d",
				ErrBadTrace, o.Step, o.DPRank, o.Stage, o.Type, o.Seq)
		}
		seen[k] = true
	}
	return nil
}

func noTime() error { return fmt.Errorf("%w: all its operations take no time", ErrBadTrace) }
