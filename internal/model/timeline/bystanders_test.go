package timeline

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// marks are a trainer of ten marked steps of a millisecond with an operator each, and a process that
// annotates a thousand requests in that time; last is how long the last mark lasts.
func marks(t *testing.T, trainer bool, last int64) []Thread {
	t.Helper()
	d, err := output.Create(t.TempDir()+"/d", output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	step := &event.Call{Layer: "scope", Name: "ProfilerStep#1"}
	op, request := &event.Call{Layer: "op", Name: "aten::mm"}, &event.Call{Layer: "scope", Name: "request"}
	var spans []event.Span
	add := func(pid int32, at, took int64, call *event.Call) {
		spans = append(spans, event.Span{ID: int64(len(spans)) + 1, StartNS: 1e15 + at, DurationNS: took, PID: pid, TID: pid, Call: call,
			End: event.EndImported, Weight: 1, SequenceNumber: -1})
	}
	for i := range int64(10) {
		if !trainer {
			break
		}
		took := int64(900_000)
		if i == 9 {
			took = last
		}
		add(7, i*1_000_000, took, step)
		add(7, i*1_000_000+1000, 500_000, op)
	}
	for i := range int64(1000) {
		add(9, i*10_000, 3000, request)
	}
	if err := d.Session(event.Recording{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(&event.Batch{Spans: spans}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return find(t, open(t, d.Dir()))
}

func TestAProcessThatOnlyMarksRangesHasNoStepsBesideATrainer(t *testing.T) {
	threads := marks(t, true, 900_000)
	if len(threads) != 1 || threads[0].PID != 7 || len(threads[0].Steps) != 10 {
		t.Fatalf("%d threads: %+v", len(threads), threads)
	}
	if threads := marks(t, false, 0); len(threads) != 1 || threads[0].PID != 9 {
		t.Errorf("alone it has %d threads with steps", len(threads))
	}
}

func TestALastMarkWithoutAnEndIsNoStep(t *testing.T) {
	for _, last := range []int64{-1, 0, 1e15} {
		threads := marks(t, true, last)
		if len(threads) != 1 || len(threads[0].Steps) != 9 {
			t.Fatalf("%d: %+v", last, threads)
		}
		for _, s := range threads[0].Steps {
			if s.Period != 1_000_000 {
				t.Errorf("%d: a step of %d ns", last, s.Period)
			}
		}
	}
}
