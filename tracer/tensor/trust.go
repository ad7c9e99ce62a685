package tensor

import (
	"math/bits"

	"github.com/ebpfprof/ebpfprof/internal/flops"
)

// Trust is whether a library's tensors lie as its layout says. Nothing is believed
// before a tensor's sizes, strides, number of elements and storage agreed, and nothing
// any more once too many did not.
type Trust struct {
	Agreed    uint64 // checked with their storage
	Disagreed uint64
}

// verdict is what one argument says about its layout.
type verdict uint8

const (
	says      verdict = iota // nothing for or against it
	agrees                   // the storage too
	disagrees                // no such tensor can be
)

func (t *Trust) note(v verdict) {
	switch v {
	case agrees:
		t.Agreed++
	case disagrees:
		t.Disagreed++
	}
}

const (
	// fewDisagree is how many tensors may make no sense before that counts: those of a
	// compiler's tracing have sizes that are no numbers.
	fewDisagree = 32
	// manyAgree is how many must have agreed for each of the others beyond that.
	manyAgree = 2
)

// Holds reports whether shapes of the layout are to be believed.
func (t *Trust) Holds() bool { return t.Agreed > 0 && !t.Refused() }

// Refused reports whether the layout is known to be wrong.
func (t *Trust) Refused() bool {
	return t.Disagreed > fewDisagree && t.Agreed < manyAgree*(t.Disagreed-fewDisagree)
}

// What sizes can be: no dimension is larger than an address space.
const (
	mostElements = 1 << 48
	mostDevices  = 64 // kinds of device
)

// agreement reports whether the sizes multiply to the number of elements, and type and
// device are some that there are.
func agreement(s *slot, offset, elements uint64) verdict {
	product := uint64(1)
	for _, d := range s.dims {
		high, low := bits.Mul64(product, d)
		if high != 0 || low > mostElements {
			return disagrees
		}
		product = low
	}
	switch {
	case product != elements, offset > mostElements, s.device < 0 || s.device > mostDevices && s.there:
		return disagrees
	case s.there && int(s.kind) >= len(scalarTypes):
		return disagrees
	}
	return agrees
}

// fits reports whether the storage has room for the last element.
func fits(s *slot, offset, storage uint64) verdict {
	size := flops.ElementSize(typeName(s.kind))
	if size <= 0 || len(s.strides) != len(s.dims) || storage > mostElements {
		return says
	}
	last := offset
	for i, d := range s.dims {
		if d == 0 {
			return agrees
		}
		high, low := bits.Mul64(d-1, s.strides[i])
		if high != 0 || low > mostElements {
			return disagrees
		}
		last += low
	}
	if (last+1)*uint64(size) > storage {
		return disagrees
	}
	return agrees
}
