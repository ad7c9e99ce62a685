package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
)

// RunCommand is `ebpfprof run`.
func RunCommand() *urfave.Command {
	return &urfave.Command{
		Name:      "run",
		Usage:     "start a command and record it from the beginning",
		UsageText: "ebpfprof run [--output DIR] [--duration 30s] -- COMMAND [ARGUMENT …]",
		Flags:     recordFlags(),
		Action: func(c *urfave.Context) error {
			options, err := recordOptions(c)
			if err != nil {
				return err
			}
			args := c.Args().Slice()
			if len(args) == 0 {
				return cli.Usagef("give the command to record: ebpfprof run -- COMMAND")
			}
			r, err := newRecorder(c, options)
			if err != nil {
				return err
			}
			if r.output == "" {
				r.output = defaultOutput(filepath.Base(args[0]), time.Now())
			}
			job, err := newJob(args)
			if err != nil {
				return err
			}
			return r.record(c.Context, job)
		},
		Description: "The command keeps running when --duration has passed. Ctrl-C goes to both.\n" +
			"The exit code is ebpfprof's own; the summary has the command's.\n" + cli.ExitCodeHelp,
	}
}

// job is a command that waits to be let go.
type job struct {
	name    string
	command *exec.Cmd
	gate    *os.File // a byte lets the command go
	report  *os.File // what exec said, nothing if it went well
	done    chan struct{}
	started bool
}

func newJob(args []string) (*job, error) {
	path, err := exec.LookPath(args[0])
	if errors.Is(err, exec.ErrDot) {
		err = nil // through a "." in PATH, as a shell would
	}
	if err != nil {
		return nil, cannotRun(args[0], err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	gateRead, gate, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	report, reportWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, gateRead.Close(), gate.Close())
	}
	defer gateRead.Close()
	defer reportWrite.Close()
	command := exec.Command(self, append([]string{GateCommand, path}, args...)...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.ExtraFiles = []*os.File{gateRead, reportWrite}
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", args[0], err), gate.Close(), report.Close())
	}
	j := &job{name: args[0], command: command, gate: gate, report: report, done: make(chan struct{})}
	go func() { command.Wait(); close(j.done) }()
	return j, nil
}

// cannotRun is one sentence about a command that does not start.
func cannotRun(name string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot run %s: there is no such command", name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot run %s: it is not an executable file, or may not be executed", name)
	}
	return fmt.Errorf("cannot run %s: %w", name, cause(err))
}

// start lets the command go.
func (j *job) start() error {
	j.started = true
	_, err := j.gate.Write([]byte{1})
	if err = errors.Join(err, j.gate.Close()); err != nil {
		return fmt.Errorf("starting %s: %w", j.name, err)
	}
	return nil
}

// abandon ends a command that was never let go.
func (j *job) abandon() {
	if !j.started {
		j.gate.Close()
		<-j.done
	}
	j.report.Close()
}

// execError is what kept the command from starting, nil if nothing did.
func (j *job) execError() error {
	errno, ok := readErrno(j.report)
	if !ok {
		return nil
	}
	return cannotRun(j.name, errno)
}

// endGrace is how long a command that got the same Ctrl-C has to end before
// the summary says that it still runs.
const endGrace = 2 * time.Second

// describe puts what became of the command into the summary.
func (j *job) describe(s *summary) {
	select {
	case <-j.done:
	case <-time.After(endGrace):
		s.JobPID = j.command.Process.Pid
		return
	}
	state := j.command.ProcessState
	code := state.ExitCode()
	if s.jobState = state.String(); code < 0 { // a signal: what a shell would say
		code = signalExitCode(state)
	}
	s.JobExitCode = &code
}
