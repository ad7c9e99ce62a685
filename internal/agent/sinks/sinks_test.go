package sinks

import (
	"errors"
	"sync"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

type failing struct{ event.Discard }

func (failing) Spans([]event.Span) error { return errors.New("full") }

type counting struct {
	event.Discard
	n *int
}

func (c counting) Spans(r []event.Span) error { *c.n += len(r); return nil }

func TestAFullDiskDoesNotTakeThePatternsWithIt(t *testing.T) {
	n := 0
	if err := (Tee{failing{}, counting{n: &n}}).Spans(make([]event.Span, 3)); err == nil || n != 3 {
		t.Errorf("%v, %d", err, n)
	}
	disk := &Lenient{Sink: failing{}}
	if err := (Tee{disk, counting{n: &n}}).Spans(make([]event.Span, 3)); err != nil || n != 6 || disk.Failed == nil {
		t.Errorf("%v, %d, %v", err, n, disk.Failed)
	}
}

// Two goroutines hand events to one sink that takes them by turns.
func TestTurnsAreTaken(t *testing.T) {
	n := 0
	l := &Locked{To: Tee{counting{n: &n}}}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range 1000 {
				if err := l.Spans(make([]event.Span, 1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	if n != 2000 {
		t.Errorf("%d of 2000", n)
	}
}
