package decode

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// matrix is a tensor of floats on the CPU as it lies in PyTorch 2.
func matrix(rows, columns uint64) (s bpf.CallTensorSlot) {
	s.Word = [14]uint64{2, rows, columns, 0, 0, 0, columns, 1, 0, 0, 0, 0, rows * columns, 6 | 1<<32}
	s.StorageBytes = 4 * rows * columns
	return s
}

func encodeTensors(spec uint32, span uint64, slots ...bpf.CallTensorSlot) []byte {
	r := bpf.CallTensorsRecord{Kind: uint8(bpf.CallRecordKindRECORD_TENSORS), Slots: uint8(len(slots)), Spec: spec, SpanId: span}
	for i := range slots {
		r.Outcome[i], r.Slot[i] = uint8(bpf.CallTensorOutcomeTENSOR_CHECKED), slots[i]
	}
	var b bytes.Buffer
	binary.Write(&b, binary.NativeEndian, r)
	return b.Bytes()[:binary.Size(r)-(len(r.Slot)-len(slots))*binary.Size(r.Slot[0])]
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
	inner := span(op, 43)
	inner.ParentId = 42
	d.calls.record(encodeTensors(op, 42, matrix(2, 3), matrix(3, 4)))
	d.calls.record(encodeTensors(op, 43, matrix(2, 3), matrix(3, 4)))
	d.calls.record(encode(inner, 0))
	d.calls.record(encode(span(op, 42), 0))
	d.calls.record(encode(span(op, 44), 0))
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(sink.spans) != 3 || d.damaged() > 0 {
		t.Fatalf("%d spans, %d damaged", len(sink.spans), d.damaged())
	}
	in, out, without := sink.spans[0].Detail, sink.spans[1].Detail, sink.spans[2].Detail
	switch {
	case in == nil || out == nil || without != nil:
		t.Fatalf("%v, %v, %v", in, out, without)
	case out.Shape.Dims != "[[2, 3], [3, 4]]" || out.Shape.FLOPs == nil || *out.Shape.FLOPs != 48:
		t.Errorf("outside: %+v", out.Shape)
	case in.Shape.Dims != out.Shape.Dims || in.Shape.FLOPs != nil:
		t.Errorf("inside: %+v", in.Shape)
	}
}

func TestShapesOfNobodyAreCounted(t *testing.T) {
	d, _, index := testDecoder(t)
	d.calls.record(encodeTensors(index("op"), 42, matrix(2, 3))) // whose plan reads none
	d.calls.record(encodeTensors(index("op"), 42)[:20])
	if d.damaged() != 2 {
		t.Errorf("%d of 2 counted", d.damaged())
	}
}
