package plan

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

func TestCapturesAreInOrderWhenNoneNeedsALook(t *testing.T) {
	const x86, arm = elf.MachineX86_64, elf.MachineARM64
	for _, one := range []struct {
		name    string
		machine elf.Machine
		indexes []uint8
		flags   bpf.CallSpecFlag
		want    bool
	}{
		{"registers", x86, []uint8{0, 1, 2}, 0, true},
		{"a launch: registers, stack, caller", x86, []uint8{0, 1, 2, 3, 4, 5, 8, 9, 10, 7}, 0, true},
		{"registers and caller", x86, []uint8{0, 1, 7}, 0, true},
		{"the caller alone", x86, []uint8{7}, 0, true},
		{"a launch on arm64: the ninth argument is the first on the stack", arm, []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 15}, 0, true},
		{"nothing", x86, nil, 0, false},
		{"one left out", x86, []uint8{0, 2}, 0, false},
		{"not from the first on", x86, []uint8{1, 2}, 0, false},
		{"another order", x86, []uint8{1, 0}, 0, false},
		{"the caller before the others", x86, []uint8{7, 0}, 0, false},
		{"the stack without all registers", x86, []uint8{0, 8}, 0, false},
		{"a stack argument left out", x86, []uint8{0, 1, 2, 3, 4, 5, 9}, 0, false},
		{"a pointer to follow", x86, []uint8{0, 1}, bpf.CallSpecFlagSPEC_FOLLOWS, false},
	} {
		spec := bpf.CallProbeSpec{Captures: uint8(len(one.indexes)), Flags: uint16(one.flags)}
		for i, index := range one.indexes {
			spec.Capture[i].Index = index
		}
		if got := inOrder(&spec, one.machine); got != one.want {
			t.Errorf("%s: %v, want %v", one.name, got, one.want)
		}
	}
}
