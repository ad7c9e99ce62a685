package demo

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed train.py
var program []byte

const (
	// starting bounds the wait for the job's first steps: importing torch from a cold disk takes minutes.
	starting = 5 * time.Minute
	// afterwards is how much longer than the recording the job runs if nobody ends it.
	afterwards = 2 * time.Minute
)

// job is the training job as a child process.
type job struct {
	command *exec.Cmd
	once    sync.Once
}

func (j *job) pid() int { return j.command.Process.Pid }

// stop ends the job.
func (j *job) stop() {
	j.once.Do(func() {
		_ = j.command.Process.Kill()
		_ = j.command.Wait()
	})
}

// start starts the job and waits until it is warm. Its program stays beside the dataset, for whoever looks up a line.
func (d *demo) start(ctx context.Context, python interpreter) (*job, error) {
	dir, err := filepath.Abs(d.output + "-job")
	if err != nil {
		return nil, fmt.Errorf("writing the job's program: %w", err)
	}
	path := filepath.Join(dir, "train.py")
	if err := d.asUser(ctx, bytes.NewReader(program), "sh", "-c", `mkdir -p -- "$1" && cat >"$1/train.py"`, "sh", dir); err != nil {
		return nil, fmt.Errorf("writing the job's program: %w", err)
	}
	seconds := (starting + d.duration + afterwards).Seconds()
	command := exec.CommandContext(ctx, python.path, path, strconv.Itoa(int(seconds)))
	command.Dir = dir
	d.user.On(command)
	var complaints strings.Builder
	command.Stderr = &complaints
	lines, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting the job: %w", err)
	}
	j := &job{command: command}
	warm := make(chan bool, 1)
	go func() {
		line, _ := bufio.NewReaderSize(lines, 64).ReadString('\n')
		warm <- line == "ready\n"
	}()
	select {
	case ok := <-warm:
		if ok {
			return j, nil
		}
		j.stop() // its complaints are complete then
		return nil, fmt.Errorf("the job did not start: %s", last(complaints.String()))
	case <-time.After(starting):
		j.stop()
		return nil, fmt.Errorf("the job made no step within %v", starting)
	case <-ctx.Done():
		j.stop()
		return nil, ctx.Err()
	}
}

// last is the last line of a text that has something in it: of a Python traceback, the exception.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
