package output

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func TestSchemaKeepsItsConventions(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	tables := map[string]bool{}
	for _, table := range Schema() {
		if tables[table.Name] || !snake.MatchString(table.Name) || table.Row == "" {
			t.Errorf("table %q", table.Name)
		}
		tables[table.Name] = true
		if c := table.Columns[0]; c.Name != "session_id" || c.Nullable {
			t.Errorf("%s begins with %+v", table.Name, c)
		}
		names, ids := map[string]bool{}, map[int32]bool{}
		for _, c := range table.Columns {
			if names[c.Name] || ids[c.FieldID] || c.FieldID <= 0 {
				t.Errorf("%s.%s (field %d) is there twice", table.Name, c.Name, c.FieldID)
			}
			names[c.Name], ids[c.FieldID] = true, true
			if !snake.MatchString(c.Name) || c.Description == "" {
				t.Errorf("%s: %+v", table.Name, c)
			}
			if strings.HasSuffix(c.Name, "_ns") != (c.Unit == "ns") {
				t.Errorf("%s.%s has unit %q", table.Name, c.Name, c.Unit)
			}
			if c.Unit == "ns" && c.Type != BigInt {
				t.Errorf("%s.%s is %s", table.Name, c.Name, c.Type)
			}
			switch c.Type {
			case BigInt, Integer, Double, Boolean, Varchar, FrameList:
			default:
				t.Errorf("%s.%s has type %s", table.Name, c.Name, c.Type)
			}
		}
	}
}

// TestZeroIsAValueAndAbsentIsNull sets each pointer of each event, one at a
// time, to the zero of its type: the columns it feeds must say 0 or ”, and
// NULL when it is nil.
func TestZeroIsAValueAndAbsentIsNull(t *testing.T) {
	span := event.Span{Call: &event.Call{}, DurationNS: -1, SequenceNumber: -1}
	checkPointers(t, spanTable, span, "Detail")
	detailed := span
	detailed.Detail = &event.Detail{}
	checkDetail(t, detailed)
	checkPointers(t, memoryTable, event.Memory{}, "")
	checkPointers(t, sliceTable, event.Slice{}, "")
	checkPointers(t, counterTable, event.Counter{}, "")
	checkPointers(t, sampleTable, event.Sample{}, "")
	checkPointers(t, stackTable, event.Stack{}, "")
	checkPointers(t, flowTable, event.Flow{}, "")
	checkPointers(t, warningTable, event.Warning{}, "")
	checkPointers(t, processTable, event.Process{}, "")
	checkPointers(t, threadTable, event.Thread{}, "")
	checkPointers(t, libraryTable, event.Library{}, "")
	checkPointers(t, probeTable, event.Probe{}, "")
	checkPointers(t, sessionTable, event.Recording{}, "Cost")
	parts := reflect.TypeFor[event.CostParts]().NumField() // a column each
	checkZero(t, sessionTable, event.Recording{}, event.Recording{Cost: &event.CostParts{}}, "Cost", parts)
}

func checkPointers[T any](t *testing.T, table *table[T], absent T, except string) {
	t.Helper()
	typ := reflect.TypeFor[T]()
	checkNullable(t, table, absent)
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Type.Kind() != reflect.Pointer || f.Name == except || f.Name == "Call" {
			continue
		}
		row := absent
		reflect.ValueOf(&row).Elem().Field(i).Set(reflect.New(f.Type.Elem()))
		checkZero(t, table, absent, row, f.Name, 1)
	}
}

func checkDetail(t *testing.T, absent event.Span) {
	t.Helper()
	checkNullable(t, spanTable, absent)
	typ := reflect.TypeFor[event.Detail]()
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Type.Kind() != reflect.Pointer {
			continue
		}
		switch f.Name {
		case "Shape":
			checkPart(t, absent, func(d *event.Detail, shape *event.Shape) { d.Shape = shape })
			continue
		case "Wait":
			checkPart(t, absent, func(d *event.Detail, wait *event.Wait) { d.Wait = wait })
			continue
		}
		detail := *absent.Detail
		reflect.ValueOf(&detail).Elem().Field(i).Set(reflect.New(f.Type.Elem()))
		row := absent
		row.Detail = &detail
		columns := 1
		if f.Type.Elem().Kind() == reflect.Array {
			columns = f.Type.Elem().Len()
		}
		checkZero(t, spanTable, absent, row, f.Name, columns)
	}
}

func checkPart[P any](t *testing.T, absent event.Span, put func(*event.Detail, *P)) {
	t.Helper()
	typ := reflect.TypeFor[P]()
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Type.Kind() != reflect.Pointer {
			continue
		}
		var part P
		reflect.ValueOf(&part).Elem().Field(i).Set(reflect.New(f.Type.Elem()))
		row := absent
		row.Detail = &event.Detail{}
		put(row.Detail, &part)
		checkZero(t, spanTable, absent, row, f.Name, 1)
	}
}

// checkNullable: in an event of which nothing is known, the nullable columns
// are NULL and no others.
func checkNullable[T any](t *testing.T, table *table[T], absent T) {
	t.Helper()
	for _, c := range table.columns {
		if c.rare && !table.rare(&absent) {
			continue
		}
		if value, ok := c.value(&absent); ok == c.Nullable && c.Name != "tool_version" {
			t.Errorf("%s.%s of an event without values: %v, %v", table.Name, c.Name, value, ok)
		}
	}
}

func checkZero[T any](t *testing.T, table *table[T], absent, row T, field string, want int) {
	t.Helper()
	changed := 0
	for _, c := range table.columns {
		if c.rare && !table.rare(&absent) {
			continue
		}
		_, before := c.value(&absent)
		value, after := c.value(&row)
		if before == after {
			continue
		}
		changed++
		if !after || !reflect.ValueOf(value).IsZero() {
			t.Errorf("%s.%s of a zero %s is %v, %v", table.Name, c.Name, field, value, after)
		}
	}
	if changed != want {
		t.Errorf("%s: a zero %s shows in %d columns, want %d", table.Name, field, changed, want)
	}
}

func (c *column[T]) value(row *T) (any, bool) {
	switch {
	case c.frames != nil:
		return c.frames(row), true
	case c.ints != nil:
		v, ok := c.ints(row)
		return v, ok
	case c.floats != nil:
		v, ok := c.floats(row)
		return v, ok
	default:
		v, ok := c.texts(row)
		return v, ok
	}
}

// TestZerosSurviveTheFile is the same, through a file.
func TestZerosSurviveTheFile(t *testing.T) {
	d := begin(t, Options{})
	zero, none := int32(0), ""
	rows := []event.Process{
		{ID: 0, PID: 0, Rank: &zero, LocalRank: &zero, ContainerID: &none},
		{ID: 1, PID: 1},
	}
	for _, p := range rows {
		if err := d.Write(&event.Batch{Processes: []event.Process{p}}); err != nil {
			t.Fatal(err)
		}
	}
	stream := int64(0)
	spans := someSpans(3)
	spans[1].Detail = &event.Detail{Stream: &stream, Grid: &[3]int64{0, 0, 0}}
	if err := d.Write(&event.Batch{Spans: spans}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	processes := readTable(t, d.Dir(), "process")
	for column, want := range map[string]any{"pid": int64(0), "rank": int64(0), "container_id": "", "cgroup": nil, "world_size": nil} {
		if processes[0][column] != want {
			t.Errorf("process.%s = %v, want %v", column, processes[0][column], want)
		}
	}
	if processes[1]["rank"] != nil || processes[1]["container_id"] != nil {
		t.Errorf("absent values of %v are not NULL", processes[1])
	}
	for i, row := range readTable(t, d.Dir(), "span") {
		var want any
		if i == 1 {
			want = int64(0)
		}
		if row["stream"] != want || row["grid_z"] != want || row["duration_ns"] != nil || row["parent_id"] != nil {
			t.Errorf("span %d: %v", i, row)
		}
	}
}
