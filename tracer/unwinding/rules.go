package unwinding

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// rules are the kernel's, numbered once for all files. They are never taken
// back: PyTorch, CUDA and an interpreter have some three thousand together.
type rules struct {
	tables  tables
	numbers map[unwind.Rule]uint16
}

// numbersOf gives each of a table's rules its number in the kernel.
func (r *rules) numbersOf(table []unwind.Rule) ([]uint16, error) {
	numbers := make([]uint16, len(table))
	for i, rule := range table {
		number, ok := r.numbers[rule]
		if !ok {
			if len(r.numbers) >= maxRules {
				return nil, fmt.Errorf("%w: more than %d rules", ErrNoRoom, maxRules)
			}
			number = uint16(len(r.numbers))
			if err := r.tables.putRule(number, kernelRule(rule)); err != nil {
				return nil, fmt.Errorf("writing an unwind rule: %w", err)
			}
			r.numbers[rule] = number
		}
		numbers[i] = number
	}
	return numbers, nil
}

func kernelRule(r unwind.Rule) *bpf.NativeWalkUnwindRule {
	return &bpf.NativeWalkUnwindRule{
		Kind: uint8(r.Kind), Reg: uint8(r.Register), Ra: uint8(r.ReturnAddress), FpKind: uint8(r.FramePointer),
		Cfa: r.CFA, Fp: r.FPOffset, Aux: r.Aux,
	}
}
