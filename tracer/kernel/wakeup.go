package kernel

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// CallRing is the ring buffer of calls and the wakeup that few of its records give.
type CallRing struct {
	*ringbuf.Reader
	Wakeup *wakeup
}

// OpenCallRing opens it for the one who reads the recording, and closes it.
func (k *Programs) OpenCallRing() (*CallRing, error) {
	reader, err := k.callRing.reader(k.call)
	if err != nil {
		return nil, err
	}
	k.callRing.opened = nil             // its owner is another now
	reader.SetDeadline(time.Unix(1, 0)) // it never waits
	wakeup, err := newWakeup(k.call.Maps["calls"], k.slicing.begun)
	if err != nil {
		reader.Close()
		return nil, fmt.Errorf("waiting for the ring buffer: %w", err)
	}
	return &CallRing{reader, wakeup}, nil
}

// callRing keeps a reader of the ring from the calibration until the recording: mapping the
// usual 64 MiB, and unmapping them, takes 14 ms.
type callRing struct{ opened *ringbuf.Reader }

// reader opens the ring, unless it is open.
func (r *callRing) reader(call *ebpf.Collection) (*ringbuf.Reader, error) {
	if r.opened == nil {
		reader, err := ringbuf.NewReader(call.Maps["calls"])
		if err != nil {
			return nil, fmt.Errorf("opening the ring buffer: %w", err)
		}
		r.opened = reader
	}
	return r.opened, nil
}

func (r *callRing) close() {
	if r.opened != nil {
		r.opened.Close()
	}
}

func (r *CallRing) Close() error { return errors.Join(r.Reader.Close(), r.Wakeup.file.Close()) }

// Wakeup waits for a ring buffer's wake-ups the way Go waits for a socket: only
// the goroutine sleeps. A thread that sleeps in epoll_wait, as ringbuf.Reader
// has it, keeps its place in the scheduler, which then looks every 20 to 70 µs
// whether the place is needed: a third of what the tracer costs beside a job
// that makes no calls.
type wakeup struct {
	file  *os.File
	woken chan struct{}
	begun <-chan struct{} // a slice, in which there may be many calls at once
}

func newWakeup(m *ebpf.Map, begun <-chan struct{}) (*wakeup, error) {
	fd, err := unix.FcntlInt(uintptr(m.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return newWakeupOn(fd, begun)
}

// newWakeupOn makes a descriptor its own.
func newWakeupOn(fd int, begun <-chan struct{}) (*wakeup, error) {
	if err := unix.SetNonblock(fd, true); err != nil { // else the runtime does not poll it
		unix.Close(fd)
		return nil, err
	}
	b := &wakeup{os.NewFile(uintptr(fd), "ring"), make(chan struct{}, 1), begun}
	conn, err := b.file.SyscallConn()
	if err == nil {
		err = b.file.SetReadDeadline(time.Time{}) // an error where it cannot be polled
	}
	if err != nil {
		b.file.Close()
		return nil, err
	}
	go b.listen(conn)
	return b, nil
}

// listen is one reading that never has enough, until the file is closed: what
// wakes between two readings would go unheard.
func (b *wakeup) listen(conn syscall.RawConn) {
	began := false
	_ = conn.Read(func(uintptr) bool {
		if began {
			select {
			case b.woken <- struct{}{}:
			default:
			}
		}
		began = true
		return false
	})
}

// Wait returns when a record has been written that wakes, when a slice begins, and after
// the given time at the latest.
func (b *wakeup) Wait(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-b.woken:
	case <-b.begun:
	case <-timer.C:
	}
}
