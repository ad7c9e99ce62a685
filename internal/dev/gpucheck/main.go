// Gpucheck runs real GPU work under the tracer, on a machine with an NVIDIA GPU,
// and compares what was recorded with what the work says of itself: launch by
// launch with torch.profiler. It writes docs/gpu-check.json.
//
//	gpucheck [--output FILE] [--python PYTHON] [--stub DIRECTORY]
//
// It needs nothing but itself, root and the machine's own Python with PyTorch.
// With --stub the work is a program on the stub libcuda of that directory, and
// the report says that it is: it checks this program, no hardware.
//
// Exit status: 0 all agrees, 1 something does not, 2 wrong usage, 3 no GPU here,
// 4 this machine lets nobody trace.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ebpfprof/ebpfprof/tracer/features"
)

const (
	exitDisagrees = 1
	exitUsage     = 2
	exitNoGPU     = 3
	exitRefused   = 4
)

// Version is set by the build.
var Version = "development"

const reportPath = "docs/gpu-check.json"

type options struct {
	output, python, stub string
	steps                int
}

func main() {
	var o options
	flag.StringVar(&o.output, "output", "", "write the report to `FILE` (default "+reportPath+"; a stub's nowhere)")
	flag.StringVar(&o.python, "python", "", "the `PYTHON` that has PyTorch (default: the first of the usual ones)")
	flag.StringVar(&o.stub, "stub", "", "no GPU: the programs on the stub libcuda in `DIRECTORY`")
	flag.IntVar(&o.steps, "steps", 50, "training steps to compare")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "gpucheck:", err)
		os.Exit(exitCode(err))
	}
}

var (
	errNoGPU     = errors.New("no NVIDIA GPU on this machine")
	errUsage     = errors.New("wrong usage")
	errDisagrees = errors.New("what was recorded is not what happened")
)

func exitCode(err error) int {
	switch {
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errNoGPU):
		return exitNoGPU
	case errors.Is(err, features.ErrNotPermitted), errors.Is(err, features.ErrUnsupported):
		return exitRefused
	}
	return exitDisagrees
}

func run(o options) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("%w: %q: it takes no arguments", errUsage, flag.Arg(0))
	}
	if o.stub != "" && o.output != "" && isReport(o.output) {
		return fmt.Errorf("%w: %s is for what a GPU did, not a stub", errUsage, reportPath)
	}
	if o.stub == "" && o.output == "" {
		o.output = reportPath
	}
	machine, err := look(o)
	if err != nil {
		return err
	}
	if err := mayTrace(); err != nil {
		return err
	}
	r := newReport(machine)
	for _, c := range checks(o, machine) {
		result := c.run(o)
		r.Checks = append(r.Checks, result)
		fmt.Fprintln(os.Stderr, result.line())
	}
	if err := r.write(o.output); err != nil {
		return err
	}
	if !r.Agrees {
		return errDisagrees
	}
	return nil
}

func isReport(path string) bool {
	a, errA := filepath.Abs(path)
	b, errB := filepath.Abs(reportPath)
	return errA == nil && errB == nil && a == b
}

// mayTrace asks for everything that tracing needs before any work is started.
func mayTrace() error {
	for _, check := range []func() error{features.CheckKillSwitch, features.CheckNamespaces, features.CheckPermitted} {
		if err := check(); err != nil {
			return fmt.Errorf("this machine does not let gpucheck trace: %w", err)
		}
	}
	if err := features.Probe().Check(); err != nil {
		return fmt.Errorf("this machine does not let gpucheck trace: %w", err)
	}
	return nil
}
