package dataset

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/dataset/column"
)

// group is a row group that is read.
type group struct {
	*merge
	path        string
	schema      *parquet.Schema
	rows        parquet.RowGroup
	words       *column.Words
	numbers     []int64 // of its texts in the batch of that epoch
	epoch       int
	first, last int64 // times, at the least and at the most

	cursors []*column.Cursor
	values  [][]int64
	at, n   int // of the values, what is next and how many there are
	left    int // rows behind them
}

// next is the time of the next row.
func (g *group) next() int64 { return g.values[g.time][g.at] }

// times are the bounds that the file gives, else those of the rows.
func (g *group) times() error {
	if leaf, is := g.schema.Lookup(g.wanted[g.time].name); is {
		if of, is := g.rows.ColumnChunks()[leaf.ColumnIndex].(*parquet.FileColumnChunk); is {
			if low, high, known := of.Bounds(); known && low.Kind() == parquet.Int64 {
				g.first, g.last = low.Int64(), high.Int64()
				return nil
			}
		}
	}
	times, err := g.allTimes()
	if err != nil {
		return err
	}
	g.first, g.last = slices.Min(times), slices.Max(times)
	return nil
}

func (g *group) allTimes() ([]int64, error) {
	c, err := column.Open(g.schema, g.rows, g.wanted[g.time].name, parquet.Int64, g.words)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	times := make([]int64, g.rows.NumRows())
	return times, c.Fill(times)
}

// begin reads the first rows. Of a row group that is not in order of time these are all.
func (g *group) begin() error {
	times, err := g.allTimes()
	if err != nil {
		return g.failed(err)
	}
	for _, w := range g.wanted {
		c, err := column.Open(g.schema, g.rows, w.name, w.kind, g.words)
		if err != nil {
			return g.failed(err)
		}
		g.cursors = append(g.cursors, c)
	}
	size := min(batchRows, g.left)
	sorted := slices.IsSorted(times)
	if !sorted {
		size = g.left
	}
	for range g.wanted {
		g.values = append(g.values, make([]int64, size))
	}
	if err := g.fill(); err != nil || sorted {
		return err
	}
	order := make([]int, size)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(times[a], times[b]) })
	for c, values := range g.values {
		moved := make([]int64, size)
		for i, from := range order {
			moved[i] = values[from]
		}
		g.values[c] = moved
	}
	return nil
}

// fill reads the next rows; none are left where n is zero then.
func (g *group) fill() error {
	g.at, g.n = 0, min(g.left, len(g.values[0]))
	for c, cursor := range g.cursors {
		if err := cursor.Fill(g.values[c][:g.n]); err != nil {
			return g.failed(fmt.Errorf("column %s: %w", g.wanted[c].name, err))
		}
	}
	g.left -= g.n
	return nil
}

func (g *group) failed(err error) error { return fmt.Errorf("reading %s: %w", g.path, err) }

// close lets go of what the group holds.
func (g *group) close() {
	for _, c := range g.cursors {
		c.Close()
	}
	g.cursors, g.values, g.words = nil, nil, nil
}
