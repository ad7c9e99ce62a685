package cpython

import (
	"bytes"
	"encoding/binary"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

const (
	keysPerBlock = 32 // PTHREAD_KEY_2NDLEVEL_SIZE
	keyBytes     = 16 // struct pthread_key_data: a sequence number and the value
	maxKeys      = 1024
	muslKeys     = 128
	maxMusl      = 1024 // bytes of its struct pthread, and more
)

// Pthread is where the C library keeps a thread's values of pthread_getspecific,
// counted from the thread pointer.
type Pthread struct {
	Self     int  // struct pthread: what pthread_self returns
	KeyBlock int  // values of the first 32 keys
	KeyTable int  // pointers to the blocks of 32; of musl the pointer to all values
	Plain    bool // musl: the values are pointers, without a sequence number
}

// pthreads are the layouts that every glibc of the last decade has, for files
// that do not say: strobelight-libs, pthread_helpers.bpf.c at 733cef29; that of
// x86-64 also measured on glibc 2.36, 2026-11-21. arm64's was never run.
var pthreads = map[elf.Machine]Pthread{
	elf.MachineX86_64: {KeyBlock: 784, KeyTable: 1296},
	elf.MachineARM64:  {Self: -1856, KeyBlock: -1856 + 272, KeyTable: -1856 + 784},
}

// FindPthread reads the layout from the file that has struct pthread: libc.so.6
// since glibc 2.34, libpthread.so.0 before. It says it for debuggers, in the
// descriptors that libthread_db reads: {bits, count, offset}.
func FindPthread(libc *elf.File) Pthread {
	layout := pthreads[libc.Machine()]
	descriptor, ok := libc.Lookup("_thread_db_pthread_specific")
	size, sized := libc.Lookup("_thread_db_sizeof_pthread")
	d, n := libc.CodeAt(descriptor.Address, 12), libc.CodeAt(size.Address, 4)
	if !ok || !sized || len(d) < 12 || len(n) < 4 {
		return layout
	}
	offset, bytes := int(binary.LittleEndian.Uint32(d[8:])), int(binary.LittleEndian.Uint32(n))
	if bytes > 1<<16 || offset > bytes || offset < keysPerBlock*keyBytes {
		return layout
	}
	self := 0
	if libc.Machine() == elf.MachineARM64 { // TLS variant 1: it lies below the pointer
		self = -bytes
	}
	// The first block lies just before the table, whose first entry points to it.
	return Pthread{Self: self, KeyBlock: self + offset - keysPerBlock*keyBytes, KeyTable: self + offset}
}

// findMusl reads from the code of musl's pthread_getspecific where a thread has the pointer to
// its values. On x86-64 struct pthread begins at the thread pointer.
func findMusl(libc *elf.File) (Pthread, bool) {
	function, ok := libc.Lookup("pthread_getspecific")
	if !ok || libc.Machine() != elf.MachineX86_64 {
		return Pthread{}, false
	}
	offset := muslOffset(libc.CodeAt(function.Address, 48))
	return Pthread{KeyTable: offset, Plain: true}, offset != 0
}

// muslOffset finds mov %fs:0,%rax and mov OFFSET(%rax),REGISTER behind it, with other
// instructions between them, such as mov %edi,%edi; 0 where that is not the code.
func muslOffset(code []byte) int {
	_, code, _ = bytes.Cut(code, []byte{0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0})
	for ; len(code) >= 7; code = code[1:] {
		offset := 0
		switch loads := code[0] == 0x48 && code[1] == 0x8b; {
		case loads && code[2]&0xc7 == 0x40: // an offset of 8 bits
			offset = int(int8(code[3]))
		case loads && code[2]&0xc7 == 0x80: // of 32 bits
			offset = int(int32(binary.LittleEndian.Uint32(code[3:])))
		}
		if offset > 0 && offset < maxMusl && offset%8 == 0 {
			return offset
		}
	}
	return 0
}

// value reads what a thread has under a key; self is its pthread_self.
func (p Pthread) value(m memory, self uint64, key uint32) (uint64, error) {
	pointer := self - uint64(p.Self)
	if p.Plain {
		values, err := m.word(pointer + uint64(p.KeyTable))
		if err != nil || values == 0 || key >= muslKeys {
			return 0, err
		}
		return m.word(values + 8*uint64(key))
	}
	block := pointer + uint64(p.KeyBlock)
	if key >= keysPerBlock {
		var err error
		if block, err = m.word(pointer + uint64(p.KeyTable) + 8*uint64(key/keysPerBlock)); err != nil || block == 0 {
			return 0, err
		}
	}
	return m.word(block + keyBytes*uint64(key%keysPerBlock) + 8)
}
