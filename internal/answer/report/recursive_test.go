package report

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// An operator in another call of itself, directly or with others between them, has its time once.
func TestAnOperatorInsideItselfCountsOnce(t *testing.T) {
	db := made(t, func(d *output.Dataset) error {
		var spans []event.Span
		add := func(at, took, parent int64, name string) int64 {
			spans = append(spans, event.Span{ID: int64(len(spans)) + 1, ParentID: parent, StartNS: 1e15 + at*1e6, DurationNS: took * 1e6, PID: 7,
				TID: 8,
				End: event.EndImported, Weight: 1, SequenceNumber: -1, Call: &event.Call{Layer: "op", Name: name}})
			return int64(len(spans))
		}
		for i := range int64(10) {
			at := 100 * i
			outer := add(at, 50, 0, "aten::mm")
			add(at+5, 40, outer, "aten::mm")           // a dispatch mode calls it again
			between := add(at+60, 30, 0, "my::module") // a module of modules
			inside := add(at+65, 20, between, "aten::add")
			add(at+70, 10, inside, "my::module")
		}
		return d.Write(&event.Batch{Spans: spans})
	})
	r, err := Build(t.Context(), db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][3]float64{"aten::mm": {20, 500, 500}, "my::module": {20, 300, 200}, "aten::add": {10, 200, 100}}
	for _, o := range r.Operators {
		if got := [3]float64{o.Calls, o.TotalMS, o.SelfMS}; got != want[o.Name] {
			t.Errorf("%s: calls, total and own time are %v, want %v", o.Name, got, want[o.Name])
		}
		delete(want, o.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
