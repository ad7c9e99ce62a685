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

func (k *Programs) OpenCallRing() (*CallRing, error) {
	m := k.call.Maps["calls"]
	reader, err := ringbuf.NewReader(m)
	if err != nil {
		return nil, fmt.Errorf("opening the ring buffer: %w", err)
	}
	reader.SetDeadline(time.Unix(1, 0)) // it never waits
	wakeup, err := newWakeup(m)
	if err != nil {
		reader.Close()
		return nil, fmt.Errorf("waiting for the ring buffer: %w", err)
	}
	return &CallRing{reader, wakeup}, nil
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
}

func newWakeup(m *ebpf.Map) (*wakeup, error) {
	fd, err := unix.FcntlInt(uintptr(m.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return newWakeupOn(fd)
}

// newWakeupOn makes a descriptor its own.
func newWakeupOn(fd int) (*wakeup, error) {
	if err := unix.SetNonblock(fd, true); err != nil { // else the runtime does not poll it
		unix.Close(fd)
		return nil, err
	}
	b := &wakeup{os.NewFile(uintptr(fd), "ring"), make(chan struct{}, 1)}
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

// Wait returns when a record has been written that wakes, and after the given
// time at the latest.
func (b *wakeup) Wait(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-b.woken:
	case <-timer.C:
	}
}
