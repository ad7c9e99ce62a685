package reader

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// argument is what a reader is called, for ps and for Serve.
const argument = "ebpfprof-reader"

// socketFD is the reader's end of its pair of sockets.
const socketFD = 3

// Request is what the tracer wants to know.
type Request struct {
	Text  []byte
	Files []int // closed when the operation returns
	// Progress tells the tracer that the reader goes on, and is not waiting.
	Progress func()
}

// Reply is the answer. Files are closed once they have been sent.
type Reply struct {
	Text  []byte
	Files []int
	Err   error // of the system (syscall.Errno), or any other, whose text is lost
}

// Operation does a request, in the reader.
type Operation func(*Request) Reply

// Serve makes this process a reader if it was started as one, and does not return then. It
// belongs into an init function: a reader never comes to main. Operations have numbers, their
// places in the list.
func Serve(operations ...Operation) {
	if len(os.Args) != 1 || os.Args[0] != argument {
		return
	}
	if kind, err := unix.GetsockoptInt(socketFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_SEQPACKET {
		return
	}
	unix.CloseOnExec(socketFD)
	closeInherited()
	// A terminal's signals go to its whole group, a service's to all of its processes: the reader
	// ends with the tracer, whose socket closes then, and not before.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	debug.SetGCPercent(50)
	os.Exit(serve(socketFD, operations))
}

// closeInherited closes what whoever started the tracer left open for its children: a reader that stays
// would keep a pipe of theirs open. What this program has opened itself closes at an exec.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= socketFD {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

func serve(socket int, operations []Operation) int {
	buffer := make([]byte, packetBytes)
	times := openTimes()
	for {
		asked, err := receive(socket, buffer, func() error { return nil })
		if err != nil {
			return 0 // the tracer has ended
		}
		if asked.kind != isRequest || int(asked.code) >= len(operations) {
			return 1
		}
		request := &Request{Text: asked.text, Files: asked.files, Progress: func() { _ = (&message{kind: isProgress}).send(socket) }}
		began, starved := time.Now(), times.starved()
		reply := operations[asked.code](request)
		took := time.Since(began) - (times.starved() - starved)
		answer := message{kind: isAnswer, code: codeOf(reply.Err), took: max(took, 0), text: reply.Text, files: reply.Files}
		err = answer.send(socket)
		if err != nil {
			return 0
		}
		// What is the job's may wait while it is closed, too: only now, and here.
		answer.closeFiles()
		asked.closeFiles()
	}
}

// times is the reader's own schedstat (Documentation/scheduler/sched-stats.rst): an init function runs on the main
// thread. It is nil where the kernel has none.
type times struct{ file *os.File }

func openTimes() times {
	file, err := os.Open("/proc/self/schedstat")
	if err != nil {
		return times{}
	}
	return times{file}
}

// starved is for how long this thread was ready to run and had no CPU.
func (t times) starved() time.Duration {
	if t.file == nil {
		return 0
	}
	var text [96]byte // three numbers of at most 20 digits
	n, _ := t.file.ReadAt(text[:], 0)
	fields := bytes.Fields(text[:n])
	if len(fields) < 2 {
		return 0
	}
	ns, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return time.Duration(ns)
}

// codeOf is how an error is sent: by the system's number.
func codeOf(err error) uint32 {
	var number unix.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &number):
		return uint32(number)
	}
	return uint32(unix.EIO)
}
