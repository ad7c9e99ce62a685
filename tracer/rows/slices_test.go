package rows

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// counting counts rows, and the most that it was given at once.
type counting struct {
	spans, memory, most int
	weight              float64
}

func (c *counting) Write(b *event.Batch) error {
	c.spans, c.memory = c.spans+len(b.Spans), c.memory+len(b.Memory)
	c.most = max(c.most, len(b.Spans)+len(b.Memory))
	for i := range b.Spans {
		c.weight += b.Spans[i].Weight
	}
	for i := range b.Memory {
		c.weight += b.Memory[i].Weight
	}
	return nil
}

// holding are rows of slices, with a probe whose calls are in them.
func holding(most int) (*counting, *Rows, *probetable.Probe) {
	sink := &counting{}
	r := New(sink)
	r.Slices.Hold(true)
	r.Slices.most = most
	return sink, r, &probetable.Probe{Index: 3, Planned: &plan.Probe{Group: &spec.Group{Tier: spec.Detail}}}
}

func fourfold(uint32, int32, int64) weights.Share { return weights.Share{Weight: 4} }

// Eight processes with cheap calls have a million rows in one slice: they wait once, go to the sink
// by and by, and those that find no room are counted.
func TestASliceOfManyProcessesHasSoMuchMemory(t *testing.T) {
	const most = 8 * fullBatch
	sink, r, p := holding(most)
	for i := range int64(2 * most) {
		if i%2 == 0 {
			r.Slices.HoldSpan(p, 1, &event.Span{StartNS: i, Call: &event.Call{}})
		} else {
			r.Slices.Memory(p, 1, event.Memory{TSNS: i}, 0)
		}
	}
	if r.Slices.Lost != most {
		t.Errorf("%d rows of %d are lost, there is room for %d", r.Slices.Lost, 2*most, most)
	}
	r.Slices.Weigh(1, most/2, fourfold)
	if waits := most / 2; sink.spans+sink.memory+len(r.Batch.spans)+len(r.Batch.memory) != most-waits || r.Slices.rows != waits {
		t.Errorf("the sink has %d and %d rows, %d wait: half of %d began before", sink.spans, sink.memory, r.Slices.rows, most)
	}
	r.Slices.HoldSpan(p, 1, &event.Span{StartNS: most, Call: &event.Call{}})
	if r.Slices.Lost != most {
		t.Error("no room for a row, though half of them have gone")
	}
	means := r.Slices.Weigh(1, WholeEpoch, fourfold)
	if err := r.Batch.Flush(); err != nil || r.Out.Failed() != nil {
		t.Fatal(err, r.Out.Failed())
	}
	if sink.spans != most/2+1 || sink.memory != most/2 || sink.weight != 4*(most+1) || means[3] != 4 {
		t.Errorf("%d spans and %d rows of memory of weight %g, on average %g", sink.spans, sink.memory, sink.weight, means[3])
	}
	if sink.most > fullBatch || len(r.Slices.held) != 0 || r.Slices.rows != 0 {
		t.Errorf("the sink was given %d rows at once; %d rows of %d epochs wait on", sink.most, r.Slices.rows, len(r.Slices.held))
	}
}

// What waits on keeps its order, and the piece it lies in is not kept for others.
func TestRowsWaitInPieces(t *testing.T) {
	var w waiting[int]
	for i := range 3*pieceRows + 1 {
		w.add(&i, uint32(i))
	}
	w.each(func(row *int, probe uint32) bool { return *row%3 == 0 && uint32(*row) == probe })
	if len(w.pieces) != 2 {
		t.Errorf("%d pieces have a third of what three and a row had", len(w.pieces))
	}
	next := 0
	w.each(func(row *int, _ uint32) bool {
		if *row != next {
			t.Fatalf("row %d, want %d", *row, next)
		}
		next += 3
		return false
	})
	if next != 3*pieceRows+3 || w.pieces != nil {
		t.Errorf("the last row was %d, %d pieces are left", next-3, len(w.pieces))
	}
}
