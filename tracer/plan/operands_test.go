package plan

import (
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

func TestOperandsAreReadAsCompilersWriteThem(t *testing.T) {
	type place struct {
		value    spec.Value
		constant int64
		unread   bool
	}
	at := func(index, bits uint8, signed bool) place {
		return place{value: spec.Value{Index: index, Bits: bits, Signed: signed}}
	}
	in := func(p place, offset int16) place {
		p.value.Derefs, p.value.Offset[0] = 1, offset
		return p
	}
	high := at(12, 8, false)
	high.value.Shift = 8
	for _, test := range []struct {
		text    string
		machine elf.Machine
		want    []place
	}{
		{"-4@%edi 8@-16(%rbp) 8@(%rax) -8@$-5", elf.MachineX86_64, []place{at(14, 32, true), in(at(4, 64, false), -16), in(at(10, 64, false), 0),
			{constant: -5}}},
		{"1@%dh 2@%r9w 1@%sil 1@%r10b 4@%r15d 8@%rsp", elf.MachineX86_64, []place{high, at(8, 16, false), at(13, 8, false), at(7, 8, false),
			at(0, 32, false), at(19, 64, false)}},
		{"8f@%xmm0 8@(%rax,%rbx,8) 8@foo(%rip) 4@%edx", elf.MachineX86_64, []place{{unread: true}, {unread: true}, {unread: true},
			at(12, 32, false)}},
		{"-4@[sp, 16] 8@x30 4@w7 8@[x29, -8] -4@5 8@x31", elf.MachineARM64, []place{in(at(31, 32, true), 16), at(30, 64, false), at(7, 32, false),
			in(at(29, 64, false), -8), {constant: 5}, {unread: true}}},
		{"", elf.MachineX86_64, nil}, {"nonsense @ 9@", elf.MachineX86_64, []place{{unread: true}}},
	} {
		arguments, values := operands(test.text, test.machine, nil)
		if len(arguments) != len(test.want) {
			t.Errorf("%q: %+v", test.text, arguments)
			continue
		}
		for i, a := range arguments {
			got := place{constant: a.Constant, unread: a.Unread != ""}
			if a.Value >= 0 {
				got.value = values[a.Value]
			}
			if want := test.want[i]; got.constant != want.constant || got.unread != want.unread || got.value.Index != want.value.Index ||
				got.value.Derefs != want.value.Derefs || got.value.Offset != want.value.Offset || got.value.Bits != want.value.Bits ||
				got.value.Shift != want.value.Shift || got.value.Signed != want.value.Signed {
				t.Errorf("%q, argument %d: %+v, want %+v", test.text, i+1, got, want)
			}
		}
	}
}

func TestNearestNamesAreLikeTheName(t *testing.T) {
	names := []string{"work_step", "work_steps", "work_start", "step", "malloc", "cudaLaunchKernel", "cuLaunchKernel"}
	for name, want := range map[string][]string{
		"work_stp": {"work_step", "work_steps"}, "cudaLaunchkernel": {"cudaLaunchKernel", "cuLaunchKernel"}, "zzz": nil,
	} {
		if got := Nearest(name, names); !slices.Equal(got[:min(2, len(got))], want) {
			t.Errorf("nearest to %s: %v, want %v", name, got, want)
		}
	}
}
