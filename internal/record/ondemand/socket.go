package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// name is what clients send to: an abstract name, in which the NUL at the end counts.
var name = "@dynolog\x00"

var (
	// ErrNameTaken: another daemon has the name in the job's network namespace.
	ErrNameTaken = errors.New("another daemon answers the profilers of this job")
	// ErrNetwork: the job's network namespace cannot be entered.
	ErrNetwork = errors.New("the job's network namespace cannot be entered")
)

// socket is the daemon's.
type socket struct{ fd int }

// listen binds the name in the network namespace of a process, where its client looks for it.
func listen(pid int) (*socket, error) {
	type result struct {
		s   *socket
		err error
	}
	done := make(chan result, 1)
	go func() {
		// The thread is in another namespace for good: it ends with the goroutine, which does not unlock it.
		runtime.LockOSThread()
		if err := enterNetwork(pid); err != nil {
			done <- result{nil, err}
			return
		}
		s, err := bind()
		done <- result{s, err}
	}()
	r := <-done
	return r.s, r.err
}

func enterNetwork(pid int) error {
	var own, its unix.Stat_t
	path := fmt.Sprintf("/proc/%d/ns/net", pid)
	if err := unix.Stat("/proc/self/ns/net", &own); err != nil {
		return err
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNetwork, &fs.PathError{Op: "open", Path: path, Err: err})
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &its); err != nil {
		return err
	}
	if own.Dev == its.Dev && own.Ino == its.Ino {
		return nil
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("%w (%w): it needs CAP_SYS_ADMIN", ErrNetwork, err)
	}
	return nil
}

func bind() (*socket, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket: %w", err)
	}
	// The kernel then says who sends, whatever a message says.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("asking for senders: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.EADDRINUSE) {
			return nil, ErrNameTaken
		}
		return nil, fmt.Errorf("binding the name %q: %w", strings.Trim(name, "@\x00"), err)
	}
	return &socket{fd}, nil
}

func (s *socket) close() { unix.Close(s.fd) }

// received is a message with who sent it.
type received struct {
	message
	pid  int // of the sender's process by the kernel, in our pid namespace
	from string
}

// polling is how long a wait for messages goes on without a look at the context.
const polling = 100 * time.Millisecond

// receive waits for the next message. What is none is left out.
func (s *socket) receive(ctx context.Context) (received, error) {
	buffer, control := make([]byte, mostMessage), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	for {
		if err := ctx.Err(); err != nil {
			return received{}, err
		}
		polled := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(polled, int(polling.Milliseconds())); n == 0 || errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return received{}, fmt.Errorf("waiting for the job's profiler: %w", err)
		}
		n, nc, flags, from, err := unix.Recvmsg(s.fd, buffer, control, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return received{}, fmt.Errorf("reading what the job's profiler sends: %w", err)
		}
		m, err := parseMessage(buffer[:n])
		sender, known := senderOf(control[:nc])
		address, ok := from.(*unix.SockaddrUnix)
		if err != nil || flags&unix.MSG_TRUNC != 0 || !known || !ok {
			continue
		}
		return received{m, sender, address.Name}, nil
	}
}

func senderOf(control []byte) (pid int, ok bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, false
	}
	for i := range messages {
		if c, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			return int(c.Pid), c.Pid > 0
		}
	}
	return 0, false
}

// answer sends a message back. Only to an abstract name, which needs no file system: a path would be one of ours. A
// client that does not read is not waited for.
func (s *socket) answer(to received, payload []byte) error {
	if !strings.HasPrefix(to.from, "@") || len(to.from) < 2 {
		return fmt.Errorf("answering pid %d: its socket has no abstract name", to.pid)
	}
	b := message{to.kind, payload}.bytes()
	if err := unix.Sendto(s.fd, b, unix.MSG_DONTWAIT, &unix.SockaddrUnix{Name: to.from + "\x00"}); err != nil {
		return fmt.Errorf("answering pid %d: %w", to.pid, err)
	}
	return nil
}
