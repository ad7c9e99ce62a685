package output_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// A dataset is made of events, wherever they come from.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dataset, err := output.Create(filepath.Join(dir, "dataset"), output.Options{})
	if err != nil {
		log.Fatal(err)
	}
	recording := event.Recording{ID: "one", Host: "here", StartedNS: 1_790_000_000_000_000_000}
	if err := dataset.Session(recording); err != nil {
		log.Fatal(err)
	}
	if err := dataset.Write(&event.Batch{Spans: []event.Span{{
		ID: 1, StartNS: recording.StartedNS, DurationNS: 7_000, PID: 42, TID: 42, Weight: 1, SequenceNumber: -1,
		Call: &event.Call{Layer: "op", Category: "forward", Name: "aten::addmm"},
	}}}); err != nil {
		log.Fatal(err)
	}
	if err := dataset.Close(); err != nil {
		log.Fatal(err)
	}
	tables, err := os.ReadDir(dataset.Dir())
	fmt.Println(tables[0].Name(), "…", tables[len(tables)-1].Name(), err)
	// Output: communicator … warning <nil>
}
