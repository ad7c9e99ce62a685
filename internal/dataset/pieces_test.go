package dataset

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TestPiecesHoldEveryRowOnceAndNoneTooMany also where all begin at one moment.
func TestPiecesHoldEveryRowOnceAndNoneTooMany(t *testing.T) {
	const rows = 3*pieceRows + 1
	for name, start := range map[string]func(i int64) int64{
		"one after the other": func(i int64) int64 { return 1.7e18 + 1000*i }, "at one moment": func(int64) int64 { return 1.7e18 },
	} {
		d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = d.Session(event.Recording{ID: "s"})
		call := &event.Call{Layer: "op", Name: "aten::add"}
		batch := make([]event.Span, 0, 4096)
		for i := int64(0); i < rows && err == nil; i++ {
			batch = append(batch, event.Span{ID: i + 1, StartNS: start(i), DurationNS: 1, Call: call, Weight: 1, SequenceNumber: -1})
			if len(batch) == cap(batch) || i == rows-1 {
				err = d.Spans(batch)
				batch = batch[:0]
			}
		}
		if err = errors.Join(err, d.Close()); err != nil {
			t.Fatal(err)
		}
		db := open(t, d.Dir())
		cuts, err := db.Pieces(t.Context(), "span")
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		for i := range len(cuts) - 1 {
			var n int64
			if err := db.Row(t.Context(), fmt.Sprintf("SELECT count(*) FROM span WHERE ts_ns >= %d AND ts_ns < %d", cuts[i], cuts[i+1]), nil, &n); err != nil {
				t.Fatal(err)
			}
			if sum += n; n > pieceRows*3/2 && name == "one after the other" {
				t.Errorf("%s: a piece of %d rows", name, n)
			}
		}
		if sum != rows {
			t.Errorf("%s: %d rows in %d pieces, want %d", name, sum, len(cuts)-1, rows)
		}
	}
}
