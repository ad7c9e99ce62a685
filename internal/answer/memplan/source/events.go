package source

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/dataset/column"
	"github.com/ebpfprof/ebpfprof/internal/dataset/keys"
	"github.com/ebpfprof/ebpfprof/output"
)

// Events reads table memory. It goes past DuckDB, straight to the columns, a row
// group on each CPU: ten million rows take seconds.
func (d *Dataset) Events(ctx context.Context) ([]blocks.Arena, []blocks.Event, error) {
	var (
		groups []*rows
		total  int64
	)
	for _, path := range d.db.Files("memory") {
		f, err := d.openRows(path)
		if err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", path, err)
		}
		defer f.Close()
		groups = append(groups, f.groups...)
		total += f.rows
	}
	events := make([]blocks.Event, total)
	at := int64(0)
	for _, g := range groups {
		end := at + g.group.NumRows()
		g.events, at = events[at:at:end], end
	}
	errs := make([]error, len(groups))
	var (
		wg   sync.WaitGroup
		next atomic.Int64
	)
	for range min(runtime.GOMAXPROCS(0), len(groups)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(groups) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				errs[i] = groups[i].read()
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	for i, err := range errs {
		if err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", groups[i].path, err)
		}
	}
	arenas, events := join(groups, events)
	return arenas, events, nil
}

// join gives the arenas of all row groups one numbering, and closes the gaps that
// rows left which are no events. The groups' events lie behind one another in all.
func join(groups []*rows, all []blocks.Event) (arenas []blocks.Arena, events []blocks.Event) {
	known := map[blocks.Arena]int32{}
	events = all[:0]
	for _, g := range groups {
		index, same := make([]int32, len(g.arenas)), true
		for i, a := range g.arenas {
			at, is := known[a]
			if !is {
				at = int32(len(arenas))
				known[a], arenas = at, append(arenas, a)
			}
			index[i] = at
			same = same && int(at) == i
		}
		for i := range g.events {
			if same {
				break
			}
			g.events[i].Arena = index[g.events[i].Arena]
		}
		if len(g.events) == 0 {
			continue
		}
		if end := len(events) + len(g.events); &all[len(events)] == &g.events[0] {
			events = all[:end]
		} else {
			events = append(events, g.events...)
		}
	}
	return arenas, events
}

// file is one of the table's.
type file struct {
	*column.File
	groups []*rows
	rows   int64
}

// rows are those of a row group.
type rows struct {
	path    string
	session string // of the file: each is of one recording
	shift   keys.Shift
	schema  *parquet.Schema
	group   parquet.RowGroup
	words   *column.Words
	arenas  []blocks.Arena
	known   map[place]int32
	events  []blocks.Event // as many fit as there are rows
}

// place is an arena by the numbers of its words.
type place struct{ pid, space, level, device int64 }

func (d *Dataset) openRows(path string) (*file, error) {
	opened, err := column.OpenFile(path)
	if err != nil {
		return nil, err
	}
	session, _ := opened.Lookup(output.MetadataSession)
	all := &file{File: opened}
	for _, group := range opened.RowGroups() {
		all.rows += group.NumRows()
		all.groups = append(all.groups, &rows{path: path, session: session, shift: d.db.Shift(session), schema: opened.Schema(), group: group,
			words: column.NewWords(), known: map[place]int32{}})
	}
	return all, nil
}

// batch is how many rows are read of one column after the other: they stay in the
// CPU's cache until events are made of them.
const batch = 4096

func (r *rows) read() (err error) {
	var (
		cursors [len(columns)]*column.Cursor
		values  [len(columns)][]int64
	)
	for c := range columns {
		if cursors[c], err = column.Open(r.schema, r.group, columns[c].name, columns[c].kind, r.words); err != nil {
			return err
		}
		defer cursors[c].Close()
		values[c] = make([]int64, batch)
	}
	for left := int(r.group.NumRows()); left > 0; left -= batch {
		n := min(left, batch)
		for c := range columns {
			if err := cursors[c].Fill(values[c][:n]); err != nil {
				return fmt.Errorf("column %s: %w", columns[c].name, err)
			}
		}
		r.append(&values, n)
	}
	return nil
}

// actions by their names; others change no bytes.
var actions = map[string]blocks.Action{"alloc": blocks.Alloc, "free": blocks.Free, "out_of_memory": blocks.OutOfMemory}

// append makes events of n rows.
func (r *rows) append(c *[len(columns)][]int64, n int) {
	var (
		lastPlace  place
		lastWord   = absent
		lastAction blocks.Action
		counts     bool
		index      int32 = -1
	)
	for i := range n {
		if w := c[action][i]; w != lastWord || i == 0 {
			lastWord = w
			lastAction, counts = actions[r.words.Text(w)]
		}
		if !counts {
			continue
		}
		at := place{c[pid][i], c[space][i], c[level][i], c[device][i]}
		if index < 0 || at != lastPlace {
			lastPlace, index = at, r.arena(at)
		}
		from := c[path][i]
		if from == absent {
			from = c[stack][i]
		}
		weighs := float32(1)
		if w := c[weight][i]; w != absent {
			weighs = float32(math.Float64frombits(uint64(w)))
		}
		r.events = append(r.events, blocks.Event{
			TSNS: c[timestamp][i], Address: c[address][i], Bytes: orUnknown(c[size][i]), Allocated: orUnknown(c[allocated][i]),
			Reserved: orUnknown(c[reserved][i]), Duration: orUnknown(c[duration][i]), Path: orZero(from), Span: orZero(c[span][i]) +
				r.shift.By(keys.ID, c[span][i]),
			Weight: weighs, TID: int32(c[tid][i] + r.shift.By(keys.TID, c[tid][i])), Arena: index, Action: lastAction,
		})
	}
}

// arena is the number of an arena of the row group.
func (r *rows) arena(at place) int32 {
	index, is := r.known[at]
	if !is {
		index = int32(len(r.arenas))
		r.known[at] = index
		r.arenas = append(r.arenas, blocks.Arena{Session: r.session, PID: int32(at.pid + r.shift.By(keys.PID, at.pid)),
			Space: r.words.Text(at.space),
			Level: r.words.Text(at.level), Device: int32(orUnknown(at.device))})
	}
	return index
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
