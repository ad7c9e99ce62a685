package tensor

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

const addmm = "_ZN2at4_ops5addmm4callERKNS_6TensorES4_S4_RKN3c106ScalarES8_"

func operator(t testing.TB) *Operator {
	t.Helper()
	o, ok := Parse("aten::addmm", addmm, "Tensor", ABI{Machine: elf.MachineX86_64})
	if !ok {
		t.Fatal("addmm is not parsed")
	}
	return o
}

// tensorWords are a contiguous tensor's, as it lies in a 2.15: floats on the CPU.
func tensorWords(dims ...uint64) (s bpf.CallTensorSlot) {
	s.Word[0], s.Word[numelWord] = uint64(len(dims)), 1
	for i := len(dims) - 1; i >= 0; i-- {
		s.Word[1+i], s.Word[1+inlineDims+i] = dims[i], s.Word[numelWord]
		s.Word[numelWord] *= dims[i]
	}
	s.Word[typeWord] = 6 | 0xff<<24 | 1<<32
	s.StorageBytes = 4 * s.Word[numelWord]
	return s
}

// record is one of the kernel's.
func record(outcome bpf.CallTensorOutcome, slots ...bpf.CallTensorSlot) []byte {
	var r bpf.CallTensorsRecord
	r.Kind, r.Slots, r.Spec, r.SpanId = uint8(bpf.CallRecordKindRECORD_TENSORS), uint8(len(slots)), 7, 99
	for i := range slots {
		r.Outcome[i], r.Slot[i] = uint8(outcome), slots[i]
	}
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&r)), unsafe.Sizeof(r)/8)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	return append([]byte(nil), raw[:headBytes+len(slots)*slotBytes]...)
}

func TestShapesAreThoseOfTheTensors(t *testing.T) {
	r, o, trust := NewReader(), operator(t), &Trust{}
	raw := record(bpf.CallTensorOutcomeTENSOR_CHECKED, tensorWords(16), tensorWords(5, 8), tensorWords(8, 16))
	if span, spec, ok := SpanID(raw); !ok || span != 99 || spec != 7 {
		t.Fatalf("of span %d, probe %d, %v", span, spec, ok)
	}
	shapes, ok := r.Read(raw, o, trust)
	if !ok {
		t.Fatalf("not read: %+v", trust)
	}
	s := shapes.Detail.Shape
	if s.Dims != "[[16], [5, 8], [8, 16], [], []]" || s.Strides != "[[1], [8, 1], [16, 1], [], []]" ||
		s.Types != `["float", "float", "float", "Scalar", "Scalar"]` || s.Source != "measured" ||
		s.Bytes != "[64, 160, 512, null, null]" || s.Devices != `["cpu", "cpu", "cpu", "", ""]` ||
		*s.FLOPs != 2*5*8*16+5*16 || *s.BytesMoved != 4*(16+5*8+8*16+5*16) {
		t.Errorf("%+v, %d FLOPs, %d bytes", s, *s.FLOPs, *s.BytesMoved)
	}
	if again, _ := r.Read(raw, o, trust); again != shapes {
		t.Error("the same shapes were made twice")
	}
	if w := shapes.Within.Shape; w.FLOPs != nil || w.Dims != s.Dims {
		t.Errorf("inside of a counted call: %+v", w)
	}
}

// Nothing is believed before one tensor's storage was seen to have room for it.
func TestNothingIsBelievedBeforeItWasChecked(t *testing.T) {
	r, o, trust := NewReader(), operator(t), &Trust{}
	slots := []bpf.CallTensorSlot{tensorWords(16), tensorWords(5, 8), tensorWords(8, 16)}
	if _, ok := r.Read(record(bpf.CallTensorOutcomeTENSOR_READ, slots...), o, trust); ok {
		t.Error("believed without a check")
	}
	r.Read(record(bpf.CallTensorOutcomeTENSOR_CHECKED, slots...), o, trust)
	if _, ok := r.Read(record(bpf.CallTensorOutcomeTENSOR_READ, slots...), o, trust); !ok {
		t.Error("not believed after a check")
	}
}

func TestWhatNoTensorCanBeIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*bpf.CallTensorSlot){
		"elements":    func(s *bpf.CallTensorSlot) { s.Word[numelWord]++ },
		"size":        func(s *bpf.CallTensorSlot) { s.Word[1] = 1 << 60 },
		"overflow":    func(s *bpf.CallTensorSlot) { s.Word[1], s.Word[2], s.Word[numelWord] = 1<<32, 1<<32, 0 },
		"dimensions":  func(s *bpf.CallTensorSlot) { s.Word[0] = 1 << 40 },
		"six of them": func(s *bpf.CallTensorSlot) { s.Word[0] = 6 }, // and no slot that has them
		"type":        func(s *bpf.CallTensorSlot) { s.Word[typeWord] = 1<<32<<0 & ^uint64(0) | 4000 },
		"storage":     func(s *bpf.CallTensorSlot) { s.StorageBytes-- },
		"offset":      func(s *bpf.CallTensorSlot) { s.Word[offsetWord] = 1 },
		"stride":      func(s *bpf.CallTensorSlot) { s.Word[1+inlineDims]++ },
		"far stride":  func(s *bpf.CallTensorSlot) { s.Word[1+inlineDims] = ^uint64(0) },
	} {
		r, o, trust := NewReader(), operator(t), &Trust{Agreed: 1}
		bad := tensorWords(5, 8)
		spoil(&bad)
		raw := record(bpf.CallTensorOutcomeTENSOR_CHECKED, tensorWords(16), bad, tensorWords(8, 16))
		if s, ok := r.Read(raw, o, trust); ok || trust.Disagreed != 1 {
			t.Errorf("%s: %v, %+v", name, s, trust)
		}
	}
}

func TestAWrongLayoutIsRefused(t *testing.T) {
	r, o, trust := NewReader(), operator(t), &Trust{Agreed: 3}
	good := record(bpf.CallTensorOutcomeTENSOR_READ, tensorWords(16), tensorWords(5, 8), tensorWords(8, 16))
	if _, ok := r.Read(good, o, trust); !ok {
		t.Fatal("a good one was refused")
	}
	bad := tensorWords(5, 8)
	bad.Word[numelWord] = 7
	for range 40 {
		r.Read(record(bpf.CallTensorOutcomeTENSOR_READ, bad, bad, bad), o, trust)
	}
	if _, ok := r.Read(good, o, trust); ok || !trust.Refused() {
		t.Errorf("still believed: %+v", trust)
	}
}

func TestManyDimensionsLieElsewhere(t *testing.T) {
	r, o, trust := NewReader(), operator(t), &Trust{Agreed: 1}
	six, elsewhere := tensorWords(), bpf.CallTensorSlot{}
	six.Word[0], six.Word[numelWord] = 6, 64
	stride := uint64(64)
	for i := range uint64(6) {
		stride /= 2
		elsewhere.Word[i], elsewhere.Word[6+i] = 2, stride
	}
	raw := record(bpf.CallTensorOutcomeTENSOR_READ, six, tensorWords(5, 8), tensorWords(8, 16), elsewhere)
	raw[16+mostCaptures] = 4
	shapes, ok := r.Read(raw, o, trust)
	if !ok || !strings.HasPrefix(shapes.Detail.Shape.Dims, "[[2, 2, 2, 2, 2, 2], [5") ||
		!strings.HasPrefix(shapes.Detail.Shape.Strides, "[[32, 16, 8, 4, 2, 1], ") {
		t.Errorf("%v %+v", ok, shapes)
	}
}

// FuzzRecord: whatever a record says, it is read within its bounds, and what is
// believed agrees with itself.
func FuzzRecord(f *testing.F) {
	f.Add(record(bpf.CallTensorOutcomeTENSOR_CHECKED, tensorWords(16), tensorWords(5, 8), tensorWords(8, 16)))
	f.Add([]byte{byte(bpf.CallRecordKindRECORD_TENSORS), 12})
	f.Fuzz(func(t *testing.T, data []byte) {
		words := make([]uint64, len(data)/8+1)
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)[:len(data)]
		copy(raw, data)
		if _, _, ok := SpanID(raw); !ok {
			return
		}
		shapes, ok := NewReader().Read(raw, operator(t), &Trust{Agreed: 1})
		if ok && len(shapes.Detail.Shape.Dims) > 3*slotWords*21+100 {
			t.Fatalf("%d bytes of sizes", len(shapes.Detail.Shape.Dims))
		}
	})
}

func TestLayoutsAreByVersion(t *testing.T) {
	for version, sizes := range map[string]uint8{
		"1.13.0a0": 72, "1.13": 72, "2.0.1": 72, "2.2.2+cpu": 72, "2.3.0": 64, "2.9.1": 64, "2.10.0a0+git12": 56, "2.15.0+cu132": 56, "3.0": 56,
	} {
		if l, ok := LayoutOf(version); !ok || l.Sizes != sizes {
			t.Errorf("%s: %+v, %v", version, l, ok)
		}
	}
	for _, version := range []string{"", "1", "1.12.1", "x.y", "0.4.1", "2.", "2.x"} {
		if l, ok := LayoutOf(version); ok {
			t.Errorf("%q: %+v", version, l)
		}
	}
}

// A list has the bytes of all its tensors, and the device of the first, where that is
// known: of all that were looked at, and all of one type.
func TestListsHaveTheirBytesAndDevice(t *testing.T) {
	o, ok := Parse("aten::cat", "_ZN2at4_ops3cat4callERKN3c108IListRefINS_6TensorEEEl", "Tensor", ABI{Machine: elf.MachineX86_64})
	if !ok {
		t.Fatal("cat is not parsed")
	}
	const cuda = 1
	tensors := func(count, looked, same uint64) bpf.CallTensorSlot {
		return bpf.CallTensorSlot{Word: [14]uint64{count, 300, looked, 6 | cuda<<16 | 2<<24 | 1<<32, same}}
	}
	dim := bpf.CallTensorSlot{Word: [14]uint64{1}}
	for want, of := range map[string]bpf.CallTensorSlot{
		"[1200, null]":  tensors(3, 3, 3),
		"[null, null]":  tensors(100, 64, 64),
		"[null, null] ": tensors(3, 3, 2),
	} {
		s, ok := NewReader().Read(record(bpf.CallTensorOutcomeTENSOR_READ, of, dim), o, &Trust{Agreed: 1})
		if !ok {
			t.Fatal("not read")
		}
		if shape := s.Detail.Shape; shape.Bytes != strings.TrimSpace(want) || shape.Devices != `["cuda:2", ""]` || shape.Types != `["TensorList", "Scalar"]` {
			t.Errorf("%+v, want %s", shape, want)
		}
	}
	empty, _ := NewReader().Read(record(bpf.CallTensorOutcomeTENSOR_READ, bpf.CallTensorSlot{}, dim), o, &Trust{Agreed: 1})
	if shape := empty.Detail.Shape; shape.Bytes != "[null, null]" || shape.Devices != `["", ""]` || shape.Dims != "[[0], []]" {
		t.Errorf("an empty list: %+v", shape)
	}
}
