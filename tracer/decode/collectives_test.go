package decode

import (
	"errors"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
	"github.com/ebpfprof/ebpfprof/tracer/waits"
)

type opened struct {
	last event.OpenCalls
}

// Write implements event.Sink.
func (o *opened) Write(b *event.Batch) error {
	for i := range b.OpenCalls {
		o.last = b.OpenCalls[i]
	}
	return nil
}

type noMemory struct{}

func (noMemory) Read(uint32, uint64, []byte) error { return errors.New("none") }

// A rank that the others wait for has nothing open: how far it has come is told once its
// threads stand still, and not as it was when something was open last.
func TestHowFarARankHasComeIsToldWhenItStandsStill(t *testing.T) {
	sink := &opened{}
	c := newCollectives(rows.New(sink), nil, noMemory{}, 0)
	asks := &event.Call{Layer: "collective", Category: "issue", Runtime: "gloo", Name: "gloo::allreduce"}
	for n := range int64(42) {
		c.waits.Issue(&event.Span{ID: n + 1, PID: 7, TID: 7, StartNS: n, Call: asks, SequenceNumber: -1}, waits.Call{Group: 0x5000, Number: n})
		c.Open(n, waits.Epochs{}, nil)
	}
	if n := sink.last.Communicators[0].IssuedNumber; n == nil || *n != 0 {
		t.Fatalf("written when nothing is open: %v", n)
	}
	c.still([]event.StillThread{{SeenNS: 50, PID: 7, TID: 7}})
	if n := sink.last.Communicators[0].IssuedNumber; len(sink.last.Threads) != 1 || n == nil || *n != 41 {
		t.Errorf("%+v, number %v", sink.last, n)
	}
}
