package filter

import (
	"reflect"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// rows keeps what comes through.
type rows struct {
	spans   []int64
	flows   int
	samples int
	memory  int
	open    int
}

// Write implements event.Sink.
func (r *rows) Write(b *event.Batch) error {
	r.samples += len(b.Samples)
	for i := range b.Spans {
		r.spans = append(r.spans, b.Spans[i].ID)
	}
	r.memory += len(b.Memory)
	r.flows += len(b.Flows)
	for i := range b.OpenCalls {
		r.open += len(b.OpenCalls[i].Calls)
	}
	return nil
}

func TestRowsOfOtherRanksAndDevicesAreLeftOutAndCounted(t *testing.T) {
	zero, one := int32(0), int32(1)
	into := &rows{}
	s := &Sink{To: into, Filter: &Filter{Probe: Terms{Rank: {"0"}}, Exclude: Terms{Device: {"1"}}}}
	for pid, rank := range map[int32]*int32{10: &zero, 11: &one, 12: nil} {
		if err := s.Write(&event.Batch{Processes: []event.Process{{PID: pid, Rank: rank}}}); err != nil {
			t.Fatal(err)
		}
	}
	s.Write(&event.Batch{Spans: []event.Span{{ID: 1, PID: 10}, {ID: 2, PID: 11}, {ID: 3, PID: 12},
		{ID: 4, PID: 10, Detail: &event.Detail{DeviceID: &one}}, {ID: 5, PID: 10, Detail: &event.Detail{DeviceID: &zero}}}})
	s.Write(&event.Batch{Flows: []event.Flow{{FromSpanID: 1, ToSpanID: 2}, {FromSpanID: 4, ToSpanID: 5}, {FromSpanID: 1, ToSpanID: 5}}})
	s.Write(&event.Batch{Samples: []event.Sample{{PID: 10}, {PID: 11}}})
	s.Write(&event.Batch{Memory: []event.Memory{{PID: 11}, {PID: 10, DeviceID: &one}, {PID: 10}}})
	s.Write(&event.Batch{OpenCalls: []event.OpenCalls{{Calls: []event.OpenCall{{PID: 11}, {PID: 10}}}}})
	if !slices.Equal(into.spans, []int64{1, 3, 5}) || into.flows != 1 || into.samples != 1 || into.memory != 1 || into.open != 1 {
		t.Errorf("came through: %+v", *into)
	}
	if s.LeftOut != 8 {
		t.Errorf("%d rows are counted as left out, 8 were", s.LeftOut)
	}
}

func TestARankThatIsKnownLaterCounts(t *testing.T) {
	one := int32(1)
	into := &rows{}
	s := &Sink{To: into, Filter: &Filter{Probe: Terms{Rank: {"0"}}}}
	s.Write(&event.Batch{Processes: []event.Process{{PID: 7}}})
	s.Write(&event.Batch{Samples: []event.Sample{{PID: 7}}})
	s.Write(&event.Batch{Processes: []event.Process{{PID: 7, Rank: &one}}}) // after exec
	s.Write(&event.Batch{Samples: []event.Sample{{PID: 7}}})
	if into.samples != 1 || s.LeftOut != 1 {
		t.Errorf("%d samples came through, %d were left out", into.samples, s.LeftOut)
	}
}

func TestDroppedSpansAreForgottenInTheEnd(t *testing.T) {
	var d spanIDs
	for id := range int64(3 * mostDropped) {
		d.add(id)
	}
	if d.has(0) || !d.has(3*mostDropped-1) || len(d.young)+len(d.old) > 2*mostDropped {
		t.Errorf("%d and %d are kept", len(d.young), len(d.old))
	}
}

// Every table goes through where all of its rows are to be recorded, and the filter changes
// none of what it is given.
func TestNoTableIsForgotten(t *testing.T) {
	into := &last{}
	s := &Sink{To: into, Filter: &Filter{Probe: Terms{Rank: {"0"}}}}
	zero, one := int32(0), int32(1)
	var batch event.Batch
	tables := reflect.ValueOf(&batch).Elem()
	for i := range tables.NumField() {
		rows := tables.Field(i)
		rows.Set(reflect.MakeSlice(rows.Type(), 2, 2))
	}
	batch.Processes = []event.Process{{PID: 1, Rank: &one}, {PID: 0, Rank: &zero}}
	batch.Spans = []event.Span{{PID: 1, ID: 1}, {ID: 2}}
	batch.OpenCalls[0].Calls = []event.OpenCall{{PID: 1}, {Number: new(int64)}}
	if err := s.Write(&batch); err != nil {
		t.Fatal(err)
	}
	given := reflect.ValueOf(into.batch)
	for i := range given.NumField() {
		name, want := given.Type().Field(i).Name, 2
		if name == "Spans" {
			want = 1
		}
		if n := given.Field(i).Len(); n != want {
			t.Errorf("%s: %d rows came through", name, n)
		}
	}
	if into.batch.Spans[0].ID != 2 || len(into.batch.OpenCalls[0].Calls) != 1 {
		t.Errorf("came through: %+v", into.batch)
	}
	if batch.Spans[0].ID != 1 || len(batch.OpenCalls[0].Calls) != 2 || batch.OpenCalls[0].Calls[0].PID != 1 {
		t.Errorf("the filter changed what it was given: %+v", batch)
	}
}

// last keeps the last batch.
type last struct{ batch event.Batch }

func (l *last) Write(b *event.Batch) error { l.batch = *b; return nil }
