package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Patience is how long any one command may take before the test gives up on it.
const Patience = 10 * time.Minute

// Command is a process whose output is kept. It leads a process group of its own, has
// no terminal, and reads from a pipe.
type Command struct {
	*exec.Cmd
	stdin io.WriteCloser
	mu    sync.Mutex
	out   []string      // lines of standard output
	news  chan struct{} // closed and replaced with each line
	errs  bytes.Buffer
	done  chan struct{}
}

// Start starts a command, whose whole process group is killed when the test ends.
func Start(t *testing.T, argv ...string) *Command {
	t.Helper()
	c, err := launch(argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

func launch(argv ...string) (*Command, error) {
	c := &Command{Cmd: exec.Command(argv[0], argv[1:]...), news: make(chan struct{}), done: make(chan struct{})}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Stderr = &lockedBuffer{c: c}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.stdin, err = c.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	go c.read(out)
	return c, nil
}

func (c *Command) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			c.mu.Lock()
			c.out = append(c.out, strings.TrimSuffix(line, "\n"))
			c.tell()
			c.mu.Unlock()
		}
		if err != nil {
			break
		}
	}
	c.Cmd.Wait()
	close(c.done)
}

// tell wakes whoever waits for output; c.mu is held.
func (c *Command) tell() {
	close(c.news)
	c.news = make(chan struct{})
}

type lockedBuffer struct{ c *Command }

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.c.tell()
	return b.c.errs.Write(p)
}

// Kill kills the whole process group, if the command has not ended, and waits for that.
func (c *Command) Kill() {
	select {
	case <-c.done:
	default:
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		<-c.done
	}
}

// Until waits for the output to fulfil a condition: the lines of standard output, and
// standard error as a whole. It fails the test when the process ends before that, or
// after Patience.
func (c *Command) Until(t *testing.T, what string, met func(out []string, errs string) bool) {
	t.Helper()
	deadline := time.After(Patience)
	for {
		c.mu.Lock()
		ok, news := met(c.out, c.errs.String()), c.news
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case <-c.done:
			c.mu.Lock()
			ok = met(c.out, c.errs.String())
			c.mu.Unlock()
			if !ok {
				t.Fatalf("%s ended before %s\n%s", c, what, c.Transcript())
			}
			return
		case <-deadline:
			t.Fatalf("%s: no %s in %s\n%s", c, what, Patience, c.Transcript())
		}
	}
}

// Line waits for a line of standard output that begins so.
func (c *Command) Line(t *testing.T, prefix string) {
	t.Helper()
	c.Until(t, fmt.Sprintf("%q", prefix), func(out []string, _ string) bool {
		return slices.ContainsFunc(out, func(line string) bool { return strings.HasPrefix(line, prefix) })
	})
}

// Done is closed when the process has ended.
func (c *Command) Done() <-chan struct{} { return c.done }

// Lines are those of standard output so far.
func (c *Command) Lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.out)
}

// Wait waits for the end and returns the exit code, or minus the signal; the error is
// that of a process that had to be killed after Patience.
func (c *Command) Wait() (int, error) {
	select {
	case <-c.done:
	case <-time.After(Patience):
		c.Kill()
		return 0, fmt.Errorf("%s: still running after %s\n%s", c, Patience, c.Transcript())
	}
	status := c.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return -int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// wellEnded waits for the end. An exit code other than 0 is an error.
func (c *Command) wellEnded() error {
	code, err := c.Wait()
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: exit code %d\n%s", c, code, c.Transcript())
	}
	return err
}

// Transcript is all that the process wrote so far: standard output, then standard error.
func (c *Command) Transcript() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.out, "\n") + "\n" + c.errs.String()
}
