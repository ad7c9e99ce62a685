package plan

import (
	"encoding/binary"
	"fmt"

	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// Which operators a job uses can be read instead of measured. Every
// at::_ops::X::call keeps its dispatcher handle in a function-local static, and
// C++ guards such a static with a byte that becomes non-zero when the function
// first runs (Itanium C++ ABI, 2.8 and 3.3.3). Reading 3,000 bytes of the
// process tells what a slice with 3,000 probes would have told, without the
// 200 ms that putting those in and out costs the job.

// guardWithin is how far into a function its guard is looked for, bytes: those of
// a dozen arguments save them all first.
const guardWithin = 1024

// usedFlag finds the address of a function's first guard byte: on x86-64
//
//	movzbl guard(%rip), %eax ; test %al, %al ; j<cc>
//
// with the address of the same byte passed to __cxa_guard_acquire where the
// static is not yet made: behind the jump, or where it leads. It returns 0
// where the function has nothing like that.
func usedFlag(f site.Function) uint64 {
	if f.Arch != site.AMD64 {
		return 0
	}
	for i := 0; i+15 < min(len(f.Code), guardWithin); i++ {
		load, test := f.Code[i:], f.Code[i+7:]
		if load[0] != 0x0f || load[1] != 0xb6 || load[2]&0xc7 != 0x05 || test[0] != 0x84 {
			continue
		}
		guard := site.PCRelative(f.Address, f.Code, i, 3)
		if takesAddress(f, i+9, guard) || takesAddress(f, jumpTarget(f.Code, i+9), guard) {
			return guard
		}
	}
	return 0
}

// jumpTarget is where the conditional jump at an offset leads, len(code) if
// there is none or it leads out of the function.
func jumpTarget(code []byte, at int) int {
	target := len(code)
	switch {
	case code[at]&0xf0 == 0x70:
		target = at + 2 + int(int8(code[at+1]))
	case code[at] == 0x0f && code[at+1]&0xf0 == 0x80:
		target = at + 6 + int(int32(binary.LittleEndian.Uint32(code[at+2:])))
	}
	if target < 0 || target > len(code) {
		return len(code)
	}
	return target
}

// takesAddress finds `lea address(%rip), reg` in the few instructions from an offset on.
func takesAddress(f site.Function, from int, address uint64) bool {
	for i := from; i+7 <= min(len(f.Code), from+48); i++ {
		lea := f.Code[i]&0xf8 == 0x48 && f.Code[i+1] == 0x8d && f.Code[i+2]&0xc7 == 0x05
		if lea && site.PCRelative(f.Address, f.Code, i, 3) == address {
			return true
		}
	}
	return false
}

// UsedProbes reads the guard bytes of a process and returns the indices of the
// probes whose function has run in it. bias is what the loader added to the
// ELF's addresses.
func UsedProbes(pid int, bias uint64, probes []Probe) (used []int, err error) {
	memory, err := process.OpenMemory(pid)
	if err != nil {
		return nil, fmt.Errorf("reading which operators pid %d has used: %w", pid, err)
	}
	defer memory.Close()
	pages := map[uint64][]byte{}
	for i := range probes {
		if probes[i].UsedFlag == 0 {
			continue
		}
		address := bias + probes[i].UsedFlag
		page, ok := pages[address/pageBytes]
		if !ok {
			page = make([]byte, pageBytes)
			if _, err := memory.ReadAt(page, int64(address/pageBytes*pageBytes)); err != nil {
				return nil, fmt.Errorf("reading which operators pid %d has used: %w", pid, err)
			}
			pages[address/pageBytes] = page
		}
		if page[address%pageBytes] != 0 {
			used = append(used, i)
		}
	}
	return used, nil
}

const pageBytes = 4096
