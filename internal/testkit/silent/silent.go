// Package silent is a file system of a test's own, served by it (FUSE), that stops answering when the
// test says so: as that of a job may, or a server on a network.
package silent

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// FileSystem has one file. The process that serves it must not touch it: it would wait for itself.
type FileSystem struct {
	Path     string // of its file
	contents []byte
	device   int
	reads    atomic.Int64 // that wait for an answer
	silent   atomic.Bool
	from     int64 // reads from here on are never answered
}

// Requests and their answers (include/uapi/linux/fuse.h).
const (
	opLookup      = 1
	opForget      = 2
	opGetAttr     = 3
	opOpen        = 14
	opRead        = 15
	opStatFS      = 17
	opRelease     = 18
	opFlush       = 25
	opInit        = 26
	opOpenDir     = 27
	opReleaseDir  = 29
	opBatchForget = 42

	rootNode, fileNode = 1, 2
	headerBytes        = 40
)

// Mount mounts a file system with a file of a name until the test ends. Reads of its contents from an
// offset on, a multiple of 128 KiB, are never answered. Where that is not possible the test is skipped.
func Mount(t testing.TB, name string, contents []byte, from int64) *FileSystem {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a file system")
	}
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	dir, err := os.MkdirTemp("", "ebpfprof-silent-")
	if err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device)
	if err := unix.Mount("silent", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		unix.Close(device)
		os.Remove(dir)
		t.Skip("no FUSE here: ", err)
	}
	f := &FileSystem{Path: filepath.Join(dir, name), contents: contents, device: device, from: from}
	served := make(chan struct{})
	go func() {
		defer close(served)
		f.serve()
	}()
	t.Cleanup(func() {
		f.Abort()
		<-served
		unix.Close(device)
		os.Remove(dir)
	})
	return f
}

// Abort ends the file system: whoever waits for an answer gets an error. A process that waits can not
// be killed before.
func (f *FileSystem) Abort() { _ = unix.Unmount(filepath.Dir(f.Path), unix.MNT_FORCE|unix.MNT_DETACH) }

// Silence has nothing answered any more.
func (f *FileSystem) Silence() { f.silent.Store(true) }

// Speak has everything answered again that is asked from now on.
func (f *FileSystem) Speak() { f.silent.Store(false) }

// Waiting counts the reads that wait for an answer.
func (f *FileSystem) Waiting() int { return int(f.reads.Load()) }

func (f *FileSystem) serve() {
	request := make([]byte, 256<<10)
	for {
		n, err := unix.Read(f.device, request)
		switch err {
		case unix.EINTR, unix.EAGAIN, unix.ENOENT: // of one that was interrupted
			continue
		case nil:
		default:
			return // ENODEV: it is not mounted any more
		}
		if n < headerBytes {
			return
		}
		code, unique := binary.NativeEndian.Uint32(request[4:]), binary.NativeEndian.Uint64(request[8:])
		node := binary.NativeEndian.Uint64(request[16:])
		if f.silent.Load() {
			continue
		}
		if body, number, ok := f.answer(code, node, request[headerBytes:n]); ok {
			f.reply(unique, body, number)
		}
	}
}

func (f *FileSystem) reply(unique uint64, body []byte, number unix.Errno) {
	reply := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
	reply = binary.NativeEndian.AppendUint32(reply, uint32(-int32(number)))
	reply = binary.NativeEndian.AppendUint64(reply, unique)
	_, _ = unix.Write(f.device, append(reply, body...))
}

// answer is what a request gets; not ok: nothing.
func (f *FileSystem) answer(code uint32, node uint64, request []byte) (body []byte, number unix.Errno, ok bool) {
	switch code {
	case opInit:
		return words(7, 31, 128<<10, 0, 12|10<<16, 128<<10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0, true
	case opLookup:
		if name, _, _ := bytes.Cut(request, []byte{0}); node != rootNode || string(name) != filepath.Base(f.Path) {
			return nil, unix.ENOENT, true
		}
		entry := words(fileNode, 0, 0, 0, 3600, 0, 3600, 0, 0, 0)
		return append(entry, f.attributes(fileNode)...), 0, true
	case opGetAttr:
		return append(words(3600, 0, 0, 0), f.attributes(node)...), 0, true
	case opOpen, opOpenDir:
		return words(0, 0, 0, 0), 0, true
	case opRead:
		at, size := int64(binary.NativeEndian.Uint64(request[8:])), int64(binary.NativeEndian.Uint32(request[16:]))
		if end := min(at+size, int64(len(f.contents))); at+size <= f.from || f.from < 0 {
			return f.contents[min(at, end):end], 0, true
		}
		f.reads.Add(1)
		return nil, 0, false
	case opStatFS:
		return make([]byte, 80), 0, true
	case opFlush, opRelease, opReleaseDir:
		return nil, 0, true
	case opForget, opBatchForget:
		return nil, 0, false
	}
	return nil, unix.ENOSYS, true
}

// attributes are a struct fuse_attr.
func (f *FileSystem) attributes(node uint64) []byte {
	mode, size := uint32(unix.S_IFDIR|0o755), uint64(0)
	if node == fileNode {
		mode, size = unix.S_IFREG|0o755, uint64(len(f.contents))
	}
	a := binary.NativeEndian.AppendUint64(nil, node)
	a = binary.NativeEndian.AppendUint64(a, size)
	a = append(a, make([]byte, 44)...) // blocks and times
	return append(a, words(mode, 1, 0, 0, 0, 4096, 0)...)
}

func words(all ...uint32) (b []byte) {
	for _, w := range all {
		b = binary.NativeEndian.AppendUint32(b, w)
	}
	return b
}
