package filter

import (
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// rows keeps what comes through.
type rows struct {
	event.Discard
	spans   []int64
	flows   int
	samples int
	memory  int
	open    int
}

func (r *rows) Spans(s []event.Span) error {
	for i := range s {
		r.spans = append(r.spans, s[i].ID)
	}
	return nil
}
func (r *rows) Flows(f []event.Flow) error        { r.flows += len(f); return nil }
func (r *rows) Samples(s []event.Sample) error    { r.samples += len(s); return nil }
func (r *rows) Memory(m []event.Memory) error     { r.memory += len(m); return nil }
func (r *rows) OpenCalls(o event.OpenCalls) error { r.open += len(o.Calls); return nil }

func TestRowsOfOtherRanksAndDevicesAreLeftOutAndCounted(t *testing.T) {
	zero, one := int32(0), int32(1)
	into := &rows{}
	s := &Sink{Sink: into, Filter: &Filter{Probe: Terms{Rank: {"0"}}, Exclude: Terms{Device: {"1"}}}}
	for pid, rank := range map[int32]*int32{10: &zero, 11: &one, 12: nil} {
		if err := s.Process(event.Process{PID: pid, Rank: rank}); err != nil {
			t.Fatal(err)
		}
	}
	s.Spans([]event.Span{{ID: 1, PID: 10}, {ID: 2, PID: 11}, {ID: 3, PID: 12}, {ID: 4, PID: 10, Detail: &event.Detail{DeviceID: &one}}, {ID: 5, PID: 10, Detail: &event.Detail{DeviceID: &zero}}})
	s.Flows([]event.Flow{{FromSpanID: 1, ToSpanID: 2}, {FromSpanID: 4, ToSpanID: 5}, {FromSpanID: 1, ToSpanID: 5}})
	s.Samples([]event.Sample{{PID: 10}, {PID: 11}})
	s.Memory([]event.Memory{{PID: 11}, {PID: 10, DeviceID: &one}, {PID: 10}})
	s.OpenCalls(event.OpenCalls{Calls: []event.OpenCall{{PID: 11}, {PID: 10}}})
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
	s := &Sink{Sink: into, Filter: &Filter{Probe: Terms{Rank: {"0"}}}}
	s.Process(event.Process{PID: 7})
	s.Samples([]event.Sample{{PID: 7}})
	s.Process(event.Process{PID: 7, Rank: &one}) // after exec
	s.Samples([]event.Sample{{PID: 7}})
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
