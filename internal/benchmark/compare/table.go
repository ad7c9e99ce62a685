package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/reference"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// Row is a number of a run, by columns: name, sysenv, pvar, punit, pval and the others of ReFrame, and the parameters of
// the benchmark. Values are string or float64; nil is none.
type Row map[string]any

// Table is what a comparison gives. Cells are string, float64 or int; nil is none.
type Table struct {
	Columns []string
	Rows    []Line
}

// Line is a row of it.
type Line struct {
	Cells []any
	// Change is what the difference is worth; zero in a table that was made of one side.
	Change Change
}

// DifferenceColumn has by how many percent the left side is more than the right one.
const DifferenceColumn = "pdiff (%)"

// group are the rows of one group.
type group struct {
	key   []any
	rows  []Row
	cells map[string]any
}

// Table compares two sets of rows. Groups that only one side has are left out, as ReFrame does.
func (s *Spec) Table(left, right []Row) (*Table, error) {
	if !slices.ContainsFunc(s.Operators, func(a Aggregation) bool { return a.Column == "pval" }) {
		return nil, fmt.Errorf("nothing says how to make one value of several of pval: add an aggregation such as mean")
	}
	l, r := s.groups(left), s.groups(right)
	t := &Table{}
	var of []func(l, r *group) any
	for i, c := range s.GroupBy {
		if slices.Contains(s.order, c) {
			t.Columns, of = append(t.Columns, c), append(of, func(l, _ *group) any { return l.key[i] })
		}
	}
	for _, c := range s.order {
		if slices.Contains(s.GroupBy, c) {
			continue
		}
		for _, name := range s.namesOf(c) {
			for _, side := range s.sides[c] {
				t.Columns = append(t.Columns, name+" ("+side+")")
				if side == "lhs" {
					of = append(of, func(l, _ *group) any { return l.cells[name] })
				} else {
					of = append(of, func(_, r *group) any { return r.cells[name] })
				}
			}
		}
	}
	t.Columns = append(t.Columns, DifferenceColumn)
	main := s.namesOf("pval")[0]
	for _, a := range l {
		i := slices.IndexFunc(r, func(b *group) bool { return compareKeys(a.key, b.key) == 0 })
		if i < 0 {
			continue
		}
		b := r[i]
		line := Line{}
		for _, cell := range of {
			line.Cells = append(line.Cells, cell(a, b))
		}
		line.Cells = append(line.Cells, difference(a.cells[main], b.cells[main]))
		line.Change = Between(a.rows, b.rows)
		t.Rows = append(t.Rows, line)
	}
	return t, nil
}

// namesOf are the names of a column in the table: one for each operator, else its own.
func (s *Spec) namesOf(column string) (names []string) {
	for _, a := range s.Operators {
		if a.Column == column {
			names = append(names, a.Name())
		}
	}
	if len(names) == 0 {
		return []string{column}
	}
	return names
}

// groups aggregates rows, in the order of their keys.
func (s *Spec) groups(rows []Row) (all []*group) {
	byKey := map[string]*group{}
	for _, row := range rows {
		if row["pval"] == nil {
			continue
		}
		g := &group{}
		var text []string
		for _, c := range s.GroupBy {
			g.key = append(g.key, row[c])
			text = append(text, fmt.Sprintf("%T %v", row[c], row[c]))
		}
		key := strings.Join(text, "\x00")
		if byKey[key] == nil {
			byKey[key] = g
			all = append(all, g)
		}
		byKey[key].rows = append(byKey[key].rows, row)
	}
	slices.SortFunc(all, func(a, b *group) int { return compareKeys(a.key, b.key) })
	for _, g := range all {
		g.cells = map[string]any{}
		for _, a := range s.Operators {
			g.cells[a.Name()] = a.of(g.rows)
		}
		for _, c := range s.order {
			if g.cells[c] == nil {
				g.cells[c] = distinct(c, g.rows)
			}
		}
	}
	return all
}

func compareKeys(a, b []any) int {
	for i := range a {
		if c := compareValues(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func compareValues(a, b any) int {
	x, isX := a.(float64)
	y, isY := b.(float64)
	if isX && isY {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(text(a), text(b))
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// distinct is a column that nothing aggregates: how many samples there are, else its values, joined.
func distinct(column string, rows []Row) any {
	if column == "psamples" {
		return len(rows)
	}
	var values []string
	for _, row := range rows {
		if v := text(row[column]); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return strings.Join(values, "|")
}

// of aggregates a column; what is no number is left out, except where any value will do.
func (a Aggregation) of(rows []Row) any {
	switch a.Operator {
	case "first":
		return rows[0][a.Column]
	case "last":
		return rows[len(rows)-1][a.Column]
	case "count":
		return len(rows)
	}
	values := floats(rows, a.Column)
	if len(values) == 0 {
		return nil
	}
	switch a.Operator {
	case "min":
		return slices.Min(values)
	case "max":
		return slices.Max(values)
	case "mean":
		return steps.Mean(values)
	case "sum":
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		return sum
	case "std":
		if len(values) < 2 {
			return nil
		}
		return math.Sqrt(steps.Variance(values))
	case "median":
		slices.Sort(values)
		n := len(values)
		return (values[(n-1)/2] + values[n/2]) / 2
	}
	percent, _ := strconv.Atoi(quantile.FindStringSubmatch(a.Operator)[1])
	return nearest(values, float64(percent)/100)
}

func floats(rows []Row, column string) (values []float64) {
	for _, row := range rows {
		if v, ok := row[column].(float64); ok {
			values = append(values, v)
		}
	}
	return values
}

// nearest is the value at a quantile, that of the nearest one, as polars has it.
func nearest(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[int(math.Round(q*float64(len(values)-1)))]
}

func difference(left, right any) any {
	l, okL := number(left)
	r, okR := number(right)
	if !okL || !okR {
		return nil
	}
	return reference.Difference(l, r)
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	}
	return 0, false
}
