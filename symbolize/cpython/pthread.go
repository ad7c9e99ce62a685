package cpython

import (
	"encoding/binary"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

const (
	keysPerBlock = 32 // PTHREAD_KEY_2NDLEVEL_SIZE
	keyBytes     = 16 // struct pthread_key_data: a sequence number and the value
	maxKeys      = 1024
)

// Pthread is where glibc keeps a thread's values of pthread_getspecific,
// counted from the thread pointer.
type Pthread struct {
	Self     int // struct pthread: what pthread_self returns
	KeyBlock int // values of the first 32 keys
	KeyTable int // pointers to the blocks of 32
}

// pthreads are the layouts that every glibc of the last decade has, for files
// that do not say: strobelight-libs, pthread_helpers.bpf.c at 733cef29; that of
// x86-64 also measured on glibc 2.36, 2026-11-21. arm64's was never run.
var pthreads = map[elf.Machine]Pthread{
	elf.MachineX86_64: {0, 784, 1296},
	elf.MachineARM64:  {-1856, -1856 + 272, -1856 + 784},
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
	return Pthread{self, self + offset - keysPerBlock*keyBytes, self + offset}
}

// value reads what a thread has under a key; self is its pthread_self.
func (p Pthread) value(m memory, self uint64, key uint32) (uint64, error) {
	pointer := self - uint64(p.Self)
	block := pointer + uint64(p.KeyBlock)
	if key >= keysPerBlock {
		var err error
		if block, err = m.word(pointer + uint64(p.KeyTable) + 8*uint64(key/keysPerBlock)); err != nil || block == 0 {
			return 0, err
		}
	}
	return m.word(block + keyBytes*uint64(key%keysPerBlock) + 8)
}
