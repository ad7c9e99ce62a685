package tracer_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// slowest is a Sink that keeps one span and lets the rest go.
type slowest struct {
	span event.Span
}

func (s *slowest) Write(b *event.Batch) error {
	for _, row := range b.Spans {
		if row.DurationNS > s.span.DurationNS {
			s.span = row
		}
	}
	return nil
}

// A running job is recorded for five seconds, from outside. It takes root, and the
// pid of a process that has PyTorch or an accelerator runtime mapped.
func Example() {
	var sink slowest
	session, err := tracer.Open(context.Background(), tracer.Options{PIDs: []int{4242}, Level: tracer.LevelWindow}, &sink)
	if err != nil {
		log.Fatal(err) // errors.Is(err, tracer.ErrNotPermitted), tracer.ErrUnsupported, …
	}
	defer session.Close()
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	if err := session.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(sink.span.Call.Name, time.Duration(sink.span.DurationNS))
}
