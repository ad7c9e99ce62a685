package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Names of what a run leaves behind.
const (
	stdoutName    = "stdout"
	stderrName    = "stderr"
	recordingName = "recording"
)

// exitNotStarted is the recorder's exit code where the job never ran.
const exitNotStarted = 125

// grace is how long a job may take to end after it was asked to.
const grace = 10 * time.Second

// run starts the job under the recorder and waits for it.
func (x *execution) run() error {
	stdout, err := os.Create(filepath.Join(x.o.Place, stdoutName))
	if err != nil {
		return fmt.Errorf("keeping what the job prints: %w", err)
	}
	defer stdout.Close()
	stderr, err := os.Create(filepath.Join(x.o.Place, stderrName))
	if err != nil {
		return fmt.Errorf("keeping what the job prints: %w", err)
	}
	defer stderr.Close()
	recording := filepath.Join(x.o.Place, recordingName)
	line := make([]string, 0, len(x.runner.Record)+len(x.c.Command))
	for _, word := range x.runner.Record {
		line = append(line, strings.ReplaceAll(word, OutputPlace, recording))
	}
	line = append(line, x.c.Command...)
	command := exec.Command(line[0], line[1:]...)
	command.Dir, command.Env = x.c.Dir, x.environment()
	command.Stdout, command.Stderr = stdout, stderr
	if err := command.Start(); err != nil {
		return failed("starting the recorder: %w", err)
	}
	timedOut, err := x.wait(command)
	code := command.ProcessState.ExitCode()
	if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	x.o.ExitCode = &code
	if info, e := os.Stat(recording); e == nil && info.IsDir() {
		x.o.Recording = recording
	}
	switch {
	case x.ctx.Err() != nil:
		return ErrAborted
	case timedOut:
		return failed("the time limit of %v was over", x.c.TimeLimit)
	case code == exitNotStarted && x.o.Recording == "":
		return failed("the job was not started: %s", tail(stderr.Name()))
	case err != nil && !isExit(err):
		return failed("waiting for the recorder: %w", err)
	}
	return nil
}

func isExit(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit)
}

// wait waits for the recorder's end, which is the job's, and looks at the job's memory meanwhile. At the time limit and
// when the user ends the benchmark the recorder is asked to end, and hands that on to the job.
func (x *execution) wait(command *exec.Cmd) (timedOut bool, err error) {
	ctx := x.ctx
	if x.c.TimeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.c.TimeLimit)
		defer cancel()
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	memory := newMemory(command.Process.Pid)
	began := time.Now()
	tick := time.NewTicker(memoryPeriod)
	defer tick.Stop()
	defer func() { x.peak = memory.peakMiB() }()
	over := ctx.Done()
	var kill <-chan time.Time
	for {
		select {
		case err := <-done:
			return timedOut, err
		case <-tick.C:
			memory.look()
			x.say("run: %d s", int(time.Since(began).Seconds()))
		case <-over:
			over, timedOut = nil, x.ctx.Err() == nil
			command.Process.Signal(syscall.SIGTERM)
			kill = time.After(grace)
		case <-kill:
			// The job ignores the request: it and what it started are ended, and the recorder then ends by itself.
			memory.look()
			for _, pid := range memory.pids() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			kill = time.After(grace)
		}
	}
}

// tail is the last line of a file, for a sentence.
func tail(name string) string {
	text, err := readEnd(name, 4096)
	if err != nil || strings.TrimSpace(text) == "" {
		return "it printed no reason"
	}
	return lastLine(text)
}

// readEnd reads at most n bytes from the end of a file.
func readEnd(name string, n int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > n {
		if _, err := f.Seek(-n, io.SeekEnd); err != nil {
			return "", err
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, n))
	return string(text), err
}
