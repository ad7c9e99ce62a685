package decode

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
)

// Scopes called step 1, step 2, … have their names in the rows; the sums stay short.
func TestNamesThatNeverEndAreSummedTogether(t *testing.T) {
	d, sink, index := testDecoder(t)
	const steps = 3 * rows.MaxSummaryNames
	scope := span(index("record_function"), 0)
	for i := range steps {
		text := make([]byte, textHead+128)
		name := fmt.Sprintf("step %d", i)
		text[0] = uint8(bpf.CallRecordKindRECORD_TEXT)
		binary.NativeEndian.PutUint16(text[2:], uint16(len(name)))
		binary.NativeEndian.PutUint64(text[8:], uint64(i+1))
		copy(text[textHead:], name)
		d.calls.record(text)
		scope.SpanId = uint64(i + 1)
		d.calls.record(encode(scope, 0))
	}
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	for i, s := range sink.spans {
		if want := fmt.Sprintf("step %d", i); s.Call.Name != want {
			t.Fatalf("scope %d is %q, want %q", i, s.Call.Name, want)
		}
	}
	if n := len(d.Rows.Sums.Totals.Operators); n > rows.MaxSummaryNames+1 {
		t.Errorf("the sums have %d names", n)
	}
	var sum float64
	for _, o := range d.Rows.Sums.Totals.Operators {
		sum += o.Count
	}
	if sum != steps {
		t.Errorf("the sums have %v of %d scopes", sum, steps)
	}
}
