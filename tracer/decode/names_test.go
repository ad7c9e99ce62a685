package decode

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
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

// A wait counter is a stage of compilation if its name begins as theirs do; those of C++,
// which are made once for many waits, are none.
func TestOnlyStagesOfCompilationHaveRows(t *testing.T) {
	d, sink, index := testDecoder(t)
	spec := index("WaitCounterHandle")
	for i, text := range []string{
		"pytorch.wait_counter.dynamo_compile", "pytorch.wait_counter.TCPStore__get", "pytorch.ProcessGroupNCCL__abort", "dynamo_compile", "",
		"pytorch.wait_counter.c10d.all_reduce", "pytorch.filelock.region",
		"pytorch.wait_counter.compile_inductor",
	} {
		if text != "" {
			d.calls.record(encodeText(uint64(i+1), spec, text))
		}
		scope := span(spec, uint64(i+1))
		scope.End = uint8(event.EndScope)
		d.calls.record(encode(scope, 0))
	}
	d.calls.record(encodeText(9, spec, "pytorch.wait_counter.compile_triton"))
	d.Unfinished(kernel.OpenCall{SpanID: 9, Spec: spec, Tgid: 10, TID: 11})
	d.Unfinished(kernel.OpenCall{SpanID: 10, Spec: spec, Tgid: 10, TID: 11})
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sink.spans {
		got = append(got, s.Call.Layer+" "+s.Call.Category+" "+s.Call.Name)
	}
	if want := []string{"scope compile dynamo_compile", "scope compile compile_inductor", "scope compile compile_triton"}; !slices.Equal(got,
		want) {
		t.Errorf("rows %q, want %q", got, want)
	}
}
