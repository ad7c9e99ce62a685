package filter_test

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
)

// counted counts spans.
type counted struct{ spans int }

func (c *counted) Write(b *event.Batch) error { c.spans += len(b.Spans); return nil }

// What --probe and --exclude say goes into tracer.Options; a Sink leaves out the rows that
// only the recording tells apart, those of other ranks and devices.
func Example() {
	f, err := filter.New("rank=0", "device=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	var to counted
	sink := &filter.Sink{To: &to, Filter: &f}
	zero, one := int32(0), int32(1)
	err = sink.Write(&event.Batch{
		Processes: []event.Process{{PID: 10, Rank: &zero}, {PID: 11, Rank: &one}},
		Spans:     []event.Span{{ID: 1, PID: 10}, {ID: 2, PID: 11}, {ID: 3, PID: 10, Detail: &event.Detail{DeviceID: &one}}},
	})
	fmt.Println(to.spans, sink.LeftOut, err)
	// Output: 1 2 <nil>
}
