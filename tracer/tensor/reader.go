package tensor

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/flops"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Reader makes shapes of what the kernel copied. The same shapes, call after call, are
// one and the same: what is made of them once is not made again.
type Reader struct {
	young, old map[string]*Shapes
	key        []byte
	slots      []slot
}

// Shapes are the shapes of a call, as a span has them.
type Shapes struct {
	// Detail has nothing but the shape, and is shared: it is not to be changed.
	Detail *event.Detail
	// Within is the same without FLOPs: for a call inside of one that has them.
	Within *event.Detail
	// Share is one rank's share of a collective, nil where there is none.
	Share *Share
}

// Counted reports whether the FLOPs of the call are counted.
func (s *Shapes) Counted() bool { return s.Detail.Shape.FLOPs != nil }

// maxShapes is how many different shapes are cached, at the most.
const maxShapes = 1 << 16

// NewReader returns a Reader with an empty cache.
func NewReader() *Reader { return &Reader{young: map[string]*Shapes{}} }

// Source is how the shapes of a recording are known (span.shape_source).
const Source = "measured"

// Where a record has what it says of its arguments, in bytes from its beginning.
const (
	outcomes  = int(unsafe.Offsetof(bpf.CallTensorsRecord{}.Outcome))
	places    = int(unsafe.Offsetof(bpf.CallTensorsRecord{}.At))
	headBytes = int(unsafe.Offsetof(bpf.CallTensorsRecord{}.Word))
)

// The words of a tensor (bpf/wire.h): how many dimensions, room for so many sizes and
// strides as follow from that, the offset, the number of elements, the type and device.
const (
	narrowDims  = 2
	inlineDims  = 5
	slotWords   = 1 + 2*inlineDims + 3
	listWords   = 5
	mostStrided = slotWords / 2
)

// Head is what a record of shapes is of: the thread, its number of them, and the probe;
// false where the record is no such.
func Head(raw []byte) (tid, number, spec uint32, ok bool) {
	if len(raw) < headBytes || uintptr(unsafe.Pointer(&raw[0]))%8 != 0 || int(raw[1]) > mostCaptures {
		return 0, 0, 0, false
	}
	if words := int(binary.NativeEndian.Uint16(raw[2:])); len(raw) < headBytes+8*words {
		return 0, 0, 0, false
	}
	n := binary.NativeEndian
	return n.Uint32(raw[8:]), n.Uint32(raw[12:]), n.Uint32(raw[4:]), true
}

// slot is an argument as it was read.
type slot struct {
	outcome   bpf.CallTensorOutcome
	dims      []uint64 // sizes, of a list or numbers how many and which
	strides   []uint64
	kind      uint16 // element type
	there     bool   // it has a device: else it is an undefined tensor
	device    int8
	index     int8
	count     uint64 // of a list: tensors, elements of those of the first one's type, how many these are
	elements  uint64
	looked    uint64
	unmatched bool
}

// Read makes the shapes of a record that Head said is one. False where it does not agree
// with itself. What it says of its layout is noted: only while that holds is it to be
// believed.
func (r *Reader) Read(raw []byte, o *Operator, trust *Trust) (*Shapes, bool) {
	if int(raw[1]) < len(o.Captures) {
		return nil, false
	}
	r.slots = r.slots[:0]
	for _, a := range o.Arguments {
		if a.Slot < 0 {
			continue
		}
		s, verdict := o.readSlot(raw, a)
		trust.note(verdict)
		if verdict == disagrees || s.outcome == bpf.CallTensorOutcomeTENSOR_FAULT {
			return nil, false
		}
		r.slots = append(r.slots, s)
	}
	r.makeKey(binary.NativeEndian.Uint32(raw[4:]))
	if known, ok := r.young[string(r.key)]; ok {
		return known, true
	}
	known, ok := r.old[string(r.key)]
	if !ok {
		known = o.shapes(r.slots)
	}
	if len(r.young) >= maxShapes/2 {
		r.young, r.old = map[string]*Shapes{}, r.young
	}
	r.young[string(r.key)] = known
	return known, true
}

func (r *Reader) makeKey(spec uint32) {
	k := binary.NativeEndian.AppendUint32(r.key[:0], spec)
	for i := range r.slots {
		s := &r.slots[i]
		k = append(k, byte(s.outcome), byte(len(s.dims)), byte(len(s.strides)), byte(s.kind), byte(s.device), byte(s.index))
		if !s.there {
			k[len(k)-1] = 0xfe // no device has that number
		}
		for _, words := range [][]uint64{s.dims, s.strides, {s.count, s.elements, s.looked}} {
			for _, w := range words {
				k = binary.NativeEndian.AppendUint64(k, w)
			}
		}
	}
	r.key = k
}

// wordsOf are the words of a record from where an argument's begin.
func wordsOf(raw []byte, argument int) []uint64 {
	all := int(binary.NativeEndian.Uint16(raw[2:]))
	if all == 0 {
		return nil
	}
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&raw[headBytes])), all)
	return words[min(int(raw[places+argument]), all):]
}

// readSlot reads one argument, and says whether it agrees with itself.
func (o *Operator) readSlot(raw []byte, a Argument) (s slot, v verdict) {
	s.outcome = bpf.CallTensorOutcome(raw[outcomes+a.Slot])
	words := wordsOf(raw, a.Slot)
	switch s.outcome {
	case bpf.CallTensorOutcomeTENSOR_READ, bpf.CallTensorOutcomeTENSOR_CHECKED, bpf.CallTensorOutcomeTENSOR_LISTED:
	case bpf.CallTensorOutcomeTENSOR_CUT:
		return s, disagrees
	default:
		return s, says
	}
	switch {
	case len(words) == 0:
		return s, disagrees
	case a.Kind == Several, s.outcome == bpf.CallTensorOutcomeTENSOR_LISTED:
		if len(words) < listWords {
			return s, disagrees
		}
		s.count, s.elements, s.looked = words[0], words[1], words[4]
		o.readType(&s, words[3])
		s.unmatched = words[2] < words[0] || words[4] < words[2]
	case a.Kind == Integers:
		if n := words[0]; n < uint64(min(slotWords, len(words))) {
			s.dims = words[1 : 1+n]
		}
	case a.Kind == Integer, a.Kind == Boolean, a.Kind == Booleans:
		s.dims = words[:1]
	default:
		return o.readTensor(words, s)
	}
	return s, says
}

// readTensor reads a tensor's own words.
func (o *Operator) readTensor(words []uint64, s slot) (slot, verdict) {
	dims, room := words[0], inlineDims
	if dims <= narrowDims {
		room = narrowDims
	}
	rest, checked := 1+2*room, s.outcome == bpf.CallTensorOutcomeTENSOR_CHECKED
	more := rest + 3
	if checked {
		more++
	}
	switch {
	case len(words) < more:
		return s, disagrees
	case dims <= inlineDims:
		s.dims, s.strides = words[1:1+dims], words[1+room:1+room+int(dims)]
	default:
		elsewhere, has := words[more:], 2*dims
		if dims > mostStrided {
			has = dims
		}
		if dims > slotWords || uint64(len(elsewhere)) < has {
			return s, disagrees
		}
		s.dims, s.strides = elsewhere[:dims], elsewhere[dims:has]
	}
	offset, elements := words[rest], words[rest+1]
	o.readType(&s, words[rest+2])
	s.elements = elements
	v := agreement(&s, offset, elements)
	if v == agrees && checked && s.there {
		v = fits(&s, offset, words[rest+3])
	}
	if !checked && v == agrees {
		v = says
	}
	s.outcome = bpf.CallTensorOutcomeTENSOR_READ
	return s, v
}

// readType reads a tensor's element type and its device, an optional one: an undefined
// tensor has none.
func (o *Operator) readType(s *slot, w uint64) {
	s.kind, s.device, s.index, s.there = uint16(w), int8(w>>16), int8(w>>24), w>>32&0xff == 1
	if o.FlagFirst {
		s.there, s.device, s.index = w>>16&0xff == 1, int8(w>>24), int8(w>>32)
	}
}

// shapes puts what was read into the columns of a span.
func (o *Operator) shapes(slots []slot) *Shapes {
	var dims, types, strides, bytes, devices strings.Builder
	arguments := flops.Arguments{}
	write := func(b *strings.Builder, i int, text string) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text)
	}
	columns := []*strings.Builder{&dims, &types, &strides, &bytes, &devices}
	for _, b := range columns {
		b.WriteByte('[')
	}
	for i, a := range o.Arguments {
		sizes, steps, many, kind, concrete := []int64(nil), []int64(nil), []int64(nil), a.Type, ""
		size, place := "null", ""
		if a.Slot >= 0 {
			s := &slots[a.Slot]
			concrete = s.concrete(a.Kind)
			size, place = s.bytes(), s.place()
			switch a.Kind {
			case One, Perhaps:
				kind = ""
				if s.there {
					kind, sizes, steps = typeName(s.kind), signed(s.dims), signed(s.strides)
				}
			case Several, Vector:
				switch {
				case s.outcome == bpf.CallTensorOutcomeTENSOR_READ && a.Kind == Vector:
					kind, sizes, steps = typeName(s.kind), signed(s.dims), signed(s.strides)
				case s.outcome == bpf.CallTensorOutcomeTENSOR_READ, s.outcome == bpf.CallTensorOutcomeTENSOR_LISTED:
					many = []int64{int64(s.count)}
				}
			}
		}
		write(&dims, i, list(append(many, sizes...)))
		write(&strides, i, list(steps))
		write(&types, i, strconv.Quote(kind))
		write(&bytes, i, size)
		write(&devices, i, strconv.Quote(place))
		arguments.Dims, arguments.Types = append(arguments.Dims, sizes), append(arguments.Types, kind)
		arguments.Concrete = append(arguments.Concrete, concrete)
	}
	for _, b := range columns {
		b.WriteByte(']')
	}
	shape := &event.Shape{Dims: dims.String(), Types: types.String(), Strides: strides.String(), Bytes: bytes.String(),
		Devices: devices.String(), Source: Source}
	within := *shape
	if work, ok := flops.Of(o.Name, arguments); ok {
		shape.FLOPs = &work.FLOPs
		if work.Bytes >= 0 {
			shape.BytesMoved = &work.Bytes
		}
		if work.Causal >= 0 {
			shape.FLOPsCausal = &work.Causal
		}
	}
	return &Shapes{Detail: &event.Detail{Shape: shape}, Within: &event.Detail{Shape: &within}, Share: o.share(slots)}
}

func signed(words []uint64) []int64 {
	numbers := make([]int64, len(words))
	for i, w := range words {
		numbers[i] = int64(w)
	}
	return numbers
}

func list(numbers []int64) string {
	b := []byte{'['}
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, ']'))
}

// concrete is the value of what is no tensor, as torch.profiler writes it.
func (s *slot) concrete(kind Kind) string {
	truth := map[bool]string{false: "False", true: "True"}
	switch kind {
	case Integers:
		return list(signed(s.dims))
	case Integer:
		if len(s.dims) == 1 {
			return strconv.FormatInt(int64(s.dims[0]), 10)
		}
	case Boolean:
		if len(s.dims) == 1 {
			return truth[s.dims[0]&0xff != 0]
		}
	case Booleans:
		if len(s.dims) == 1 {
			b := s.dims[0]
			return "[" + truth[b&0xff != 0] + ", " + truth[b>>8&0xff != 0] + ", " + truth[b>>16&0xff != 0] + "]"
		}
	}
	return ""
}
