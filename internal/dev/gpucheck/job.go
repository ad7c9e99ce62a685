package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// told is what a job says of what it did between two moments.
type told struct {
	BeginNS int64   `json:"begin_ns"` // CLOCK_MONOTONIC
	EndNS   int64   `json:"end_ns"`
	Seconds float64 `json:"seconds"`

	Launches      map[string]int64  `json:"launches"` // by the kernel's name
	Copies        int64             `json:"copies"`
	GraphLaunches int64             `json:"graph_launches"`
	Collectives   map[string]int64  `json:"collectives"`
	Versions      map[string]string `json:"versions"`
}

// patience is how long a job may take to get ready, and to end.
const patience = 5 * time.Minute

// job is a process that waits for a line once it is ready, does its work, and
// tells what that was in its last line of output.
type job struct {
	*exec.Cmd
	in    io.WriteCloser
	lines chan string
	errs  bytes.Buffer
}

func startJob(environment []string, argv ...string) (*job, error) {
	j := &job{Cmd: exec.Command(argv[0], argv[1:]...), lines: make(chan string, 16)}
	j.Env = append(os.Environ(), environment...)
	j.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	j.Stderr = &j.errs
	var err error
	if j.in, err = j.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := j.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", argv[0], err)
	}
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			j.lines <- lines.Text()
		}
		close(j.lines)
	}()
	return j, nil
}

// line waits for a line of output that begins so.
func (j *job) line(prefix string) (string, error) {
	timeout := time.After(patience)
	for {
		select {
		case line, open := <-j.lines:
			if !open {
				j.Wait()
				return "", fmt.Errorf("%s ended without %q: %s", j.Args[0], prefix, lastLines(j.errs.String()))
			}
			if strings.HasPrefix(line, prefix) {
				return line, nil
			}
		case <-timeout:
			return "", fmt.Errorf("%s: no %q in %s", j.Args[0], prefix, patience)
		}
	}
}

func (j *job) ready() error {
	_, err := j.line("ready ")
	return err
}

func (j *job) goOn() error {
	_, err := io.WriteString(j.in, "\n")
	return err
}

// tells waits for what the job did.
func (j *job) tells() (*told, error) {
	line, err := j.line(`{"told"`)
	if err != nil {
		return nil, err
	}
	var outer struct{ Told *told }
	if err := json.Unmarshal([]byte(line), &outer); err != nil || outer.Told == nil {
		return nil, fmt.Errorf("%s told %.100q: %w", j.Args[0], line, errors.Join(err, errNotTold))
	}
	return outer.Told, nil
}

var errNotTold = errors.New("that is not what a job tells")

// end lets the job go, or kills it.
func (j *job) end() {
	j.in.Close()
	done := make(chan struct{})
	go func() { j.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		syscall.Kill(-j.Process.Pid, syscall.SIGKILL)
		<-done
	}
}

func lastLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " / ")
}
