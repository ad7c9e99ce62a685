package symbolize

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

	"golang.org/x/sys/unix"
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
// nobody has the file open for writing or mapped writable, and who opens it for
// writing meanwhile waits until the Hold is released, and is noticed.
type Hold struct {
	elf   *ELF
	lease *os.File // nil where only root can write
}

// origin is what the kernel says of a mapped file.
type origin struct {
	stat       unix.Stat_t
	filesystem unix.Statfs_t
}

// maxHashed bounds what is hashed of a file to know it again: 0.6 s on one core
// of today, and more than any library has beside its code for GPUs.
const maxHashed = 1 << 30

// settled is how old the last change of a root's file must be: times are only as
// exact as a tick, and what was changed twice in one looks unchanged.
const settled = 2 * time.Second

// Hold is not ok where nothing that is made of the file may be kept: somebody
// may be writing it, or its file system does not say.
func (e *ELF) Hold() (h *Hold, ok bool) {
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
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
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
	kind, err := unix.FcntlInt(h.lease.Fd(), unix.F_GETLEASE, 0)
	h.lease.Close()
	return err == nil && kind == unix.F_RDLCK
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
func (e *ELF) Contents() []byte { return e.data }

// SymbolBytes is how large the symbol tables are, with their names.
func (e *ELF) SymbolBytes() int {
	return len(e.dynsym.entries) + len(e.dynsym.strings) + len(e.symtab.entries) + len(e.symtab.strings)
}

// headers are the bytes that say where everything is.
func (e *ELF) headers() []byte {
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

// Origin is what the kernel says of the file: its inode and when it was changed.
// Two files of one origin are the same, unless their owner wrote to it unnoticed.
// "" where the kernel says nothing.
func (e *ELF) Origin() string {
	if e.origin == nil {
		return ""
	}
	return e.origin.identity()
}

// rootFilesystems are those that root alone can mount and that answer for their
// files themselves: a FUSE server says of an owner what it likes.
var rootFilesystems = map[int64]bool{
	unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true, unix.TMPFS_MAGIC: true,
	unix.OVERLAYFS_SUPER_MAGIC: true, unix.SQUASHFS_MAGIC: true, unix.F2FS_SUPER_MAGIC: true, unix.EROFS_SUPER_MAGIC_V1: true,
}

// rootOnly reports a file that nobody but root can write, and that has not been
// written for a while. An access list that lets others write shows in the bits of
// the group.
func (o *origin) rootOnly() bool {
	s := &o.stat
	return s.Uid == 0 && s.Mode&0o022 == 0 && rootFilesystems[int64(o.filesystem.Type)] &&
		time.Since(time.Unix(s.Ctim.Unix())) > settled
}

// identity is what no user can make another file have. Numbers of devices that
// are no disks are given out anew at each boot.
func (o *origin) identity() string {
	s := &o.stat
	boot := ""
	if unix.Major(s.Dev) == 0 {
		boot = bootID()
	}
	return fmt.Sprintf("file-%x-%x-%d-%d-%d-%d-%d-%v-%s", s.Dev, s.Ino, s.Size, s.Mtim.Sec, s.Mtim.Nsec, s.Ctim.Sec, s.Ctim.Nsec, o.filesystem.Fsid, boot)
}

var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(id)
})

func originOf(fd int) (*origin, error) {
	o := &origin{}
	if err := unix.Fstat(fd, &o.stat); err != nil {
		return nil, err
	}
	if err := unix.Fstatfs(fd, &o.filesystem); err != nil {
		return nil, err
	}
	return o, nil
}
