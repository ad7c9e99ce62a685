package dataset

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/dataset/column"
	"github.com/ebpfprof/ebpfprof/internal/dataset/keys"
	"github.com/ebpfprof/ebpfprof/output"
)

// Absent is a Batch's value of a row that has none.
const Absent = column.Absent

// Batch are rows that follow one another in time. A text is held as its number among
// the batch's texts, a DOUBLE as its bits.
type Batch struct {
	Rows    int
	Columns [][]int64 // as they were asked for

	texts []string
	// Epoch changes when texts are numbered anew: what is cached by number is then
	// to be forgotten.
	Epoch int
}

// Text is a value of a VARCHAR column, "" without one.
func (b *Batch) Text(number int64) string {
	if number == Absent {
		return ""
	}
	return b.texts[number]
}

// Texts is how many there are, so far.
func (b *Batch) Texts() int { return len(b.texts) }

// Float is a value of a DOUBLE column, 0 without one.
func (b *Batch) Float(bits int64) float64 {
	if bits == Absent {
		return 0
	}
	return math.Float64frombits(uint64(bits))
}

// Scan says what is read of a table that has ts_ns.
type Scan struct {
	Table   string
	Columns []string
	From    int64            // rows from here on, in ns; 0 is all
	Until   int64            // and before this; 0 is all
	Of      map[Process]bool // rows of these alone; nil is all
	// Instead are rows that have another duration_ns than theirs; with Absent they are left out.
	Instead map[Row]int64
	// Before says which of two rows of one time comes first; nil keeps them as they lie
	// in the files.
	Before func(b *Batch, i, k int) bool
}

// Row names one of a table with span_id.
type Row struct {
	Session string
	ID      int64
}

// Process is one of a recording.
type Process struct {
	Session string
	PID     int32
}

const batchRows = 4096

// mostTexts bounds what is kept of texts.
var mostTexts = 1 << 20

// Scan reads rows in order of time, past DuckDB, straight from the files: of these each
// row group is in order of time as the recorder writes them, so that only those are
// open whose times overlap. The batch is used again.
func (db *DB) Scan(ctx context.Context, s Scan, f func(*Batch) error) (err error) {
	s = s.part(db)
	m := &merge{ctx: ctx, scan: s, f: f, numbers: map[string]int64{}}
	if len(db.shifts) > 0 {
		m.shifts, m.session = db.shifts, len(s.Columns)
		s.Columns = append(slices.Clip(s.Columns), "session_id")
	}
	if s.Of != nil {
		s.Columns = append(slices.Clip(s.Columns), "session_id", "pid")
	}
	if len(s.Instead) > 0 {
		s.Columns = append(slices.Clip(s.Columns), "session_id", "span_id")
	}
	if m.wanted, m.time, err = wanted(s); err != nil {
		return err
	}
	m.out = &Batch{Columns: make([][]int64, len(m.wanted))}
	defer func() { m.close() }()
	for _, path := range db.Files(s.Table) {
		if err := m.add(path); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return m.run()
}

// wantedColumn is a column to read; time is which of them is ts_ns.
type wantedColumn struct {
	name string
	kind parquet.Kind
}

func wanted(s Scan) (all []wantedColumn, time int, err error) {
	time = -1
	for _, t := range output.Schema() {
		if t.Name != s.Table {
			continue
		}
		for _, name := range s.Columns {
			i := slices.IndexFunc(t.Columns, func(c output.Column) bool { return c.Name == name })
			if i < 0 {
				return nil, 0, fmt.Errorf("table %s has no column %s", s.Table, name)
			}
			kind := parquet.Int64
			switch t.Columns[i].Type {
			case output.Varchar:
				kind = parquet.ByteArray
			case output.Double:
				kind = parquet.Double
			case output.BigInt, output.Integer:
			default:
				return nil, 0, fmt.Errorf("column %s of table %s cannot be scanned", name, s.Table)
			}
			if name == "ts_ns" {
				time = len(all)
			}
			all = append(all, wantedColumn{name, kind})
		}
	}
	if time < 0 {
		return nil, 0, fmt.Errorf("table %s is scanned without ts_ns", s.Table)
	}
	return all, time, nil
}

// merge puts row groups in order.
type merge struct {
	ctx     context.Context
	scan    Scan
	f       func(*Batch) error
	wanted  []wantedColumn
	time    int
	files   []*column.File
	waiting []*group // not begun, by their first times
	open    []*group // by the times of their next rows
	out     *Batch
	numbers map[string]int64 // of the batch's texts

	shifts  keys.Shifts // nil: all numbers are as they are in the files
	session int         // column by which they are chosen, where there are any
}

// add opens a file and looks when its row groups begin.
func (m *merge) add(path string) error {
	file, err := column.OpenFile(path)
	if err != nil {
		return err
	}
	m.files = append(m.files, file)
	for _, rows := range file.RowGroups() {
		g := &group{merge: m, path: path, schema: file.Schema(), rows: rows, words: column.NewWords(), left: int(rows.NumRows())}
		if g.left == 0 {
			continue
		}
		if err := g.times(); err != nil {
			return err
		}
		if m.scan.Until != 0 && g.first >= m.scan.Until || m.scan.From != 0 && g.last < m.scan.From {
			continue
		}
		m.waiting = append(m.waiting, g)
	}
	return nil
}

func (m *merge) run() error {
	slices.SortStableFunc(m.waiting, func(a, b *group) int { return cmp.Compare(a.first, b.first) })
	for {
		for len(m.waiting) > 0 && (len(m.open) == 0 || m.waiting[0].first <= m.open[0].next()) {
			g := m.waiting[0]
			m.waiting = m.waiting[1:]
			if err := g.begin(); err != nil {
				g.close()
				return err
			}
			m.put(g)
		}
		if len(m.open) == 0 {
			return m.flush(m.out.Rows)
		}
		g := m.open[0]
		m.open = m.open[1:]
		if err := m.take(g); err != nil {
			g.close()
			return err
		}
		m.put(g)
	}
}

// put keeps a group where its next row belongs; one that is over is dropped.
func (m *merge) put(g *group) {
	if g.at == g.n {
		g.close()
		return
	}
	at, _ := slices.BinarySearchFunc(m.open, g.next(), func(o *group, t int64) int {
		if o.next() <= t {
			return -1
		}
		return 1
	})
	m.open = slices.Insert(m.open, at, g)
}

// take gives out the rows of a group that come before all others'.
func (m *merge) take(g *group) error {
	bound := int64(math.MaxInt64)
	if len(m.open) > 0 {
		bound = m.open[0].next()
	}
	if len(m.waiting) > 0 {
		bound = min(bound, m.waiting[0].first)
	}
	times := g.values[m.time][g.at:g.n]
	n := len(times)
	if times[n-1] > bound {
		n, _ = slices.BinarySearch(times, bound+1)
	}
	from, to := 0, n
	if m.scan.From != 0 && times[0] < m.scan.From {
		from, _ = slices.BinarySearch(times[:n], m.scan.From)
	}
	if m.scan.Until != 0 && times[n-1] >= m.scan.Until {
		to, _ = slices.BinarySearch(times[:n], m.scan.Until)
		to = max(to, from)
	}
	m.copy(g, g.at+from, g.at+to)
	if g.at += n; g.at == g.n {
		if err := g.fill(); err != nil {
			return err
		}
	}
	if m.out.Rows < batchRows {
		return nil
	}
	if err := m.ctx.Err(); err != nil {
		return err
	}
	// Rows of the last time may have more of the same time behind them.
	all := m.out.Columns[m.time]
	whole := m.out.Rows - 1
	for whole > 0 && all[whole-1] == all[m.out.Rows-1] {
		whole--
	}
	return m.flush(whole)
}

func (m *merge) copy(g *group, from, to int) {
	for c, w := range m.wanted {
		if w.kind != parquet.ByteArray {
			m.out.Columns[c] = append(m.out.Columns[c], g.values[c][from:to]...)
			continue
		}
		for _, v := range g.values[c][from:to] {
			if v != Absent {
				v = m.number(g, v)
			}
			m.out.Columns[c] = append(m.out.Columns[c], v)
		}
	}
	m.out.Rows += to - from
	m.shift(m.out.Rows - (to - from))
}

// shift gives the rows from this one on the numbers that no other recording has.
func (m *merge) shift(first int) {
	if m.shifts == nil {
		return
	}
	sessions := m.out.Columns[m.session]
	for c, w := range m.wanted {
		kind := keys.Of(w.name)
		if kind != keys.PID && kind != keys.TID && kind != keys.ID {
			continue
		}
		values := m.out.Columns[c]
		by, of := keys.Shift{}, Absent
		for i := first; i < m.out.Rows; i++ {
			if sessions[i] != of {
				of = sessions[i]
				by = m.shifts[m.out.Text(of)]
			}
			if values[i] != Absent {
				values[i] += by.By(kind, values[i])
			}
		}
	}
}

// number is that of a row group's text among all.
func (m *merge) number(g *group, of int64) int64 {
	if g.epoch != m.out.Epoch {
		g.numbers, g.epoch = g.numbers[:0], m.out.Epoch
	}
	for int64(len(g.numbers)) <= of {
		g.numbers = append(g.numbers, -1)
	}
	if n := g.numbers[of]; n >= 0 {
		return n
	}
	n := m.of(g.words.Text(of))
	g.numbers[of] = n
	return n
}

func (m *merge) of(text string) int64 {
	n, known := m.numbers[text]
	if !known {
		n = int64(len(m.out.texts))
		m.numbers[text] = n
		m.out.texts = append(m.out.texts, text)
	}
	return n
}

// flush hands the first rows of the batch on.
func (m *merge) flush(rows int) error {
	if rows == 0 {
		return nil
	}
	rest := m.out.Rows - rows
	if m.scan.Before != nil {
		m.settle(rows)
	}
	m.out.Rows = m.choose(rows)
	if m.out.Rows > 0 {
		if err := m.f(m.out); err != nil {
			return err
		}
	}
	for c := range m.out.Columns {
		copy(m.out.Columns[c], m.out.Columns[c][rows:])
		m.out.Columns[c] = m.out.Columns[c][:rest]
	}
	m.out.Rows = rest
	if len(m.out.texts) > mostTexts {
		m.forget()
	}
	return nil
}

// forget numbers texts anew, those of the rows that are left first.
func (m *merge) forget() {
	old := m.out.texts
	m.out.texts, m.numbers = nil, map[string]int64{}
	m.out.Epoch++
	for c, w := range m.wanted {
		if w.kind != parquet.ByteArray {
			continue
		}
		for i, v := range m.out.Columns[c] {
			if v != Absent {
				m.out.Columns[c][i] = m.of(old[v])
			}
		}
	}
}

// settle puts rows of one time in order.
func (m *merge) settle(rows int) {
	times := m.out.Columns[m.time]
	for from := 0; from < rows; {
		to := from + 1
		for to < rows && times[to] == times[from] {
			to++
		}
		// They are few: each goes back to where it belongs.
		for i := from + 1; i < to; i++ {
			for k := i; k > from && m.scan.Before(m.out, k, k-1); k-- {
				for _, values := range m.out.Columns {
					values[k], values[k-1] = values[k-1], values[k]
				}
			}
		}
		from = to
	}
}

// choose leaves out, of the first rows, those that are not wanted, and gives others the
// durations that they have instead. The columns that it
// goes by are the last ones.
func (m *merge) choose(rows int) (kept int) {
	if m.scan.Of == nil && len(m.scan.Instead) == 0 {
		return rows
	}
	last, good := [2]int64{Absent, Absent}, false
	duration := slices.IndexFunc(m.wanted, func(c wantedColumn) bool { return c.name == "duration_ns" })
	for i := range rows {
		at := len(m.wanted)
		if len(m.scan.Instead) > 0 {
			at -= 2
			if ns, is := m.scan.Instead[Row{m.out.Text(m.out.Columns[at][i]), m.out.Columns[at+1][i]}]; is {
				if ns == Absent {
					continue
				}
				if duration >= 0 {
					m.out.Columns[duration][i] = ns
				}
			}
		}
		if m.scan.Of != nil {
			of := [2]int64{m.out.Columns[at-2][i], m.out.Columns[at-1][i]}
			if of != last {
				last, good = of, m.scan.Of[Process{m.out.Text(of[0]), int32(of[1])}]
			}
			if !good {
				continue
			}
		}
		for _, values := range m.out.Columns {
			values[kept] = values[i]
		}
		kept++
	}
	return kept
}

func (m *merge) close() {
	for _, g := range m.open {
		g.close()
	}
	for _, f := range m.files {
		f.Close()
	}
}
