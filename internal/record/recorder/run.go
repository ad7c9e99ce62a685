package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// RunCommand is `ebpfprof run`; it ends with what a build that reads datasets adds.
func RunCommand(reading Reading) *urfave.Command {
	return &urfave.Command{
		Name:      "run",
		Usage:     "start a command and record it from the beginning",
		UsageText: "ebpfprof run [--output DIR] [--duration 30s] -- COMMAND [ARGUMENT …]",
		Flags: append(recordFlags(runsCUPTI), &urfave.BoolFlag{Name: "require-recording", DisableDefaultText: true,
			Usage: "exit with 125 if the recording fails or is empty, whatever the command's exit code is"}),
		OnUsageError: func(c *urfave.Context, err error, isSubcommand bool) error {
			return cli.WithCode(cli.ExitNotStarted, cli.UsageError(c, err, isSubcommand))
		},
		Action: func(c *urfave.Context) error {
			r, job, err := prepareRun(c, reading)
			if err != nil {
				return notStarted(err)
			}
			defer r.injecting.remove()
			err = r.record(c.Context, job)
			if job.execErr != nil || !job.started.Load() {
				return notStarted(err)
			}
			return job.end(err, c.Bool("require-recording"))
		},
		Description: "The command keeps running when --duration has passed, and ebpfprof waits for it. Ctrl-C goes to both,\n" +
			"SIGTERM is passed on.\n" + exitCodeHelp,
	}
}

const exitCodeHelp = "Exit code: the command's own (128 + the signal that ended it), also when the recording fails after the start\n" +
	"(--require-recording: 125); 125 if ebpfprof fails before the start, 126 if the command cannot be executed, 127 if\n" +
	"it is not found."

// prepareRun checks flags and command line and creates the process that becomes the command.
func prepareRun(c *urfave.Context, reading Reading) (*recorder, *job, error) {
	options, err := recordOptions(c)
	if err != nil {
		return nil, nil, err
	}
	args := c.Args().Slice()
	if len(args) == 0 {
		return nil, nil, cli.Usagef("give the command to record: ebpfprof run -- COMMAND")
	}
	r, err := newRecorder(c, options, reading, true)
	if err != nil {
		return nil, nil, err
	}
	if r.output == "" {
		r.output = defaultOutput(filepath.Base(args[0]), time.Now())
	}
	if err := r.inject(); err != nil {
		return nil, nil, err
	}
	job, err := newJob(args, r.askedEnvironment())
	if err != nil {
		r.injecting.remove()
	}
	return r, job, err
}

// notStarted gives an error from before the command's start the exit code that tells it from the
// command's own.
func notStarted(err error) error {
	var cannot *cannotRunError
	switch {
	case errors.As(err, &cannot) && cannot.missing():
		return cli.WithCode(cli.ExitNotFound, err)
	case errors.As(err, &cannot):
		return cli.WithCode(cli.ExitNotExecutable, err)
	}
	return cli.WithCode(cli.ExitNotStarted, err)
}

// job is a command that waits to be let go.
type job struct {
	name    string
	command *exec.Cmd
	gate    *os.File // a byte lets the command go
	report  *os.File // what exec said, nothing if it went well
	done    chan struct{}
	started atomic.Bool
	execErr error // what kept the command from starting
}

// newJob makes the process of a command, whose environment is ours and what is given.
func newJob(args, environment []string) (*job, error) {
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
	command := exec.Command(self, append([]string{GateCommand, limitsArgument(), path}, args...)...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), environment...)
	command.ExtraFiles = []*os.File{gateRead, reportWrite}
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", args[0], err), gate.Close(), report.Close())
	}
	j := &job{name: args[0], command: command, gate: gate, report: report, done: make(chan struct{})}
	go func() { command.Wait(); close(j.done) }()
	return j, nil
}

// cannotRunError is one sentence about a command that does not start.
type cannotRunError struct {
	name string
	err  error
}

func cannotRun(name string, err error) error { return &cannotRunError{name, err} }

func (e *cannotRunError) Unwrap() error { return e.err }

func (e *cannotRunError) missing() bool {
	return errors.Is(e.err, exec.ErrNotFound) || errors.Is(e.err, fs.ErrNotExist)
}

func (e *cannotRunError) Error() string {
	switch {
	case e.missing():
		return fmt.Sprintf("cannot run %s: there is no such command", e.name)
	case errors.Is(e.err, fs.ErrPermission):
		return fmt.Sprintf("cannot run %s: it is not an executable file, or may not be executed", e.name)
	}
	return fmt.Sprintf("cannot run %s: %v", e.name, cause(e.err))
}

// start lets the command go.
func (j *job) start() error {
	j.started.Store(true)
	_, err := j.gate.Write([]byte{1})
	if err = errors.Join(err, j.gate.Close()); err != nil {
		return fmt.Errorf("starting %s: %w", j.name, err)
	}
	return nil
}

// abandon ends a command that was never let go.
func (j *job) abandon() {
	if !j.started.Load() {
		j.gate.Close()
		<-j.done
	}
	j.report.Close()
}

// execError is what kept the command from starting, nil if nothing did.
func (j *job) execError() error {
	if errno, ok := readErrno(j.report); ok && j.execErr == nil {
		j.execErr = cannotRun(j.name, errno)
	}
	return j.execErr
}

// end waits for the command and returns its exit code. A recording that failed is an error of ours only
// if one is required: the command did its work.
func (j *job) end(recordErr error, required bool) error {
	if recordErr != nil && !required {
		fmt.Fprintf(os.Stderr, "%s: %s\n", filepath.Base(os.Args[0]), printable.Lines(recordErr.Error()))
	}
	code := j.wait()
	if recordErr != nil && required {
		return cli.WithCode(cli.ExitNotStarted, fmt.Errorf("%w; the command's exit code was %d, and --require-recording makes it %d",
			recordErr, code, cli.ExitNotStarted))
	}
	return cli.WithCode(code, nil)
}

// wait waits for the command as a shell does: an interrupt is the command's to handle, and SIGTERM, which
// a supervisor sends to ebpfprof alone, is passed on.
func (j *job) wait() int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	for {
		select {
		case <-j.done:
			return signalExitCode(j.command.ProcessState)
		case s := <-signals:
			if s == syscall.SIGTERM {
				j.command.Process.Signal(s)
			}
		}
	}
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
	code := signalExitCode(j.command.ProcessState)
	s.jobState, s.JobExitCode = j.command.ProcessState.String(), &code
}
