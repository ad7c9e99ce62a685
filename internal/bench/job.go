package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// job is a training loop that runs until it is stopped (jobs/conduct.py).
type job struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	report  string
	pid     int
	step    time.Duration // the last one of the warm-up
	twin    *job          // untraced, on the same core, or nil (twin.go)
	files   string        // of a twin: the directory of its own copies
}

func startJob(python interpreter, script string, options ...string) (*job, error) {
	return startJobOn(onJobCore, python, script, options...)
}

// startJobOn gives the job some cores, as taskset counts them.
func startJobOn(cores string, python interpreter, script string, options ...string) (*job, error) {
	return startJobBy(nil, cores, python, script, options...)
}

// startJobBy has another command start the job.
func startJobBy(prefix []string, cores string, python interpreter, script string, options ...string) (*job, error) {
	report, err := os.CreateTemp("", "ebpfprof-bench-steps-")
	if err != nil {
		return nil, err
	}
	report.Close()
	j, err := startCommand(slices.Concat(prefix, []string{"taskset", "-c", cores, python.path, filepath.Join("internal", "bench", "jobs", "conduct.py"), script, report.Name()}, options)...)
	if err != nil {
		os.Remove(report.Name())
		return nil, fmt.Errorf("starting %s: %w", script, err)
	}
	j.report = report.Name()
	return j, nil
}

// startCommand waits until the job says "ready", its pid and how long a step takes, nanoseconds.
func startCommand(argv ...string) (j *job, err error) {
	j = &job{command: exec.Command(argv[0], argv[1:]...)}
	if j.in, err = j.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.out = bufio.NewScanner(out)
	if err := j.command.Start(); err != nil {
		return nil, err
	}
	for j.out.Scan() {
		if words, ok := strings.CutPrefix(j.out.Text(), "ready "); ok {
			_, err := fmt.Sscan(words, &j.pid, (*int64)(&j.step))
			return j, err
		}
	}
	return nil, fmt.Errorf("it did not get ready: %w", j.command.Wait())
}

// tell gives a command and waits until the job has obeyed.
func (j *job) tell(command string) error {
	if _, err := fmt.Fprintln(j.in, command); err != nil {
		return fmt.Errorf("telling the job to %s: %w", command, err)
	}
	for j.out.Scan() {
		if j.out.Text() == command {
			return nil
		}
	}
	return fmt.Errorf("the job ended before it obeyed %q", command)
}

// step is one training step.
type step struct{ start, duration, cpu int64 }

func (s step) end() int64 { return s.start + s.duration }

// stop ends the job and its twin and reads their steps.
func (j *job) stop() (a against, err error) {
	if a.own, err = j.quit(); err == nil && j.twin != nil {
		a.twin, err = j.twin.quit()
	}
	return a, err
}

func (j *job) quit() (steps, error) {
	defer os.Remove(j.report)
	if err := j.tell("quit"); err != nil {
		return nil, err
	}
	if err := j.command.Wait(); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(j.report)
	if err != nil {
		return nil, err
	}
	var all steps
	word := func(i int) int64 { return int64(binary.NativeEndian.Uint64(b[8*i:])) }
	for ; len(b) >= 24; b = b[24:] {
		all = append(all, step{word(0), word(1), word(2)})
	}
	return all, nil
}

// kill ends a job whose steps nobody wants.
func (j *job) kill() {
	j.killTwin()
	j.in.Close()
	j.command.Process.Kill()
	j.command.Wait()
	os.Remove(j.report)
}

// steps are in the order of time.
type steps []step

// in returns the steps that lie wholly within an interval.
func (s steps) in(from, to int64) steps {
	first, _ := slices.BinarySearchFunc(s, from, func(s step, t int64) int { return compare(s.start, t) })
	last := first
	for last < len(s) && s[last].end() <= to {
		last++
	}
	return s[first:last]
}

// touching returns the steps that overlap an interval.
func (s steps) touching(from, to int64) steps {
	first, _ := slices.BinarySearchFunc(s, from, func(s step, t int64) int { return compare(s.end(), t) })
	last := first
	for last < len(s) && s[last].start < to {
		last++
	}
	return s[first:last]
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// median is the median step time, nanoseconds.
func (s steps) median() float64 {
	var durations []float64
	for _, x := range s {
		durations = append(durations, float64(x.duration))
	}
	return median(durations)
}

// medianCPU is the median CPU time of a step, nanoseconds: what others run on
// the core is not in it.
func (s steps) medianCPU() float64 {
	var used []float64
	for _, x := range s {
		used = append(used, float64(x.cpu))
	}
	return median(used)
}

// meanCPU is the mean CPU time of a step, nanoseconds.
func (s steps) meanCPU() float64 {
	sum := 0.0
	for _, x := range s {
		sum += float64(x.cpu)
	}
	return sum / float64(max(1, len(s)))
}

// mean is the mean step time, nanoseconds.
func (s steps) mean() float64 {
	sum := 0.0
	for _, x := range s {
		sum += float64(x.duration)
	}
	return sum / float64(max(1, len(s)))
}

// excess is how much longer than usual the steps took together.
func (s steps) excess(usual float64) float64 {
	return (s.mean() - usual) * float64(len(s))
}
