package tensor

import (
	"encoding/binary"
	"slices"
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

// lies is a contiguous tensor as it lies in a 2.15: floats on the CPU.
type lies struct {
	words   [slotWords]uint64
	storage uint64
}

// The words of a tensor, as it lies.
const (
	offsetWord = 1 + 2*inlineDims
	numelWord  = offsetWord + 1
	typeWord   = numelWord + 1
)

func tensorWords(dims ...uint64) (s lies) {
	s.words[0], s.words[numelWord] = uint64(len(dims)), 1
	for i := len(dims) - 1; i >= 0; i-- {
		s.words[1+i], s.words[1+inlineDims+i] = dims[i], s.words[numelWord]
		s.words[numelWord] *= dims[i]
	}
	s.words[typeWord] = 6 | 0xff<<24 | 1<<32
	s.storage = 4 * s.words[numelWord]
	return s
}

// sent are the words that the kernel sends of it.
func (s lies) sent(outcome bpf.CallTensorOutcome, elsewhere ...uint64) []uint64 {
	words := s.words[:]
	if s.words[0] <= narrowDims {
		words = slices.Concat(s.words[:1+narrowDims], s.words[1+inlineDims:1+inlineDims+narrowDims], s.words[offsetWord:])
	}
	if outcome == bpf.CallTensorOutcomeTENSOR_CHECKED {
		words = append(slices.Clone(words), s.storage)
	}
	return slices.Concat(words, elsewhere)
}

// record is one of the kernel's, of tensors that all were read alike.
func record(outcome bpf.CallTensorOutcome, tensors ...lies) []byte {
	var words [][]uint64
	for _, s := range tensors {
		words = append(words, s.sent(outcome))
	}
	return recordOf(outcome, words...)
}

func recordOf(outcome bpf.CallTensorOutcome, arguments ...[]uint64) []byte {
	var r bpf.CallTensorsRecord
	r.Kind, r.Arguments, r.Spec, r.Tid, r.Number = uint8(bpf.CallRecordKindRECORD_TENSORS), uint8(len(arguments)), 7, 98, 99
	for i, words := range arguments {
		r.Outcome[i], r.At[i] = uint8(outcome), uint8(r.Words)
		r.Words += uint16(copy(r.Word[r.Words:], words))
	}
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&r)), unsafe.Sizeof(r)/8)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	return append([]byte(nil), raw[:headBytes+8*int(r.Words)]...)
}

func TestShapesAreThoseOfTheTensors(t *testing.T) {
	r, o, trust := NewReader(), operator(t), &Trust{}
	raw := record(bpf.CallTensorOutcomeTENSOR_CHECKED, tensorWords(16), tensorWords(5, 8), tensorWords(8, 16))
	if tid, number, spec, ok := Head(raw); !ok || tid != 98 || number != 99 || spec != 7 {
		t.Fatalf("thread %d, number %d, probe %d, %v", tid, number, spec, ok)
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
	tensors := []lies{tensorWords(16), tensorWords(5, 8), tensorWords(8, 16)}
	if _, ok := r.Read(record(bpf.CallTensorOutcomeTENSOR_READ, tensors...), o, trust); !ok || trust.Holds() {
		t.Errorf("without a check: read %v, believed %v", ok, trust.Holds())
	}
	if _, ok := r.Read(record(bpf.CallTensorOutcomeTENSOR_CHECKED, tensors...), o, trust); !ok || !trust.Holds() {
		t.Errorf("after a check: read %v, believed %v", ok, trust.Holds())
	}
}

func TestWhatNoTensorCanBeIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*lies){
		"elements":    func(s *lies) { s.words[numelWord]++ },
		"size":        func(s *lies) { s.words[1] = 1 << 60 },
		"overflow":    func(s *lies) { s.words[1], s.words[2], s.words[numelWord] = 1<<32, 1<<32, 0 },
		"dimensions":  func(s *lies) { s.words[0] = 1 << 40 },
		"six of them": func(s *lies) { s.words[0] = 6 }, // and no slot that has them
		"type":        func(s *lies) { s.words[typeWord] = 1<<32<<0 & ^uint64(0) | 4000 },
		"storage":     func(s *lies) { s.storage-- },
		"offset":      func(s *lies) { s.words[offsetWord] = 1 },
		"stride":      func(s *lies) { s.words[1+inlineDims]++ },
		"far stride":  func(s *lies) { s.words[1+inlineDims] = ^uint64(0) },
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
	bad := tensorWords(5, 8)
	bad.words[numelWord] = 7
	for range 40 {
		if _, ok := r.Read(record(bpf.CallTensorOutcomeTENSOR_READ, bad, bad, bad), o, trust); ok {
			t.Fatal("what makes no sense was read")
		}
	}
	if trust.Holds() || !trust.Refused() {
		t.Errorf("still believed: %+v", trust)
	}
}

func TestManyDimensionsLieElsewhere(t *testing.T) {
	r, o, trust := NewReader(), operator(t), &Trust{Agreed: 1}
	const outcome = bpf.CallTensorOutcomeTENSOR_READ
	six := tensorWords()
	six.words[0], six.words[numelWord] = 6, 64
	others := [][]uint64{tensorWords(5, 8).sent(outcome), tensorWords(8, 16).sent(outcome)}
	raw := recordOf(outcome, six.sent(outcome, 2, 2, 2, 2, 2, 2, 32, 16, 8, 4, 2, 1), others[0], others[1])
	shapes, ok := r.Read(raw, o, trust)
	if !ok || !strings.HasPrefix(shapes.Detail.Shape.Dims, "[[2, 2, 2, 2, 2, 2], [5") ||
		!strings.HasPrefix(shapes.Detail.Shape.Strides, "[[32, 16, 8, 4, 2, 1], ") {
		t.Errorf("%v %+v", ok, shapes)
	}
	cut := recordOf(bpf.CallTensorOutcomeTENSOR_CUT, six.sent(outcome), others[0], others[1])
	if _, ok := r.Read(cut, o, trust); ok || trust.Disagreed == 0 {
		t.Errorf("sizes that were not to be read: %v, %+v", ok, trust)
	}
}

// What a record says that it has and has not is no shape, nor beyond its end.
func TestARecordThatIsCutOffIsRefused(t *testing.T) {
	whole := record(bpf.CallTensorOutcomeTENSOR_CHECKED, tensorWords(16), tensorWords(5, 8), tensorWords(8, 16))
	for words := range (len(whole) - headBytes) / 8 {
		raw := append([]byte(nil), whole[:headBytes+8*words]...)
		if _, _, _, ok := Head(raw); ok {
			t.Errorf("%d words pass for more", words)
		}
		binary.NativeEndian.PutUint16(raw[2:], uint16(words))
		if _, ok := NewReader().Read(raw, operator(t), &Trust{Agreed: 1}); ok {
			t.Errorf("shapes of %d words", words)
		}
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
		if _, _, _, ok := Head(raw); !ok {
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
		"1.13.0a0": 72, "1.13": 72, "2.0.1": 72, "2.2.2+cpu": 72, "2.3.0": 64, "2.9.1": 64, "2.10.0a0+git12": 64, "2.12.1+cu130": 64,
		"2.13.0": 56, "2.15.0+cu132": 56, "3.0": 56,
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
	tensors := func(count, looked, same uint64) []uint64 {
		return []uint64{count, 300, looked, 6 | cuda<<16 | 2<<24 | 1<<32, same}
	}
	dim := []uint64{1}
	for want, of := range map[string][]uint64{
		"[1200, null]":  tensors(3, 3, 3),
		"[null, null]":  tensors(100, 64, 64),
		"[null, null] ": tensors(3, 3, 2),
	} {
		s, ok := NewReader().Read(recordOf(bpf.CallTensorOutcomeTENSOR_READ, of, dim), o, &Trust{Agreed: 1})
		if !ok {
			t.Fatal("not read")
		}
		if shape := s.Detail.Shape; shape.Bytes != strings.TrimSpace(want) || shape.Devices != `["cuda:2", ""]` ||
			shape.Types != `["TensorList", "Scalar"]` {
			t.Errorf("%+v, want %s", shape, want)
		}
	}
	empty, _ := NewReader().Read(recordOf(bpf.CallTensorOutcomeTENSOR_READ, make([]uint64, listWords), dim), o, &Trust{Agreed: 1})
	if shape := empty.Detail.Shape; shape.Bytes != "[null, null]" || shape.Devices != `["", ""]` || shape.Dims != "[[0], []]" {
		t.Errorf("an empty list: %+v", shape)
	}
}
