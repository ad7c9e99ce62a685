package elf

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
)

// aCopy is a library that its user can write.
func aCopy(t *testing.T) string {
	t.Helper()
	path := testelf.Assemble(t, ".text\n.globl f\n.type f,@function\nf: nop\n.size f, .-f\n")
	contents, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "lib.so")
	if err := os.WriteFile(copied, contents, 0o600); err != nil {
		t.Fatal(err)
	}
	return copied
}

func mustHold(t *testing.T, e *File) *Hold {
	t.Helper()
	h, ok := e.Hold()
	if !ok && os.Geteuid() != 0 {
		t.Skip("a file's contents can not be held here: run as root")
	}
	if !ok {
		t.Fatal("not held")
	}
	return h
}

func wholeKey(t *testing.T, path string) string {
	t.Helper()
	e := open(t, path)
	h := mustHold(t, e)
	key, ok := h.Key(e.Contents())
	if !ok || !h.Release() {
		t.Fatalf("key %q, %v", key, ok)
	}
	return key
}

func TestACopyHasTheKeyOfItsContents(t *testing.T) {
	path := aCopy(t)
	key := wholeKey(t, path)
	contents, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.so")
	for at := range contents {
		if at < headerSize && at%7 != 0 || at >= headerSize && at%251 != 0 {
			continue
		}
		contents[at] ^= 0x40
		if err := os.WriteFile(other, contents, 0o600); err != nil {
			t.Fatal(err)
		}
		contents[at] ^= 0x40
		if e, err := Open(other); err == nil {
			h := mustHold(t, e)
			if forged, ok := h.Key(e.Contents()); ok && forged == key {
				t.Errorf("byte %#x is not in the key", at)
			}
			h.Release()
			e.Close()
		}
	}
	if err := os.WriteFile(other, contents, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := wholeKey(t, other); again != key {
		t.Errorf("the same contents have the keys %s and %s", key, again)
	}
}

// Who can write a file while something is made of it could have it hashed as one
// and planned as another.
func TestAFileThatIsBeingWrittenIsNotHeld(t *testing.T) {
	path := aCopy(t)
	e := open(t, path)
	mustHold(t, e).Release()
	writer, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := e.Hold(); ok {
		t.Error("held though it is open for writing")
	}
	mapped, err := unix.Mmap(int(writer.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	writer.Close()
	if _, ok := e.Hold(); ok {
		t.Error("held though it is mapped writable")
	}
	unix.Munmap(mapped)
	h := mustHold(t, e)
	if _, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK, 0); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("opened for writing while it is held: %v", err)
	}
	if h.Release() {
		t.Error("a writer who came meanwhile went unnoticed")
	}
	if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK, 0); err != nil {
		t.Errorf("not writable when it is released: %v", err)
	} else {
		unix.Close(fd)
	}
}

func TestOnlyFilesThatRootAloneWritesAreKnownByTheirInode(t *testing.T) {
	root := origin{}
	root.stat.Mode, root.stat.Ctim.Sec, root.filesystem.Type = unix.S_IFREG|0o755, 1_600_000_000, unix.EXT4_SUPER_MAGIC
	if !root.rootOnly() {
		t.Fatal("a file of root's is not")
	}
	for name, change := range map[string]func(*origin){
		"another owner":     func(o *origin) { o.stat.Uid = 1000 },
		"the group writes":  func(o *origin) { o.stat.Mode |= 0o020 },
		"everybody writes":  func(o *origin) { o.stat.Mode |= 0o002 },
		"just written":      func(o *origin) { o.stat.Ctim.Sec = 1 << 40 },
		"a FUSE server's":   func(o *origin) { o.filesystem.Type = unix.FUSE_SUPER_MAGIC },
		"a network's":       func(o *origin) { o.filesystem.Type = unix.NFS_SUPER_MAGIC },
		"an unknown system": func(o *origin) { o.filesystem.Type = 0x1234 },
	} {
		o := root
		if change(&o); o.rootOnly() {
			t.Errorf("%s: believed by its inode", name)
		}
	}
}
