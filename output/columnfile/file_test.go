package columnfile

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
)

var kinds = []Kind{Int64, Int32, Double, Boolean, String}

// cell is a value of any kind, or null.
type cell struct {
	null bool
	i    int64
	f    float64
	s    string
}

// someCells imitates columns of all sorts: constant, repeating, all different,
// extreme; with no nulls, some, or nothing else.
func someCells(random *rand.Rand, k Kind, n int, nullable bool) []cell {
	cells := make([]cell, n)
	distinct := []int64{1, 7, 1 << 40}[random.IntN(3)]
	nulls := 0.0
	if nullable {
		nulls = []float64{0, 0.3, 0.99, 1}[random.IntN(4)]
	}
	for i := range cells {
		c := &cells[i]
		if c.null = random.Float64() < nulls; c.null {
			continue
		}
		c.i = random.Int64N(distinct) - distinct/2
		switch k {
		case Int32:
			c.i = int64(int32(c.i))
		case Boolean:
			c.i &= 1
		case Int64:
			if random.IntN(100) == 0 {
				c.i = []int64{math.MinInt64, math.MaxInt64, 0, -1}[random.IntN(4)]
			}
		}
		c.f = []float64{float64(c.i), 0, math.Copysign(0, -1), math.Inf(1), math.NaN(), 1.5}[random.IntN(6)]
		c.s = []string{fmt.Sprint(c.i), "", "ü\x00,\"\n"}[random.IntN(3)]
	}
	return cells
}

func fill(v *Values, k Kind, cells []cell, order []int32) {
	v.Reset()
	switch k {
	case Double:
		Floats(v, cells, order, func(c *cell) (float64, bool) { return c.f, !c.null })
	case String:
		Texts(v, cells, order, func(c *cell) (string, bool) { return c.s, !c.null })
	default:
		Ints(v, cells, order, func(c *cell) (int64, bool) { return c.i, !c.null })
	}
}

func same(k Kind, c cell, v parquet.Value) bool {
	if c.null || v.IsNull() {
		return c.null == v.IsNull()
	}
	switch k {
	case Int64:
		return v.Int64() == c.i
	case Int32:
		return int64(v.Int32()) == c.i
	case Boolean:
		return v.Boolean() == (c.i != 0)
	case Double:
		return math.Float64bits(v.Double()) == math.Float64bits(c.f)
	default:
		return string(v.ByteArray()) == c.s
	}
}

func TestEveryValueComesBackFromParquetGo(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		var columns []Column
		for i := range 12 {
			columns = append(columns, Column{
				Name: fmt.Sprintf("c%02d", i), ID: int32(i + 1), Kind: kinds[random.IntN(len(kinds))],
				Nullable: i > 0 && random.IntN(2) == 0, Delta: random.IntN(2) == 0,
			})
		}
		var file bytes.Buffer
		groups := writeRandomGroups(t, random, &file, columns)
		checkGroups(t, file.Bytes(), columns, groups)
	}
}

// writeRandomGroups writes one to three row groups and returns their cells, by
// group and column.
func writeRandomGroups(t *testing.T, random *rand.Rand, out io.Writer, columns []Column) [][][]cell {
	t.Helper()
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(out, e, columns, "test", []KeyValue{{"k", "v"}})
	if err != nil {
		t.Fatal(err)
	}
	var groups [][][]cell
	var values Values
	for range 1 + random.IntN(3) {
		n := []int{1, 2, 31, 32, 33, 129, 5000}[random.IntN(7)]
		order := make([]int32, n)
		for i, p := range random.Perm(n) {
			order[i] = int32(p)
		}
		group := make([][]cell, len(columns))
		err := w.WriteRowGroup(n, -1, func(i int) *Values {
			cells := someCells(random, columns[i].Kind, n, columns[i].Nullable)
			fill(&values, columns[i].Kind, cells, order)
			for _, p := range order {
				group[i] = append(group[i], cells[p])
			}
			return &values
		})
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, group)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return groups
}

func checkGroups(t *testing.T, data []byte, columns []Column, groups [][][]cell) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for g, rowGroup := range f.RowGroups() {
		for i, chunk := range rowGroup.ColumnChunks() {
			got := make([]parquet.Value, len(groups[g][i])+1)
			pages := chunk.Pages()
			page, err := pages.ReadPage()
			if err != nil {
				t.Fatalf("%+v: %v", columns[i], err)
			}
			n, err := page.Values().ReadValues(got)
			if err != io.EOF || n != len(groups[g][i]) {
				t.Fatalf("%+v: %d values and %v, want %d", columns[i], n, err, len(groups[g][i]))
			}
			for j, want := range groups[g][i] {
				if !same(columns[i].Kind, want, got[j]) {
					t.Fatalf("%+v row %d is %v, want %+v", columns[i], j, got[j], want)
				}
			}
			pages.Close()
		}
	}
}

func TestWriterRefusesColumnsThatDisagree(t *testing.T) {
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		column Column
		values func(*Values)
	}{
		"null in a column that has none": {Column{Name: "c", Kind: Int64}, func(v *Values) { v.AllNull(2) }},
		"too few rows":                   {Column{Name: "c", Kind: Int64, Nullable: true}, func(v *Values) { v.AllNull(1) }},
		"values of another kind":         {Column{Name: "c", Kind: Int64}, func(v *Values) { v.Constant("x", 2) }},
	} {
		w, err := NewWriter(io.Discard, e, []Column{c.column}, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		err = w.WriteRowGroup(2, -1, func(int) *Values {
			v := new(Values)
			c.values(v)
			return v
		})
		if err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

func TestTextDictionaryKnowsEqualTextsAtOtherAddresses(t *testing.T) {
	var d textDictionary
	for i := range 3000 {
		if got := d.code(fmt.Sprint("text ", i%700)); got != int32(i%700) {
			t.Fatalf("text %d has code %d", i%700, got)
		}
	}
}

// TestWhatIsNoTextDoesNotSpoilAFile: readers refuse a file with a string that is not UTF-8.
func TestWhatIsNoTextDoesNotSpoilAFile(t *testing.T) {
	var d textDictionary
	for i, text := range []string{"plain", "sch\xc3\xb6n", "cut\xc3", "\xff\xfe\x01", "cut\xc3", "cut\uFFFD", "plain"} {
		if got, want := d.code(text), []int32{0, 1, 2, 3, 2, 2, 0}[i]; got != want {
			t.Errorf("%q has code %d, want %d", text, got, want)
		}
	}
	if want := []string{"plain", "schön", "cut\uFFFD", "\uFFFD\x01"}; !slices.Equal(d.texts, want) {
		t.Errorf("distinct texts are %q, want %q", d.texts, want)
	}
}

func smallFile(t testing.TB) []byte {
	t.Helper()
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := NewWriter(&file, e, []Column{{Name: "a", ID: 1, Kind: String}}, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	var v Values
	v.Constant("x", 10)
	if err := w.WriteRowGroup(10, -1, func(int) *Values { return &v }); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestCheckCountsRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	data := smallFile(t)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Check(path)
	if err != nil || s.Rows != 10 || s.Bytes != int64(len(data)) {
		t.Errorf("Check = %+v, %v", s, err)
	}
}

func TestCheckFindsEveryTruncation(t *testing.T) {
	data := smallFile(t)
	for n := range data {
		if _, err := check(bytes.NewReader(data[:n]), int64(n)); err == nil {
			t.Errorf("the first %d of %d bytes pass for a file", n, len(data))
		}
	}
	// The end kept, the beginning lost: what a broken copy leaves.
	if _, err := check(bytes.NewReader(data[40:]), int64(len(data)-40)); err == nil {
		t.Error("a file without its beginning passes")
	}
}

func FuzzCheck(f *testing.F) {
	data := smallFile(f)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte("PAR1\x00\x00\x00\x00PAR1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := check(bytes.NewReader(data), int64(len(data))); err == nil && s.Rows < 0 {
			t.Errorf("%d rows", s.Rows)
		}
	})
}
