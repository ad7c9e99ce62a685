package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Two slices of four steps stand for forty; one operator was seen in one step of one slice
// alone, another one was recorded whole.
func TestOperatorsOfSlicesSayHowFarOffTheyMayBe(t *testing.T) {
	db := made(t, func(d *output.Dataset) error {
		var rows []event.Span
		call := func(name string, at int64, weight float64, slice int64, step int32) {
			rows = append(rows, event.Span{ID: int64(len(rows) + 1), StartNS: 1e15 + at*1e6, DurationNS: 1000, PID: 7, TID: 7,
				Call: &event.Call{Layer: "op", Name: name}, Weight: weight, SequenceNumber: -1, SliceID: slice, SliceStep: step})
		}
		var slices []event.Slice
		for s := range int64(2) {
			slices = append(slices, event.Slice{ID: s + 1, PID: 7, Group: "op", BeginNS: 1e15 + s*2e7, EndNS: 1e15 + s*2e7 + 4e6,
				FromNS: 1e15 + s*2e7, ToNS: 1e15 + (s+1)*2e7,
				Phase: event.PhaseTraining, Unit: event.UnitSteps, Recorded: 4, Represented: 20, Steps: 4})
			for step := range int64(4) {
				for range 2 + (s+step)%2 {
					call("aten::mm", 20*s+step, 5, s+1, int32(step+1))
				}
			}
		}
		slices = append(slices, event.Slice{ID: 3, PID: 8, Group: "op", BeginNS: 1e15, EndNS: 1e15 + 1e6, FromNS: 1e15, ToNS: 1e15 + 4e7,
			Phase: event.PhaseTraining, Unit: event.UnitSteps, Recorded: 1, Represented: 40, Steps: 1})
		call("aten::once", 0, 40, 3, 1)
		rows[len(rows)-1].PID = 8
		call("aten::whole", 39, 1, 0, 0)
		return errors.Join(d.Write(&event.Batch{Slices: slices}), d.Write(&event.Batch{Spans: rows}))
	})
	r := built(t, db)
	at := map[string]Operator{}
	for _, o := range r.Operators {
		at[o.Name] = o
	}
	mm := at["aten::mm"]
	if mm.Calls != 100 || mm.CallsLo == nil || mm.CallsHi == nil || !(*mm.CallsLo > 50 && *mm.CallsLo < 100 && *mm.CallsHi > 100 &&
		*mm.CallsHi < 150) {
		t.Errorf("aten::mm: %+v", mm)
	}
	if mm.TotalLoMS == nil || mm.TotalHiMS == nil || !(*mm.TotalLoMS < mm.TotalMS && mm.TotalMS < *mm.TotalHiMS) {
		t.Errorf("aten::mm: the time has no interval: %+v", mm)
	}
	if once := at["aten::once"]; once.CallsHi != nil || once.TotalLoMS == nil {
		t.Errorf("one step tells no upper end: %+v", once)
	}
	if whole := at["aten::whole"]; whole.Estimated || whole.CallsLo != nil {
		t.Errorf("what was recorded whole is no estimate: %+v", whole)
	}
	var text bytes.Buffer
	if err := r.Write(&text, "text", Style{}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		for name, want := range map[string]string{"aten::once": "?", "aten::whole": "–", "≈ calls": "± %"} {
			if strings.Contains(line, name) && !strings.Contains(line, want) {
				t.Errorf("%q lacks %q", line, want)
			}
		}
	}
	if !strings.Contains(text.String(), "≈ calls") {
		t.Errorf("the text does not say that calls are estimates:\n%s", &text)
	}
	from := 0.0
	part, err := Build(t.Context(), db, Options{FromMS: &from})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range part.Operators {
		if o.CallsLo != nil {
			t.Errorf("of a part of the recording no interval is known: %+v", o)
		}
	}
}
