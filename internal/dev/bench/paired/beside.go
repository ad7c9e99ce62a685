package paired

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
)

// Beside is another program that looks at the job while it runs, ended by
// Ctrl-C. Where it is not installed the treatment has no start.
func Beside(name string, w, settle time.Duration, argv ...string) Treatment {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		setup.Say("no %s here: it is left out", argv[0])
		return Treatment{name: name}
	}
	var command *exec.Cmd
	var said bytes.Buffer
	return Treatment{
		name: name, window: w, settle: settle,
		Start: func() error {
			said.Reset()
			command = exec.Command(path, argv[1:]...)
			command.Stdout, command.Stderr = &said, &said
			if err := command.Start(); err != nil {
				return fmt.Errorf("starting %s: %w", argv[0], err)
			}
			return nil
		},
		stop: func() error {
			command.Process.Signal(os.Interrupt)
			err := command.Wait()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return err
			}
			// perf ends as if the signal had killed it.
			if err != nil && !exit.Sys().(interface{ Signaled() bool }).Signaled() {
				return fmt.Errorf("%s: %w: %s", argv[0], err, strings.TrimSpace(said.String()))
			}
			return nil
		},
		cpu: func() (float64, error) { return cpuTimeOf(command.Process.Pid) },
	}
}

// cpuTimeOf is what all threads of a process have used, seconds.
func cpuTimeOf(pid int) (float64, error) {
	// CPUCLOCK_SCHED of a process: include/linux/posix-timers.h.
	clock := int32(^pid<<3 | 2)
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("reading the processor time of pid %d, which should be running: %w", pid, err)
	}
	return float64(t.Nano()) / 1e9, nil
}
