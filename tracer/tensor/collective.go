package tensor

import (
	"github.com/ebpfprof/ebpfprof/internal/flops"
	"github.com/ebpfprof/ebpfprof/symbolize/demangle"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// ParseMethod is Parse for a method of a group of ranks that returns a Work ("_ZN4c10d16…
// 9allreduceE…"), of whose parameters share is one rank's share, counted from 1.
func ParseMethod(name, symbol string, share int, abi ABI) (*Operator, bool) {
	types, ok := parameters(demangle.Full(symbol))
	if !ok || share < 1 || share > len(types) {
		return nil, false
	}
	p := placing{machine: abi.Machine, old: abi.OldOptional, integers: 1} // this
	if abi.Machine == elf.MachineX86_64 {
		p.integers++ // where the Work goes
	}
	o := &Operator{Name: name, FlagFirst: abi.OldOptional, Share: share - 1, Identity: identity(symbol)}
	return o, o.arguments(types, &p)
}

// Share is what one rank gives or gets in a collective.
type Share struct {
	Elements int64
	Dtype    string
	Bytes    int64
}

// share is that of a call; nil where it is not known: tensors of several types, or more
// than were looked at.
func (o *Operator) share(slots []slot) *Share {
	if o.Share < 0 || o.Arguments[o.Share].Slot < 0 {
		return nil
	}
	s := &slots[o.Arguments[o.Share].Slot]
	if s.unmatched || !s.there {
		return nil
	}
	one := &Share{Elements: int64(s.elements), Dtype: typeName(s.kind)}
	size := flops.ElementSize(one.Dtype)
	if size <= 0 {
		return nil
	}
	one.Bytes = one.Elements * int64(size)
	return one
}
