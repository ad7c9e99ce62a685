// Package watched measures what a recording costs jobs that do much of what it watches beside
// probes: they start processes, switch threads and wait for each other. Windows with and
// without a recording come in turn, and the job itself tells how long its steps are.
package watched

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
)

// Jobs are the kinds of jobs/watched.py.
var Jobs = []string{"starts", "threads", "switches"}

// Result is what a recording costs one job: shares, the median of the pairs of windows.
type Result struct {
	Job, Level string
	Neighbour  bool    // an idle process was recorded beside it
	Slower     float64 // of a step's time
	More       float64 // of a step's CPU time, which others on the machine change less
	Own        float64 // of a CPU, the tracer's
	Pairs      []float64
}

// step is one of the job's own rows.
type step struct{ at, took, cpu float64 }

// window is what the steps of a window took on average.
type window struct{ took, cpu float64 }

// Measure records a job in turn with windows without a recording.
func Measure(s setup.Settings, python, job, level string, neighbour bool) (*Result, error) {
	command := exec.Command(python, filepath.Join("internal", "dev", "bench", "jobs", "watched.py"), job)
	stdin, _ := command.StdinPipe()
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", job, err)
	}
	defer command.Wait()
	defer stdin.Close()
	target := command.Process.Pid
	if neighbour {
		idle := exec.Command("sleep", "infinity")
		if err := idle.Start(); err != nil {
			return nil, err
		}
		defer idle.Wait()
		defer idle.Process.Kill()
		target = idle.Process.Pid
	}
	steps := make(chan step, 1<<16)
	go read(stdout, steps)
	if _, ok := <-steps; !ok {
		return nil, fmt.Errorf("%s did not begin", job)
	}
	r := &Result{Job: job, Level: level, Neighbour: neighbour}
	var more, own []float64
	for range s.Rounds {
		off := collect(steps, s.Long)
		took, err := record(target, level, s.Long)
		if err != nil {
			return nil, err
		}
		on := collect(steps, took.during)
		<-took.done
		if off.took == 0 || on.took == 0 {
			return nil, errors.New("a window without a step")
		}
		r.Pairs = append(r.Pairs, on.took/off.took-1)
		more, own = append(more, on.cpu/off.cpu-1), append(own, took.cpu())
	}
	r.Slower, r.More, r.Own = median(r.Pairs), median(more), median(own)
	return r, nil
}

// read hands on what the job prints.
func read(from io.Reader, to chan<- step) {
	defer close(to)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var s step
		if _, err := fmt.Sscan(lines.Text(), &s.at, &s.took, &s.cpu); err == nil {
			to <- s
		}
	}
}

// collect takes the steps of some time; what came before is left out.
func collect(steps <-chan step, during time.Duration) (w window) {
	for len(steps) > 0 {
		<-steps
	}
	over := time.After(during)
	var first, last step
	n := 0.0
	for {
		select {
		case s, ok := <-steps:
			switch {
			case !ok:
				return window{}
			case n == 0:
				first = s
			}
			last = s
			n++
		case <-over:
			if n < 2 {
				return window{}
			}
			return window{(last.at - first.at) / (n - 1), (last.cpu - first.cpu) / (n - 1)}
		}
	}
}

// recording is one that goes on.
type recording struct {
	command *exec.Cmd
	begun   time.Time
	during  time.Duration
	done    chan struct{}
	ended   time.Time
}

// attaching is how long the beginning of a recording is left out.
const attaching = 2 * time.Second

func record(pid int, level string, during time.Duration) (*recording, error) {
	dir, err := os.MkdirTemp("", "ebpfprof-bench-")
	if err != nil {
		return nil, err
	}
	r := &recording{begun: time.Now(), during: during - attaching/2, done: make(chan struct{})}
	r.command = exec.Command(filepath.Join("bin", "ebpfprof"), "attach", "--pid", strconv.Itoa(pid), "--level", level,
		"--duration", during.String(), "--output", filepath.Join(dir, "dataset"), "--no-verdict", "--quiet")
	if err := r.command.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("recording: %w", err)
	}
	go func() {
		defer close(r.done)
		r.command.Wait()
		r.ended = time.Now()
		os.RemoveAll(dir)
	}()
	time.Sleep(attaching)
	return r, nil
}

// cpu is how much of a CPU the recording took, its beginning and end with it.
func (r *recording) cpu() float64 {
	state := r.command.ProcessState
	return float64(state.UserTime()+state.SystemTime()) / float64(r.ended.Sub(r.begun))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
