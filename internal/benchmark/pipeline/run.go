package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/inventory"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/reference"
)

// InventoryItem is a fact of what a run had.
type InventoryItem = inventory.Item

// Runner runs cases. It records by calling a command of this program, as a user would.
type Runner struct {
	// Record is the command line that records what is appended to it into the directory that is put in the place of
	// OutputPlace: ebpfprof run --output … --.
	Record []string
	// Machine is what this machine is, the same for all runs.
	Machine inventory.Inventory
	// Say is called with what happens now; nil for no progress.
	Say func(format string, args ...any)
	// Keep: recordings stay in the store.
	Keep bool
}

// OutputPlace stands for the dataset's directory in Runner.Record.
const OutputPlace = "{dataset}"

// ErrAborted is returned when the user ended the benchmark.
var ErrAborted = errors.New("aborted")

// stageError is a failure of a stage that the outcome tells, as opposed to one of ours.
type stageError struct{ error }

func (e stageError) Unwrap() error { return e.error }

func failed(format string, args ...any) error { return stageError{fmt.Errorf(format, args...)} }

// Run takes a case through the stages. The outcome has what failed; an error is ErrAborted, or that nothing can be
// written.
func (r *Runner) Run(ctx context.Context, c *Case, place string, repeat, attempt int) (*Outcome, error) {
	o := &Outcome{Case: c, Repeat: repeat, Attempt: attempt, Begin: time.Now(), Place: place, Result: reference.Pass,
		Checked: map[string]Checked{}}
	x := &execution{runner: r, ctx: ctx, c: c, o: o}
	defer func() { o.End = time.Now() }()
	stages := []func() error{x.setup, x.build, x.run, x.sanity, x.performance}
	var err error
	for i, stage := range stages {
		if err = x.timed(stageNames[i], stage); err != nil {
			break
		}
	}
	cleaned := x.timed("cleanup", x.cleanup)
	if err == nil {
		err = cleaned
	}
	if ctx.Err() != nil {
		return o, ErrAborted
	}
	var of stageError
	if err != nil && !errors.As(err, &of) {
		return o, err
	}
	return o, nil
}

// execution is one run on its way.
type execution struct {
	runner *Runner
	ctx    context.Context
	c      *Case
	o      *Outcome
	peak   *float64 // MiB of the processes
}

// timed runs a stage, and has the outcome tell the first failure.
func (x *execution) timed(name string, stage func() error) error {
	began := time.Now()
	x.say("%s", name)
	err := stage()
	x.o.Stages = append(x.o.Stages, Stage{name, time.Since(began).Seconds()})
	if err != nil && x.o.Stage == "" {
		x.o.Stage, x.o.Reason = name, err.Error()
		if x.o.Result == reference.Pass {
			x.o.Result = reference.Fail
		}
	}
	return err
}

func (x *execution) say(format string, args ...any) {
	if x.runner.Say != nil {
		x.runner.Say(format, args...)
	}
}

func (x *execution) setup() error { return x.commands("setup", x.c.Setup) }
func (x *execution) build() error { return x.commands("build", x.c.Build) }

// cleanup runs also after a failure, and drops the recording if it is not kept.
func (x *execution) cleanup() error {
	err := x.commands("cleanup", x.c.Cleanup)
	if !x.runner.Keep && x.o.Recording != "" {
		err = errors.Join(err, os.RemoveAll(x.o.Recording))
		x.o.Recording = ""
	}
	return err
}

// commands runs the lines of a stage in a shell, one after the other, until one fails.
func (x *execution) commands(stage string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	log, err := os.Create(filepath.Join(x.o.Place, stage+".log"))
	if err != nil {
		return fmt.Errorf("keeping what stage %s prints: %w", stage, err)
	}
	defer log.Close()
	for _, line := range lines {
		command := exec.CommandContext(x.ctx, "/bin/sh", "-c", line)
		command.Dir, command.Env = x.c.Dir, x.environment()
		command.Stdout, command.Stderr = log, log
		if err := command.Run(); err != nil {
			return failed("%q failed: %w; what it printed is in %s", line, err, log.Name())
		}
	}
	return nil
}

// environment is this process's with the case's on top.
func (x *execution) environment() []string {
	env := os.Environ()
	for name, value := range x.c.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// lastLine is the last line with something in it.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
