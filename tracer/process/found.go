package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/reader"
)

// answerFile finds and opens a file that a process maps or runs, in the reader. Of a file that a user
// may serve it makes a copy.
func answerFile(r *reader.Request) reader.Reply {
	var q fileRequest
	if err := json.Unmarshal(r.Text, &q); err != nil {
		return reader.Reply{Err: syscall.EINVAL}
	}
	var reply fileReply
	found, err := q.find(&reply)
	if err != nil {
		reply.Last = numberOf(err)
		return replied(reply, nil)
	}
	defer found.close()
	files, err := q.open(&found, &reply, r.Progress)
	if err != nil {
		reply.Last = numberOf(err)
		files = nil
	}
	sent := replied(reply, nil)
	sent.Files = files
	return sent
}

func numberOf(err error) syscall.Errno {
	if number := syscall.Errno(0); errors.As(err, &number) && number != 0 {
		return number
	}
	return syscall.EINVAL // another file, or none that is opened
}

func (q *fileRequest) library() *Library {
	l := &Library{Path: q.Path, Device: q.Device, Inode: q.Inode, Deleted: q.Deleted, process: &Process{PID: q.PID}}
	for _, at := range q.Starts {
		l.Segments = append(l.Segments, Segment{Start: at[0], End: at[1]})
	}
	return l
}

func (q *fileRequest) find(reply *fileReply) (place, error) {
	if q.Program {
		return lookAtLink(FS{}.pidPath(q.PID, "exe"))
	}
	found, via, first, err := q.library().find()
	reply.Via = via
	if first != nil {
		reply.First = numberOf(first)
	}
	return found, err
}

// find looks for the library's file by the names that lead to it. first is why the first of
// them did not.
func (l *Library) find() (found place, via Via, first, err error) {
	p := l.process
	for _, s := range l.Segments {
		found, err := l.isFile(lookAtLink(p.path("map_files", fmt.Sprintf("%x-%x", s.Start, s.End))))
		if err == nil {
			return found, ViaMapFiles, nil, nil
		}
		if first == nil && !errors.Is(err, errAnotherFile) {
			first = err
		}
	}
	if l.Deleted {
		return place{}, "", first, errAnotherFile
	}
	found, err = l.isFile(p.fs.lookIn(p.through(), l.Path))
	return found, ViaRoot, first, err
}

// open gives the file's descriptor, or those of a copy and of its place.
func (q *fileRequest) open(found *place, reply *fileReply, progress func()) ([]int, error) {
	if found.kind() != unix.S_IFREG {
		return nil, errOdd
	}
	l := q.library()
	var refused *MountError
	if err := l.checkMount(found.fd); errors.As(err, &refused) {
		reply.FileSystem, reply.Why = refused.FileSystem, refused.why
		return q.openServed(found, reply, progress)
	} else if err != nil {
		return nil, err
	}
	file, err := found.open(unix.S_IFREG)
	if err != nil {
		return nil, err
	}
	reply.Holes = elf.HolesOf(file)
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	file.Close()
	return []int{fd}, err
}

// openServed makes a copy of a file that a user may serve.
func (q *fileRequest) openServed(found *place, reply *fileReply, progress func()) ([]int, error) {
	reply.Copied = true
	at, err := unix.FcntlInt(uintptr(found.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil || q.Known {
		return []int{at}, err
	}
	file, err := found.open(unix.S_IFREG)
	if err != nil {
		unix.Close(at)
		return nil, err
	}
	// Not closed: the reader would wait for its server (FUSE_FLUSH) before it has answered.
	copied, bytes, err := copyELF(file, progress)
	if err != nil {
		unix.Close(at)
		return nil, err
	}
	reply.Bytes = bytes
	return []int{copied, at}, nil
}
