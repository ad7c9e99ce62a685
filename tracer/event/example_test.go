package event_test

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// launches is a sink between a recording and another sink: it counts launches, and hands on
// everything but samples. A table that it does not name goes with the copy.
type launches struct {
	to event.Sink
	n  int
}

func (l *launches) Write(b *event.Batch) error {
	for i := range b.Spans {
		if b.Spans[i].Call.Category == "launch" {
			l.n++
		}
	}
	rest := *b
	rest.Samples = nil
	return l.to.Write(&rest)
}

func ExampleSink() {
	sink := &launches{to: event.Discard{}}
	launch := &event.Call{Layer: "runtime", Category: "launch", Runtime: "cuda", Name: "cudaLaunchKernel"}
	err := sink.Write(&event.Batch{
		Spans:   []event.Span{{ID: 1, Call: launch}, {ID: 2, Call: launch}},
		Samples: []event.Sample{{State: event.OnCPU}},
	})
	fmt.Println(sink.n, err)
	// Output: 2 <nil>
}
