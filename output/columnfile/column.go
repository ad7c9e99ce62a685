// Package columnfile writes Parquet files from whole columns.
//
// It exists for speed: a row group of spans has forty columns, most of them
// entirely null, and a writer that is handed rows touches each of them for
// each row. Here a column of nothing but nulls costs a few bytes and no time, a
// constant column one dictionary entry, and the rest goes through parquet-go's
// vectorised encodings in one call per column. Page and footer structures are
// parquet-go's, too; only the walk over rows is left out. BenchmarkSpans of
// package output has the figures.
//
// The package is no part of the public API: it may change with any version.
package columnfile

import (
	"fmt"
	"slices"
)

// Kind is the type of a column.
type Kind uint8

const (
	Int64 Kind = iota
	Int32
	Double
	Boolean
	String
	List // of structures, whose members are Fields
)

// Column describes one column of a file.
type Column struct {
	Name     string
	ID       int32 // Parquet field id, from 1
	Kind     Kind
	Nullable bool
	// Delta picks DELTA_BINARY_PACKED, for times and ids. All other columns get
	// a dictionary, unless their values turn out to repeat too seldom.
	Delta bool
	// Fields are the members of each element of a List: a list is never null,
	// its elements neither, their members may be. Each member is a column of
	// values of its own.
	Fields []Column
}

// leaf is a column of values: a Column that is no list, or a member of one.
type leaf struct {
	Column
	path []string
	list bool
}

func leaves(columns []Column) (all []leaf) {
	for _, c := range columns {
		if c.Kind != List {
			all = append(all, leaf{c, []string{c.Name}, false})
			continue
		}
		for _, f := range c.Fields {
			all = append(all, leaf{f, []string{c.Name, listGroup, elementGroup, f.Name}, true})
		}
	}
	return all
}

// Values are the values of one column in one row group, appended by Ints,
// Floats and Texts, or declared at once by AllNull and Constant.
type Values struct {
	rows   int
	nulls  int
	levels []byte // one per row, 1 where there is a value
	list   elements
	spread []byte
	ints   []int64
	floats []float64
	codes  []int32
	texts  textDictionary
}

// Reset empties v, keeping its memory.
func (v *Values) Reset() {
	v.rows, v.nulls = 0, 0
	v.levels = v.levels[:0]
	v.list.reset()
	v.ints = v.ints[:0]
	v.floats = v.floats[:0]
	v.codes = v.codes[:0]
	v.texts.reset()
}

// AllNull makes v a column of n nulls.
func (v *Values) AllNull(n int) {
	v.Reset()
	v.rows, v.nulls = n, n
}

// Constant makes v a column of n times the same text.
func (v *Values) Constant(text string, n int) {
	v.Reset()
	code := v.texts.code(text)
	for range n {
		v.codes = append(v.codes, code)
	}
	v.rows = n
	v.levels = appendLevels(v.levels, 1, n)
}

// Spread makes v, of one row per position, a column of n rows: those at the
// positions, which ascend, and nulls between.
func (v *Values) Spread(positions []int32, n int) {
	v.nulls += n - v.rows
	v.rows = n
	if v.nulls == n {
		return // levels are not looked at
	}
	v.spread = append(v.spread[:0], v.levels...)
	v.levels = appendLevels(v.levels[:0], 0, n)
	for i, p := range positions {
		v.levels[p] = v.spread[i]
	}
}

// Ints appends the values of an Int64, Int32 or Boolean column: get of each
// row that order names, null where it says false.
func Ints[T any](v *Values, rows []T, order []int32, get func(*T) (int64, bool)) {
	values, levels := v.ints, v.levels
	for _, i := range order {
		value, ok := get(&rows[i])
		if ok {
			values = append(values, value)
			levels = append(levels, 1)
		} else {
			levels = append(levels, 0)
			v.nulls++
		}
	}
	v.ints, v.levels = values, levels
	v.rows += len(order)
}

// Floats appends the values of a Double column, as Ints does.
func Floats[T any](v *Values, rows []T, order []int32, get func(*T) (float64, bool)) {
	for _, i := range order {
		value, ok := get(&rows[i])
		if !ok {
			v.levels = append(v.levels, 0)
			v.nulls++
			continue
		}
		v.floats = append(v.floats, value)
		v.levels = append(v.levels, 1)
	}
	v.rows += len(order)
}

// Texts appends the values of a String column, as Ints does.
func Texts[T any](v *Values, rows []T, order []int32, get func(*T) (string, bool)) {
	codes, levels := v.codes, v.levels
	for _, i := range order {
		value, ok := get(&rows[i])
		if ok {
			codes = append(codes, v.texts.code(value))
			levels = append(levels, 1)
		} else {
			levels = append(levels, 0)
			v.nulls++
		}
	}
	v.codes, v.levels = codes, levels
	v.rows += len(order)
}

func appendLevels(levels []byte, level byte, n int) []byte {
	levels = slices.Grow(levels, n)[:len(levels)+n]
	for i := len(levels) - n; i < len(levels); i++ {
		levels[i] = level
	}
	return levels
}

// check refuses what would become a file that no reader can open.
func (v *Values) check(c leaf, rows int) error {
	if v.rows != rows {
		return fmt.Errorf("column %s has %d rows, its row group %d", c.Name, v.rows, rows)
	}
	if c.list {
		return v.checkList(c)
	}
	if v.list.used {
		return fmt.Errorf("column %s has lists, but is none", c.Name)
	}
	if v.nulls > 0 && !c.Nullable {
		return fmt.Errorf("column %s has %d nulls but is not nullable", c.Name, v.nulls)
	}
	if v.present() != v.len(c.Kind) {
		return fmt.Errorf("column %s has values of another kind", c.Name)
	}
	return nil
}

// entries is how many levels the column has: one a row, unless it is of lists.
func (v *Values) entries() int {
	if v.list.used {
		return len(v.list.defined)
	}
	return v.rows
}

// absent is how many entries have no value.
func (v *Values) absent() int { return v.nulls + v.list.empty }

func (v *Values) present() int { return v.rows - v.nulls }

func (v *Values) len(k Kind) int {
	switch k {
	case Double:
		return len(v.floats)
	case String:
		return len(v.codes)
	default:
		return len(v.ints)
	}
}
