package unwinding

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// rules are the kernel's, numbered once for all files; a number is given back with the
// last table that uses it. PyTorch, CUDA and an interpreter have some three thousand
// together.
type rules struct {
	tables  tables
	numbers map[unwind.Rule]*rule
	free    []uint16
}

type rule struct {
	number uint16
	tables int    // that use it
	of     *share // whose table brought it
}

func newRules(to tables) rules {
	return rules{tables: to, numbers: map[unwind.Rule]*rule{{}: {tables: 1}}} // the first is none
}

// missing is how many of a table's rules the kernel does not have yet.
func (r *rules) missing(table []unwind.Rule) (n int) {
	for _, rule := range table {
		if r.numbers[rule] == nil {
			n++
		}
	}
	return n
}

// use gives each of a table's rules its number in the kernel.
func (r *rules) use(table []unwind.Rule, by *share) ([]uint16, error) {
	numbers := make([]uint16, len(table))
	for i, wanted := range table {
		known := r.numbers[wanted]
		if known == nil {
			number, err := r.add(wanted)
			if err != nil {
				r.release(table[:i])
				return nil, err
			}
			known = &rule{number: number, of: by}
			by.take(amount{rules: 1})
			r.numbers[wanted] = known
		}
		known.tables++
		numbers[i] = known.number
	}
	return numbers, nil
}

func (r *rules) add(wanted unwind.Rule) (number uint16, err error) {
	free := len(r.free)
	switch {
	case free > 0:
		number = r.free[free-1]
	case len(r.numbers) >= maxRules:
		return 0, fmt.Errorf("%w: more than %d rules", ErrNoRoom, maxRules)
	default:
		number = uint16(len(r.numbers))
	}
	if err := r.tables.putRule(number, kernelRule(wanted)); err != nil {
		return 0, fmt.Errorf("writing an unwind rule: %w", err)
	}
	if free > 0 {
		r.free = r.free[:free-1]
	}
	return number, nil
}

// release gives back the numbers of a table that no walk reads any more.
func (r *rules) release(table []unwind.Rule) {
	for _, wanted := range table {
		known := r.numbers[wanted]
		if known == nil {
			continue
		}
		if known.tables--; known.tables == 0 {
			known.of.giveBack(amount{rules: 1})
			r.free = append(r.free, known.number)
			delete(r.numbers, wanted)
		}
	}
}

func kernelRule(r unwind.Rule) *bpf.NativeWalkUnwindRule {
	return &bpf.NativeWalkUnwindRule{
		Kind: uint8(r.Kind), Reg: uint8(r.Register), Ra: uint8(r.ReturnAddress), FpKind: uint8(r.FramePointer),
		Cfa: r.CFA, Fp: r.FPOffset, Aux: r.Aux,
	}
}
