// Package loop has C programs make one call over and over, and say how long it took: what
// a probe costs, without a job around it.
package loop

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/recording"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
)

// Loop is a stub job in a loop, which makes its launches when it is told to.
type Loop struct {
	*exec.Cmd
	in   io.Writer
	out  *bufio.Scanner
	Tell string // what has it make its launches
	// directory of its own with copies of program and library, if it has one.
	directory string
}

// Stubs is where make puts the stub libraries and jobs.
var Stubs = filepath.Join("testdata", "stubs", "build")

func buildStubs() error {
	if out, err := exec.Command("make", "-s", "-C", filepath.Join("testdata", "stubs")).CombinedOutput(); err != nil {
		return fmt.Errorf("building the stubs: %w\n%s", err, out)
	}
	return nil
}

func Start(program ...string) (*Loop, error) {
	if err := buildStubs(); err != nil {
		return nil, err
	}
	return StartTold(program...)
}

// StartTold starts a job that works when it is told to, and says how long that took.
func StartTold(program ...string) (*Loop, error) {
	line := append([]string{"-c", strconv.Itoa(setup.JobCore)}, program...)
	j := &Loop{Cmd: exec.Command("taskset", line...), Tell: "go"}
	j.Env = append(os.Environ(), "STUB_INSTANT=1")
	var err error
	if j.in, err = j.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.out = bufio.NewScanner(out)
	if err := j.Start(); err != nil {
		return nil, err
	}
	j.out.Scan() // ready
	return j, nil
}

// Once has the job make its launches; it returns ns a launch.
func (j *Loop) Once() (float64, error) {
	if _, err := io.WriteString(j.in, j.Tell+"\n"); err != nil {
		return 0, err
	}
	if !j.out.Scan() {
		return 0, fmt.Errorf("the stub job ended: %w", j.out.Err())
	}
	return strconv.ParseFloat(strings.TrimSuffix(j.out.Text(), " ns"), 64)
}

func (j *Loop) End() {
	j.Process.Kill()
	j.Wait()
	if j.directory != "" {
		os.RemoveAll(j.directory)
	}
}

// Traced runs something while a session records the calls of the job.
func (j *Loop) Traced(run func() error) (tracer.Stats, error) {
	return recording.Traced(tracer.Options{PIDs: []int{j.Process.Pid}, Filter: filter.OfGroups("cuda"), Budget: tracer.Unlimited}, 0, run)
}

// StartOwn starts a stub job on a copy of its library, which no other
// process maps: its probes are the only ones there.
func StartOwn() (*Loop, error) {
	if err := buildStubs(); err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp("", "ebpfprof-bench-")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"cudacalls", launchLibrary} {
		content, failed := os.ReadFile(filepath.Join(Stubs, name))
		err = errors.Join(err, failed, os.WriteFile(filepath.Join(directory, name), content, 0o755))
	}
	var j *Loop
	if err == nil {
		j, err = Start(filepath.Join(directory, "cudacalls"), "loop", strconv.Itoa(TurnLaunches))
	}
	if err != nil {
		os.RemoveAll(directory)
		return nil, err
	}
	j.directory = directory
	return j, nil
}

// TurnLaunches is how many launches of its own a job makes when it is told to.
const TurnLaunches = 2000
