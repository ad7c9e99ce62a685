package output

import (
	"github.com/ebpfprof/ebpfprof/output/columnfile"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// RowGroupRows is the size of a row group: DuckDB's own.
const RowGroupRows = 122_880

// column is a Column and where its value comes from: exactly one getter is
// set, and it says false where the value is absent.
type column[T any] struct {
	Column
	ints   func(*T) (int64, bool)
	floats func(*T) (float64, bool)
	texts  func(*T) (string, bool)
	frames func(*T) []event.Frame // the members are FrameFields
	// rare columns have values only in rows for which the table's rare function
	// says so.
	rare bool
	// delta: a time or an id, which a dictionary would not help.
	delta bool
}

// table says how rows of T become a table. Every table begins with session_id,
// which rows do not carry.
type table[T any] struct {
	Table
	columns []column[T]   // without session_id
	values  []valueColumn // of the file, without session_id
	time    func(*T) int64
	id      func(*T) int64
	rare    func(*T) bool
}

// newTable completes a table: session_id in front, and the schema from the columns.
func newTable[T any](t table[T]) *table[T] {
	t.Columns = []Column{{Name: "session_id", Type: Varchar, FieldID: 1, Description: "the recording this row belongs to"}}
	for i, c := range t.columns {
		t.Columns = append(t.Columns, c.Column)
		if c.frames == nil {
			t.values = append(t.values, valueColumn{column: i})
			continue
		}
		for field := range FrameFields {
			t.values = append(t.values, valueColumn{column: i, field: field})
		}
	}
	return &t
}

// valueColumn is a column of a table, or one field of its elements.
type valueColumn struct{ column, field int }

// fileColumns is the table as columnfile wants it.
func (t *table[T]) fileColumns() []columnfile.Column {
	columns := fileColumns(t.Table)
	for i, c := range t.columns {
		columns[i+1].Delta = c.delta
	}
	return columns
}

func fileColumns(t Table) []columnfile.Column {
	var columns []columnfile.Column
	for _, c := range t.Columns {
		columns = append(columns, fileColumn(c))
	}
	return columns
}

func fileColumn(c Column) columnfile.Column {
	if c.Type == FrameList {
		return columnfile.Column{Name: c.Name, ID: c.FieldID, Kind: columnfile.List, Fields: fileColumns(Table{Columns: FrameFields})}
	}
	kind := map[Type]columnfile.Kind{
		BigInt: columnfile.Int64, Integer: columnfile.Int32, Double: columnfile.Double,
		Boolean: columnfile.Boolean, Varchar: columnfile.String,
	}[c.Type]
	return columnfile.Column{Name: c.Name, ID: c.FieldID, Kind: kind, Nullable: c.Nullable}
}

// timeColumn is the position of ts_ns in the file, -1 without one.
func (t *table[T]) timeColumn() int {
	for i, c := range t.Columns {
		if t.time != nil && c.Name == "ts_ns" {
			return i
		}
	}
	return -1
}

// writeRowGroup writes rows as one row group, sorted by time.
func (t *table[T]) writeRowGroup(w *columnfile.Writer, s *scratch, session string, rows []T) error {
	order := rowOrder(s, rows, t.time, t.id)
	rare := t.rareRows(s, rows, order)
	return w.WriteRowGroup(len(rows), t.timeColumn(), func(i int) *columnfile.Values {
		if i == 0 {
			s.values.Constant(session, len(rows))
		} else {
			from := t.values[i-1]
			t.columns[from.column].fill(&s.values, from.field, rows, order, rare)
		}
		return &s.values
	})
}

// rareRows lists the rows that have rare columns, and their positions in order.
func (t *table[T]) rareRows(s *scratch, rows []T, order []int32) rareRows {
	s.rare.rows, s.rare.positions = s.rare.rows[:0], s.rare.positions[:0]
	if t.rare == nil {
		return s.rare
	}
	for position, i := range order {
		if t.rare(&rows[i]) {
			s.rare.rows = append(s.rare.rows, i)
			s.rare.positions = append(s.rare.positions, int32(position))
		}
	}
	return s.rare
}

func (c *column[T]) fill(v *columnfile.Values, field int, rows []T, order []int32, rare rareRows) {
	v.Reset()
	if c.frames != nil {
		fillFrames(v, field, rows, order, c.frames)
	} else if c.rare {
		c.fillRows(v, rows, rare.rows)
		v.Spread(rare.positions, len(order))
	} else {
		c.fillRows(v, rows, order)
	}
}

func (c *column[T]) fillRows(v *columnfile.Values, rows []T, order []int32) {
	switch {
	case c.ints != nil:
		columnfile.Ints(v, rows, order, c.ints)
	case c.floats != nil:
		columnfile.Floats(v, rows, order, c.floats)
	default:
		columnfile.Texts(v, rows, order, c.texts)
	}
}

// The getters' vocabulary: what stands for "absent" in an event.

func integer(v int32) (int64, bool) { return int64(v), true }

func boolean(v bool) (int64, bool) {
	if v {
		return 1, true
	}
	return 0, true
}

func unlessNegative(v int64) (int64, bool) { return v, v >= 0 }

func unlessZero(v int64) (int64, bool) { return v, v != 0 }

func unlessEmpty(v string) (string, bool) { return v, v != "" }

func ofFloat(p *float64) (float64, bool) {
	if p == nil {
		return 0, false
	}
	return *p, true
}

func ofInt64(p *int64) (int64, bool) {
	if p == nil {
		return 0, false
	}
	return *p, true
}

func ofInt32(p *int32) (int64, bool) {
	if p == nil {
		return 0, false
	}
	return int64(*p), true
}

func ofString(p *string) (string, bool) {
	if p == nil {
		return "", false
	}
	return *p, true
}

func ofDim(p *[3]int64, i int) (int64, bool) {
	if p == nil {
		return 0, false
	}
	return p[i], true
}
