package paired

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
)

// Job is a training loop that runs until it is stopped (jobs/conduct.py).
type Job struct {
	Command *exec.Cmd
	In      io.WriteCloser
	Out     *bufio.Scanner
	report  string
	Pid     int
	Step    time.Duration // the last one of the warm-up
	twin    *Job          // untraced, on the same core, or nil (twin.go)
	files   string        // of a twin: the directory of its own copies
}

func Start(python setup.Interpreter, script string, options ...string) (*Job, error) {
	return StartOn(setup.OnJobCore, python, script, options...)
}

// StartOn gives the job some cores, as taskset counts them.
func StartOn(cores string, python setup.Interpreter, script string, options ...string) (*Job, error) {
	return startBy(nil, cores, python, script, options...)
}

// startBy has another command start the job.
func startBy(prefix []string, cores string, python setup.Interpreter, script string, options ...string) (*Job, error) {
	report, err := os.CreateTemp("", "ebpfprof-bench-steps-")
	if err != nil {
		return nil, err
	}
	report.Close()
	j, err := StartCommand(slices.Concat(prefix, []string{"taskset", "-c", cores, python.Path, filepath.Join("internal", "dev", "bench",
		"jobs", "conduct.py"), script, report.Name()}, options)...)
	if err != nil {
		os.Remove(report.Name())
		return nil, fmt.Errorf("starting %s: %w", script, err)
	}
	j.report = report.Name()
	return j, nil
}

// StartCommand waits until the job says "ready", its pid and how long a step takes, nanoseconds.
func StartCommand(argv ...string) (j *Job, err error) {
	j = &Job{Command: exec.Command(argv[0], argv[1:]...)}
	if j.In, err = j.Command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.Command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.Out = bufio.NewScanner(out)
	if err := j.Command.Start(); err != nil {
		return nil, err
	}
	for j.Out.Scan() {
		if words, ok := strings.CutPrefix(j.Out.Text(), "ready "); ok {
			_, err := fmt.Sscan(words, &j.Pid, (*int64)(&j.Step))
			return j, err
		}
	}
	return nil, fmt.Errorf("it did not get ready: %w", j.Command.Wait())
}

// tell gives a command and waits until the job has obeyed.
func (j *Job) tell(command string) error {
	if _, err := fmt.Fprintln(j.In, command); err != nil {
		return fmt.Errorf("telling the job to %s: %w", command, err)
	}
	for j.Out.Scan() {
		if j.Out.Text() == command {
			return nil
		}
	}
	return fmt.Errorf("the job ended before it obeyed %q", command)
}

// Step is one training step.
type Step struct{ start, Duration, cpu int64 }

func (s Step) End() int64 { return s.start + s.Duration }

// Stop ends the job and its twin and reads their steps.
func (j *Job) Stop() (a Against, err error) {
	if a.Own, err = j.quit(); err == nil && j.twin != nil {
		a.twin, err = j.twin.quit()
	}
	return a, err
}

func (j *Job) quit() (Steps, error) {
	defer os.Remove(j.report)
	if err := j.tell("quit"); err != nil {
		return nil, err
	}
	if err := j.Command.Wait(); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(j.report)
	if err != nil {
		return nil, err
	}
	var all Steps
	word := func(i int) int64 { return int64(binary.NativeEndian.Uint64(b[8*i:])) }
	for ; len(b) >= 24; b = b[24:] {
		all = append(all, Step{word(0), word(1), word(2)})
	}
	return all, nil
}

// Kill ends a job whose steps are not needed.
func (j *Job) Kill() {
	j.killTwin()
	j.In.Close()
	j.Command.Process.Kill()
	j.Command.Wait()
	os.Remove(j.report)
}

// Steps are in the order of time.
type Steps []Step

// In returns the steps that lie wholly within an interval.
func (s Steps) In(from, to int64) Steps {
	first, _ := slices.BinarySearchFunc(s, from, func(s Step, t int64) int { return cmp.Compare(s.start, t) })
	last := first
	for last < len(s) && s[last].End() <= to {
		last++
	}
	return s[first:last]
}

// Touching returns the steps that overlap an interval.
func (s Steps) Touching(from, to int64) Steps {
	first, _ := slices.BinarySearchFunc(s, from, func(s Step, t int64) int { return cmp.Compare(s.End(), t) })
	last := first
	for last < len(s) && s[last].start < to {
		last++
	}
	return s[first:last]
}

// median is the median step time, nanoseconds.
func (s Steps) median() float64 {
	var durations []float64
	for _, x := range s {
		durations = append(durations, float64(x.Duration))
	}
	return figure.Median(durations)
}

// medianCPU is the median CPU time of a step, nanoseconds: what others run on
// the core is not in it.
func (s Steps) medianCPU() float64 {
	var used []float64
	for _, x := range s {
		used = append(used, float64(x.cpu))
	}
	return figure.Median(used)
}

// meanCPU is the mean CPU time of a step, nanoseconds.
func (s Steps) meanCPU() float64 {
	sum := 0.0
	for _, x := range s {
		sum += float64(x.cpu)
	}
	return sum / float64(max(1, len(s)))
}

// Mean is the mean step time, nanoseconds.
func (s Steps) Mean() float64 {
	sum := 0.0
	for _, x := range s {
		sum += float64(x.Duration)
	}
	return sum / float64(max(1, len(s)))
}

// Excess is how much longer than usual the steps took together.
func (s Steps) Excess(usual float64) float64 {
	return (s.Mean() - usual) * float64(len(s))
}
