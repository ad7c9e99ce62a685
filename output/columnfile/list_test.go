package columnfile

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// listRow and member are what parquet-go reads the lists back into.
type listRow struct {
	ID      int64    `parquet:"id"`
	Members []member `parquet:"members,list"`
}

type member struct {
	Kind string  `parquet:"kind"`
	Name *string `parquet:"name,optional"`
	Line *int32  `parquet:"line,optional"`
}

var listColumns = []Column{
	{Name: "id", ID: 1, Kind: Int64},
	{Name: "members", ID: 2, Kind: List, Fields: []Column{
		{Name: "kind", ID: 3, Kind: String},
		{Name: "name", ID: 4, Kind: String, Nullable: true},
		{Name: "line", ID: 5, Kind: Int32, Nullable: true},
	}},
}

// someLists has empty lists, long ones, members that are all null, some, none.
func someLists(random *rand.Rand, n int) []listRow {
	rows := make([]listRow, n)
	nulls := []float64{0, 0.5, 1}[random.IntN(3)]
	longest := []int{0, 1, 3, 200}[random.IntN(4)]
	for i := range rows {
		rows[i].ID = int64(i)
		for range random.IntN(longest + 1) {
			m := member{Kind: fmt.Sprint("kind ", random.IntN(3))}
			if random.Float64() >= nulls {
				name, line := []string{"", "ü", fmt.Sprint(random.Int())}[random.IntN(3)], int32(random.IntN(5))
				m.Name, m.Line = &name, &line
			}
			rows[i].Members = append(rows[i].Members, m)
		}
	}
	return rows
}

func writeLists(t *testing.T, out io.Writer, groups ...[]listRow) {
	t.Helper()
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(out, e, listColumns, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	members := func(r *listRow) []member { return r.Members }
	var v Values
	for _, rows := range groups {
		order := make([]int32, len(rows))
		for i := range order {
			order[i] = int32(i)
		}
		err := w.WriteRowGroup(len(rows), -1, func(i int) *Values {
			v.Reset()
			switch i {
			case 0:
				Ints(&v, rows, order, func(r *listRow) (int64, bool) { return r.ID, true })
			case 1:
				ListTexts(&v, rows, order, members, func(m *member) (string, bool) { return m.Kind, true })
			case 2:
				ListTexts(&v, rows, order, members, func(m *member) (string, bool) {
					if m.Name == nil {
						return "", false
					}
					return *m.Name, true
				})
			default:
				ListInts(&v, rows, order, members, func(m *member) (int64, bool) {
					if m.Line == nil {
						return 0, false
					}
					return int64(*m.Line), true
				})
			}
			return &v
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestListsComeBackFromParquetGo(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		a, b := someLists(random, []int{1, 2, 33, 1000}[random.IntN(4)]), someLists(random, 40)
		var file bytes.Buffer
		writeLists(t, &file, a, b)
		got, err := parquet.Read[listRow](bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := append(a, b...)
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d rows, want %d", seed, len(got), len(want))
		}
		for i := range want {
			if len(want[i].Members) == 0 && len(got[i].Members) == 0 {
				continue
			}
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("seed %d row %d: %+v, want %+v", seed, i, got[i], want[i])
			}
		}
	}
}

func TestWriterRefusesListsThatDisagree(t *testing.T) {
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	for name, fill := range map[string]func(*Values){
		"no lists in a column of lists": func(v *Values) { v.Constant("x", 1) },
		"a null member that cannot be": func(v *Values) {
			ListTexts(v, []listRow{{Members: []member{{}}}}, []int32{0}, func(r *listRow) []member { return r.Members },
				func(*member) (string, bool) { return "", false })
		},
		"members of another kind": func(v *Values) {
			ListInts(v, []listRow{{Members: []member{{}}}}, []int32{0}, func(r *listRow) []member { return r.Members },
				func(*member) (int64, bool) { return 0, true })
		},
	} {
		w, err := NewWriter(io.Discard, e, listColumns[1:], "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteRowGroup(1, -1, func(int) *Values { v := new(Values); fill(v); return v }); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}
