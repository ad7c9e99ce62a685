package decode

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// matrix is a tensor of floats on the CPU as the kernel sends one of PyTorch 2 that it
// has checked.
func matrix(rows, columns uint64) []uint64 {
	return []uint64{2, rows, columns, columns, 1, 0, rows * columns, 6 | 1<<32, 4 * rows * columns}
}

// encodeTensors is a record of the shapes that a thread's calls name by number.
func encodeTensors(spec uint32, of bpf.CallCallRecord, number uint32, arguments ...[]uint64) []byte {
	r := bpf.CallTensorsRecord{Kind: uint8(bpf.CallRecordKindRECORD_TENSORS), Arguments: uint8(len(arguments)), Spec: spec, Tid: of.Tid,
		Number: number}
	for i, words := range arguments {
		r.Outcome[i], r.At[i] = uint8(bpf.CallTensorOutcomeTENSOR_CHECKED), uint8(r.Words)
		r.Words += uint16(copy(r.Word[r.Words:], words))
	}
	var b bytes.Buffer
	binary.Write(&b, binary.NativeEndian, r)
	return b.Bytes()[:b.Len()-8*(len(r.Word)-int(r.Words))]
}

// FLOPs are counted once where operators stand in each other, and a span whose shapes
// did not come has none.
func TestSpansHaveTheirShapes(t *testing.T) {
	d, sink, index := testDecoder(t)
	op := index("op")
	planned := d.calls.probes.Find(op).Planned
	planned.Shapes, _ = tensor.Parse("aten::mm", "_ZN2at4_ops2mm4callERKNS_6TensorES4_", "Tensor", tensor.ABI{Machine: elf.MachineX86_64})
	if planned.Shapes == nil {
		t.Fatal("mm is not parsed")
	}
	named := func(id uint64, number, around uint32) bpf.CallCallRecord {
		r := span(op, id)
		r.Shapes, r.ShapesAround = number, around
		return r
	}
	inner := named(43, 2, 1)
	inner.ParentId = 42
	another := named(46, 1, 0)
	another.Tid++ // whose first shapes are others, and have not come
	d.calls.record(encodeTensors(op, inner, 1, matrix(2, 3), matrix(3, 4)))
	d.calls.record(encodeTensors(op, inner, 2, matrix(2, 3), matrix(3, 4)))
	for _, r := range []bpf.CallCallRecord{inner, named(42, 1, 0), span(op, 44), named(45, 1, 0), another} {
		d.calls.record(encode(r, 0))
	}
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(sink.spans) != 5 || d.damaged() > 0 || d.calls.shapes.forgotten != 1 {
		t.Fatalf("%d spans, %d damaged, shapes of %d not there", len(sink.spans), d.damaged(), d.calls.shapes.forgotten)
	}
	in, out, without, again := sink.spans[0].Detail, sink.spans[1].Detail, sink.spans[2].Detail, sink.spans[3].Detail
	switch {
	case in == nil || out == nil || without != nil || sink.spans[4].Detail != nil:
		t.Fatalf("%v, %v, %v, %v", in, out, without, sink.spans[4].Detail)
	case out.Shape.Dims != "[[2, 3], [3, 4]]" || out.Shape.FLOPs == nil || *out.Shape.FLOPs != 48:
		t.Errorf("outside: %+v", out.Shape)
	case in.Shape.Dims != out.Shape.Dims || in.Shape.FLOPs != nil:
		t.Errorf("inside: %+v", in.Shape)
	case again != out:
		t.Errorf("of a later call: %+v", again.Shape)
	}
	// The probe's place is another function's, of which nothing was told.
	planned.Shapes, _ = tensor.Parse("aten::bmm", "_ZN2at4_ops3bmm4callERKNS_6TensorES4_", "Tensor", tensor.ABI{Machine: elf.MachineX86_64})
	d.calls.record(encode(named(47, 1, 0), 0))
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	if last := sink.spans[len(sink.spans)-1]; last.ID != 47 || last.Detail != nil || d.calls.shapes.forgotten != 2 {
		t.Errorf("another function's: span %d, %+v, shapes of %d not there", last.ID, last.Detail, d.calls.shapes.forgotten)
	}
}

// Shapes that came before their layout was known to be the right one are told once, as
// all are: calls that name them have them once it is.
func TestShapesAreBelievedOnceTheirLayoutHasShown(t *testing.T) {
	d, sink, index := testDecoder(t)
	op := index("op")
	probe := d.calls.probes.Find(op)
	probe.Planned.Shapes, _ = tensor.Parse("aten::relu", "_ZN2at4_ops4relu4callERKNS_6TensorE", "Tensor",
		tensor.ABI{Machine: elf.MachineX86_64})
	first, second := span(op, 42), span(op, 43)
	first.Shapes, second.Shapes = 1, 1
	unchecked := encodeTensors(op, first, 1, matrix(2, 3)[:8])
	unchecked[16] = uint8(bpf.CallTensorOutcomeTENSOR_READ)
	d.calls.record(unchecked)
	d.calls.record(encode(first, 0))
	d.calls.record(encodeTensors(op, first, 2, matrix(4, 5)))
	d.calls.record(encode(second, 0))
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(sink.spans) != 2 || sink.spans[0].Detail != nil || d.calls.shapes.shapeless != 1 {
		t.Fatalf("%d spans, the first's %+v, %d without", len(sink.spans), sink.spans[0].Detail, d.calls.shapes.shapeless)
	}
	if detail := sink.spans[1].Detail; detail == nil || detail.Shape.Dims != "[[2, 3]]" {
		t.Errorf("%+v", detail)
	}
}

func TestShapesOfNobodyAreCounted(t *testing.T) {
	d, _, index := testDecoder(t)
	of := span(index("op"), 42)                                 // whose plan reads none
	d.calls.record(encodeTensors(of.Spec, of, 1, matrix(2, 3))) // as they are
	d.calls.record(encodeTensors(of.Spec, of, 1)[:20])          // cut off
	if d.damaged() != 2 {
		t.Errorf("%d of 2 counted", d.damaged())
	}
}
