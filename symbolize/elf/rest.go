package elf

import (
	"sync"

	"golang.org/x/sys/unix"
)

// mappings are those of all files that are open, so that their pages can be given back
// while somebody reads them.
var mappings = struct {
	mu  sync.Mutex
	all map[*byte][]byte // by their begins
}{all: map[*byte][]byte{}}

// Rest gives the pages back that open files were read by. They stay in the kernel's cache,
// from where a later look has them again; but a process that has read all of a framework's
// libraries once, to plan its probes, would be taken for one that needs half a gigabyte for as
// long as it runs.
func Rest() {
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	for _, data := range mappings.all {
		_ = unix.Madvise(data, unix.MADV_DONTNEED) // of a shared mapping of a file it loses nothing
	}
}

// keep has Rest know of a mapping, and returns what unmaps it.
func keep(data []byte) (release func() error) {
	begin := &data[0]
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	mappings.all[begin] = data
	return func() error {
		// While it is still known: afterwards the addresses may be anybody's.
		mappings.mu.Lock()
		defer mappings.mu.Unlock()
		delete(mappings.all, begin)
		return unix.Munmap(data)
	}
}
