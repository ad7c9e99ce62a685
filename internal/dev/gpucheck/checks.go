package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// The work: scripts for the machine's own Python, a program for its nvcc.
var (
	//go:embed jobs/train.py
	trainScript string
	//go:embed jobs/nccl.py
	ncclScript string
	//go:embed jobs/launches.cu
	staticProgram string
)

// check is one piece of work.
type check struct {
	name    string
	skipped string // why it cannot run here
	argv    func(dir string, o options) ([]string, error)
	// timed is the same work without a profiler, to measure what tracing costs it.
	timed func(dir string, o options) ([]string, error)
}

func checks(o options, m *machine) []check {
	if m.Stub {
		program := func(mode string) func(string, options) ([]string, error) {
			return func(_ string, o options) ([]string, error) {
				return []string{filepath.Join(o.stub, "trainstep"), strconv.Itoa(o.steps), mode}, nil
			}
		}
		return []check{
			{name: "stub-training", argv: program("step"), timed: program("step")},
			{name: "stub-graph", argv: program("graph")},
		}
	}
	script := func(name, text string, args ...string) func(string, options) ([]string, error) {
		return func(dir string, o options) ([]string, error) {
			path := filepath.Join(dir, name)
			return append([]string{m.python, path, strconv.Itoa(o.steps)}, args...), os.WriteFile(path, []byte(text), 0o600)
		}
	}
	torch, nccl, nvcc := "", "", ""
	if m.python == "" {
		torch = "no Python here has a PyTorch that sees the GPU (--python names one)"
		nccl = torch
	} else if m.GPUs < 2 {
		nccl = "it takes two GPUs"
	}
	if _, err := exec.LookPath("nvcc"); err != nil {
		nvcc = "there is no nvcc"
	}
	return []check{
		{"training", torch, script("train.py", trainScript, "profile"), script("train.py", trainScript, "time")},
		{"graph", torch, script("train.py", trainScript, "graph"), nil},
		{"nccl", nccl, script("nccl.py", ncclScript), nil},
		{"static-runtime", nvcc, compiled, nil},
	}
}

// compiled builds the CUDA program, with the runtime library linked into it.
func compiled(dir string, o options) ([]string, error) {
	source, program := filepath.Join(dir, "launches.cu"), filepath.Join(dir, "launches")
	if err := os.WriteFile(source, []byte(staticProgram), 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command("nvcc", "-cudart", "static", "-o", program, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("nvcc: %w: %s", err, lastLines(string(out)))
	}
	return []string{program, strconv.Itoa(o.steps)}, nil
}

func (c *check) run(o options) *result {
	r := &result{Name: c.name, Skipped: c.skipped}
	if r.Skipped != "" {
		return r
	}
	dir, err := os.MkdirTemp("", "gpucheck-")
	if err == nil {
		defer os.RemoveAll(dir)
		r.Told, r.Recorded, err = c.once(c.argv, dir, o, true)
	}
	if err == nil {
		r.compare()
		if c.timed != nil {
			r.OverheadPercent, err = c.overhead(dir, o)
		}
	}
	if err != nil {
		r.Failed, r.Agrees = err.Error(), false
	}
	return r
}

// once runs the work, traced or not.
func (c *check) once(line func(string, options) ([]string, error), dir string, o options, traced bool) (*told, *seen, error) {
	argv, err := line(dir, o)
	if err != nil {
		return nil, nil, err
	}
	j, err := startJob(nil, argv...)
	if err != nil {
		return nil, nil, err
	}
	defer j.end()
	if err := j.ready(); err != nil {
		return nil, nil, err
	}
	if traced {
		return recorded(j)
	}
	if err := j.goOn(); err != nil {
		return nil, nil, err
	}
	t, err := j.tells()
	return t, nil, err
}

// pairs is how often the work is timed without and with the tracer, in turns.
const pairs = 3

// overhead is the median of the pairs.
func (c *check) overhead(dir string, o options) (*float64, error) {
	var percent []float64
	for range pairs {
		without, _, err := c.once(c.timed, dir, o, false)
		if err != nil {
			return nil, err
		}
		with, _, err := c.once(c.timed, dir, o, true)
		if err != nil {
			return nil, err
		}
		if without.Seconds <= 0 {
			return nil, errors.New("the work took no time")
		}
		percent = append(percent, 100*(with.Seconds/without.Seconds-1))
	}
	m := median(percent)
	return &m, nil
}
