package reader

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// process is a reader: another process, and our end of the pair of sockets.
type process struct {
	pid    int
	socket int
	buffer []byte
	ended  chan struct{} // closed when it is gone
	used   time.Duration // of a CPU, once it is gone
}

// start starts a reader: this program again. It gets no descriptor but its socket, and of the
// environment what the dynamic linker needs.
func start() (*process, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("starting a reader: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "reader")
	defer theirs.Close()
	command := exec.Command("/proc/self/exe")
	command.Args = []string{argument}
	command.Env = []string{"GOMAXPROCS=1", "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH")}
	command.ExtraFiles = []*os.File{theirs}
	// In a group of its own: a terminal stops and interrupts the tracer's.
	command.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		unix.Close(pair[0])
		return nil, fmt.Errorf("starting a reader: %w", err)
	}
	p := &process{pid: command.Process.Pid, socket: pair[0], buffer: make([]byte, packetBytes), ended: make(chan struct{})}
	go func() {
		_ = command.Wait()
		if state := command.ProcessState; state != nil {
			p.used = state.UserTime() + state.SystemTime()
		}
		close(p.ended)
	}()
	return p, nil
}

// ask has a request done. The error is errLate if the reader waits for longer than the tracer
// does, io.EOF if it has ended, else that of the operation.
func (p *process) ask(operation uint32, text []byte, files []int, patience time.Duration) (message, error) {
	if err := (&message{kind: isRequest, code: operation, text: text, files: files}).send(p.socket); err != nil {
		return message{}, io.EOF
	}
	w := waiting{reader: p, patience: patience, began: time.Now(), since: time.Now()}
	for {
		answer, err := receive(p.socket, p.buffer, w.wait)
		switch {
		case err == errLate:
			return message{}, err
		case err != nil:
			return message{}, io.EOF
		case answer.kind == isProgress:
			if time.Since(w.began) < patienceAtAll {
				w.since = time.Now()
			}
		case answer.kind == isAnswer:
			return answer, nil
		default:
			answer.closeFiles()
			return message{}, io.EOF
		}
	}
}

// waiting is the tracer's for one answer.
type waiting struct {
	reader       *process
	patience     time.Duration
	began, since time.Time // since: of the last sign of life
}

// wait returns when there is something to read.
func (w *waiting) wait() error {
	for {
		left := time.Until(w.since.Add(w.patience))
		poll := []unix.PollFd{{Fd: int32(w.reader.socket), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int(max(left, 0)/time.Millisecond)+1)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n > 0:
			return nil
		case time.Since(w.began) < patienceStarved && w.reader.works():
			w.since = time.Now()
		default:
			return errLate
		}
	}
}

// works reports a reader that does not wait: it has a CPU, would have one if others had left it, or
// was stopped. Nothing is held against the job then.
func (p *process) works() bool {
	state := procfile.State(p.pid)
	return state == 'R' || state == 'T' || state == 't'
}

// abandon has a reader killed, and does not wait for its end.
func (p *process) abandon() {
	unix.Close(p.socket)
	_ = unix.Kill(p.pid, unix.SIGKILL)
}
