package output

import (
	"errors"
	"reflect"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Every table of a batch is written: one that is added to event.Batch needs a place here.
func TestEveryTableOfABatchIsWritten(t *testing.T) {
	for i := range reflect.TypeFor[event.Batch]().NumField() {
		var b event.Batch
		rows := reflect.ValueOf(&b).Elem().Field(i)
		rows.Set(reflect.MakeSlice(rows.Type(), 1, 1))
		for j := range b.Spans {
			b.Spans[j].Call = &event.Call{}
		}
		for j := range b.OpenCalls {
			b.OpenCalls[j].Calls = []event.OpenCall{{Call: &event.Call{}, Communicator: -1}}
		}
		d := begin(t, Options{})
		if err := errors.Join(d.Write(&b), d.Close()); err != nil {
			t.Fatal(err)
		}
		written := 0
		for _, s := range d.Stats() {
			if s.Rows > 0 && s.Table != "session" && s.Table != "schema_field" {
				written++
			}
		}
		if name := reflect.TypeFor[event.Batch]().Field(i).Name; written != 1 {
			t.Errorf("%s: rows are in %d tables", name, written)
		}
	}
}
