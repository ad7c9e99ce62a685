package progress

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// tlsWord is where a library keeps a word of each thread, as the code of a
// function tells that returns it.
type tlsWord struct {
	// pair is the address in the file of what __tls_get_addr is given: the number
	// of the library's block among those of the thread, and an offset in it.
	pair uint64
	// displacement is added to what __tls_get_addr returns.
	displacement int64
}

// tlsWordOf finds the word that a function loads first, where the compiler chose
// the general or the local dynamic model (Drepper, ELF Handling For Thread-Local
// Storage, 4.4.6 and 4.4.7):
//
//	lea pair(%rip), %rdi ; call __tls_get_addr ; mov displacement(%rax), %r
func tlsWordOf(f site.Function) (word tlsWord, ok bool) {
	if f.Arch != site.AMD64 {
		return word, false
	}
	lea := bytes.Index(f.Code, []byte{0x48, 0x8d, 0x3d})
	if lea < 0 || lea+7 > len(f.Code) {
		return word, false
	}
	at := lea + 7
	for at < len(f.Code) && (f.Code[at] == 0x66 || f.Code[at] == 0x48) {
		at++ // padding, so that a linker can put something else here
	}
	if at+12 > len(f.Code) || f.Code[at] != 0xe8 {
		return word, false
	}
	word.pair = site.PCRelative(f.Address, f.Code, lea, 3)
	load := f.Code[at+5:]
	if load[0] != 0x48 || load[1] != 0x8b {
		return word, false
	}
	switch load[2] & 0xc7 { // mod and base: whichever register is loaded
	case 0x00:
	case 0x40:
		word.displacement = int64(int8(load[3]))
	case 0x80:
		word.displacement = int64(int32(binary.LittleEndian.Uint32(load[3:])))
	default:
		return word, false
	}
	return word, true
}

const (
	// dtvOffset is where a thread's pointer to the vector of its blocks lies behind
	// its thread pointer, and dtvEntry the size of an entry: tcbhead_t and dtv_t of
	// glibc (sysdeps/x86_64/nptl/tls.h, sysdeps/generic/dl-dtv.h).
	dtvOffset = 8
	dtvEntry  = 16
	// dtvUnallocated is a block that the thread has not used yet.
	dtvUnallocated = ^uint64(0)
	// mostTLSBlocks bounds what is taken for the number of a block.
	mostTLSBlocks = 1 << 16
)

// address is where the word of one thread is, bias being what the loader added to
// the file's addresses; 0 while the thread has not used the library's block.
func (w tlsWord) address(memory io.ReaderAt, bias, threadPointer uint64) (uint64, error) {
	block, err := readWord(memory, bias+w.pair)
	if err != nil {
		return 0, err
	}
	offset, err := readWord(memory, bias+w.pair+8)
	if err != nil {
		return 0, err
	}
	if block == 0 || block > mostTLSBlocks {
		return 0, fmt.Errorf("%d is not the number of a block of thread-local storage", block)
	}
	vector, err := readWord(memory, threadPointer+dtvOffset)
	if err != nil {
		return 0, err
	}
	// Before the vector stands for how many blocks it has room.
	room, err := readWord(memory, vector-dtvEntry)
	if err != nil || room < block {
		return 0, err
	}
	start, err := readWord(memory, vector+dtvEntry*block)
	if err != nil || start == dtvUnallocated || start == 0 {
		return 0, err
	}
	return start + offset + uint64(w.displacement), nil
}

func readWord(memory io.ReaderAt, address uint64) (uint64, error) {
	var raw [8]byte
	if _, err := memory.ReadAt(raw[:], int64(address)); err != nil {
		return 0, fmt.Errorf("reading a word at %#x: %w", address, err)
	}
	return binary.LittleEndian.Uint64(raw[:]), nil
}
