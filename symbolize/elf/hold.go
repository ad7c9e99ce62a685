package elf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// What was made of a file (a plan, an unwind table) may be kept for the next
// process that maps the same file, if it is the same: a build id, a size, a time
// say what whoever wrote the file wanted them to say.

// A Hold keeps what a file contains from changing unnoticed while something is
// made of it.
//
// A file that root alone can write is known by what the kernel says of it: no
// user can make another one of this device, inode, size and times. Of any other
// file the contents are hashed, and a lease is taken: it is granted only if
// no process has the file open for writing or mapped writable, and who opens it for
// writing meanwhile waits until the Hold is released, and is noticed.
type Hold struct {
	elf   *File
	lease *os.File // nil where only root can write
}

// maxHashed bounds what is hashed of a file to know it again: 0.6 s on one core
// of today, and more than any library has beside its code for GPUs.
const maxHashed = 1 << 30

// Hold is not ok where nothing that is made of the file may be kept: somebody
// may be writing it, or its file system does not say.
func (e *File) Hold() (h *Hold, ok bool) {
	switch {
	case e.release == nil: // in memory that is ours
		return &Hold{elf: e}, true
	case e.origin == nil:
		return nil, false
	case e.origin.rootOnly():
		return &Hold{elf: e}, true
	}
	start := uintptr(unsafe.Pointer(&e.data[0]))
	page := uintptr(os.Getpagesize())
	end := (start + uintptr(len(e.data)) + page - 1) &^ (page - 1)
	// The mapping leads to the file itself, whatever became of its name.
	file, err := os.Open(fmt.Sprintf("/proc/self/map_files/%x-%x", start, end))
	if err != nil {
		return nil, false
	}
	if err := takeLease(file); err != nil {
		file.Close()
		return nil, false
	}
	return &Hold{elf: e, lease: file}, true
}

// Release ends the Hold and reports whether the file was left alone meanwhile. A
// file of root's that was changed has another identity from then on, so that
// nobody will ask for what was kept under the old one.
func (h *Hold) Release() (unchanged bool) {
	if h.lease == nil {
		return true
	}
	unchanged = hasLease(h.lease)
	h.lease.Close()
	return unchanged
}

// RootOnly reports a file that is known without a look at its contents.
func (h *Hold) RootOnly() bool { return h.lease == nil && h.elf.origin != nil }

// Key identifies the parts of the file, with its headers: nobody can make another
// file of that key with other contents there. Not ok where they are too large.
func (h *Hold) Key(parts ...[]byte) (key string, ok bool) {
	if h.RootOnly() {
		return h.elf.origin.identity(), true
	}
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if size > maxHashed {
		return "", false
	}
	sum := sha256.New()
	fmt.Fprintln(sum, len(h.elf.data), len(parts))
	sum.Write(h.elf.headers())
	for _, part := range parts {
		digest := treeDigest(part)
		fmt.Fprintf(sum, "%d %x\n", len(part), digest)
	}
	return "sha256-" + hex.EncodeToString(sum.Sum(nil)), true
}

// Contents is the whole file, for Key.
func (e *File) Contents() []byte { return e.data }

// SymbolBytes is how large the symbol tables are, with their names.
func (e *File) SymbolBytes() int {
	return len(e.dynsym.entries) + len(e.dynsym.strings) + len(e.symtab.entries) + len(e.symtab.strings)
}

// headers are the bytes that say where everything is.
func (e *File) headers() []byte {
	h := append([]byte{}, e.slice(0, headerSize)...)
	h = append(h, e.slice(le.Uint64(h[32:]), uint64(le.Uint16(h[56:]))*programHeaderSize)...)
	return append(h, e.slice(le.Uint64(h[40:]), uint64(len(e.sections))*sectionHeaderSize)...)
}

// treeDigest hashes in pieces, on all cores.
func treeDigest(b []byte) [sha256.Size]byte {
	const piece = 4 << 20
	digests := make([]byte, (len(b)+piece-1)/piece*sha256.Size)
	faults := make([]error, min(runtime.GOMAXPROCS(0), len(digests)/sha256.Size))
	var next atomic.Int64
	var workers sync.WaitGroup
	for w := range faults {
		workers.Go(func() {
			faults[w] = Guard(func() {
				for i := int(next.Add(1)) - 1; i*sha256.Size < len(digests); i = int(next.Add(1)) - 1 {
					sum := sha256.Sum256(b[i*piece : min((i+1)*piece, len(b))])
					copy(digests[i*sha256.Size:], sum[:])
				}
			})
		})
	}
	workers.Wait()
	for _, fault := range faults {
		if fault != nil {
			panic(fault) // for the caller's Guard, as if there were no goroutines
		}
	}
	return sha256.Sum256(digests)
}

// LastChange is how large the kernel says that the file is, and when it was changed last,
// contents or inode. Not ok where it says nothing.
func (e *File) LastChange() (size uint64, at time.Time, ok bool) {
	if e.origin == nil {
		return 0, time.Time{}, false
	}
	size, at = e.origin.lastChange()
	return size, at, true
}

// Origin is what the kernel says of the file: its inode and when it was changed.
// Two files of one origin are the same, unless their owner wrote to it unnoticed.
// "" where the kernel says nothing.
func (e *File) Origin() string {
	if e.origin == nil {
		return ""
	}
	return e.origin.identity()
}
