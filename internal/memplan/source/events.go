package source

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/output/columnfile"
)

// Events reads table memory. It goes past DuckDB, straight to the columns: ten
// million rows take seconds.
func (d *Dataset) Events(ctx context.Context) ([]blocks.Arena, []blocks.Event, error) {
	paths := d.db.Files("memory")
	parts, errs := make([]*rows, len(paths)), make([]error, len(paths))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, path := range paths {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if ctx.Err() == nil {
				parts[i], errs[i] = readRows(path)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	var (
		arenas []blocks.Arena
		events []blocks.Event
		known  = map[blocks.Arena]int32{}
	)
	total := 0
	for i, p := range parts {
		if errs[i] != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", paths[i], errs[i])
		}
		total += len(p.events)
	}
	events = make([]blocks.Event, 0, total)
	for _, p := range parts {
		index := make([]int32, len(p.arenas))
		for i, a := range p.arenas {
			at, is := known[a]
			if !is {
				at = int32(len(arenas))
				known[a], arenas = at, append(arenas, a)
			}
			index[i] = at
		}
		for i := range p.events {
			p.events[i].Arena = index[p.events[i].Arena]
		}
		events = append(events, p.events...)
	}
	return arenas, events, nil
}

// The library makes room for whatever number of rows a damaged file claims: more than
// these no recording has, however well its events compress.
const (
	rowsOfByte = 64
	leastRows  = 1 << 16
)

// rows are those of one file.
type rows struct {
	session string // of the file: each is of one recording
	arenas  []blocks.Arena
	known   map[blocks.Arena]int32
	events  []blocks.Event
}

func readRows(path string) (*rows, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO is not waited for
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := columnfile.CheckPages(f, max(leastRows, rowsOfByte*info.Size())); err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, err
	}
	session, _ := file.Lookup(output.MetadataSession)
	r := &rows{session: session, known: map[blocks.Arena]int32{}, events: make([]blocks.Event, 0, file.NumRows())}
	for _, group := range file.RowGroups() {
		if err := r.add(file.Schema(), group); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// chunk is a row group's columns, as far as they are needed and there. Absent
// numbers are absent.
type chunk struct {
	ts, address, bytes, allocated, reserved, duration, path, stack, span []int64
	pid, tid, device                                                     []int64
	space, level, action                                                 []string
	weight                                                               []float64
}

const absent = int64(-1 << 62)

func (r *rows) add(schema *parquet.Schema, group parquet.RowGroup) error {
	n := int(group.NumRows())
	var c chunk
	numbers := map[string]*[]int64{
		"ts_ns": &c.ts, "address": &c.address, "bytes": &c.bytes, "total_allocated_bytes": &c.allocated,
		"total_reserved_bytes": &c.reserved, "duration_ns": &c.duration, "python_stack_id": &c.path, "stack_id": &c.stack,
		"span_id": &c.span, "pid": &c.pid, "tid": &c.tid, "device_id": &c.device,
	}
	texts := map[string]*[]string{"space": &c.space, "level": &c.level, "action": &c.action}
	for name, to := range numbers {
		*to = slices.Repeat([]int64{absent}, n)
		if err := readColumn(schema, group, name, func(i int, v parquet.Value) { (*to)[i] = integer(v) }); err != nil {
			return err
		}
	}
	for name, to := range texts {
		*to = make([]string, n)
		intern, last := map[string]string{}, ""
		err := readColumn(schema, group, name, func(i int, v parquet.Value) {
			if text := v.ByteArray(); string(text) != last {
				if last = intern[string(text)]; last == "" {
					last = string(text)
					intern[last] = last
				}
			}
			(*to)[i] = last
		})
		if err != nil {
			return err
		}
	}
	c.weight = slices.Repeat([]float64{1}, n)
	if err := readColumn(schema, group, "weight", func(i int, v parquet.Value) { c.weight[i] = v.Double() }); err != nil {
		return err
	}
	r.append(&c, n)
	return nil
}

// readColumn calls set for each row in which a column has a value. A column that
// the file does not have has none.
func readColumn(schema *parquet.Schema, group parquet.RowGroup, name string, set func(row int, v parquet.Value)) error {
	leaf, is := schema.Lookup(name)
	if !is {
		return nil
	}
	pages := group.ColumnChunks()[leaf.ColumnIndex].Pages()
	defer pages.Close()
	values := make([]parquet.Value, 1024)
	for row := 0; ; {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", name, err)
		}
		for reader := page.Values(); ; {
			n, err := reader.ReadValues(values)
			for _, v := range values[:n] {
				if !v.IsNull() && row < int(group.NumRows()) {
					set(row, v)
				}
				row++
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return fmt.Errorf("column %s: %w", name, err)
			}
		}
		parquet.Release(page)
	}
}

func integer(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

// append makes events of a chunk.
func (r *rows) append(c *chunk, n int) {
	var (
		last  blocks.Arena
		index int32 = -1
	)
	for i := range n {
		var action blocks.Action
		switch c.action[i] {
		case "alloc":
			action = blocks.Alloc
		case "free":
			action = blocks.Free
		case "out_of_memory":
			action = blocks.OutOfMemory
		default:
			continue // changes no bytes
		}
		arena := blocks.Arena{Session: r.session, PID: int32(c.pid[i]), Space: c.space[i], Level: c.level[i], Device: int32(orUnknown(c.device[i]))}
		if index < 0 || arena != last {
			at, is := r.known[arena]
			if !is {
				at = int32(len(r.arenas))
				r.known[arena], r.arenas = at, append(r.arenas, arena)
			}
			last, index = arena, at
		}
		path := c.path[i]
		if path == absent {
			path = c.stack[i]
		}
		r.events = append(r.events, blocks.Event{
			TSNS: c.ts[i], Address: c.address[i], Bytes: orUnknown(c.bytes[i]), Allocated: orUnknown(c.allocated[i]),
			Reserved: orUnknown(c.reserved[i]), Duration: orUnknown(c.duration[i]), Path: orZero(path), Span: orZero(c.span[i]),
			Weight: float32(c.weight[i]), TID: int32(c.tid[i]), Arena: index, Action: action,
		})
	}
}

func orUnknown(v int64) int64 {
	if v == absent {
		return blocks.Unknown
	}
	return v
}

func orZero(v int64) int64 {
	if v == absent {
		return 0
	}
	return v
}
