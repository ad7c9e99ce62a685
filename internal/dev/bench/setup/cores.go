package setup

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The job runs on one core and everything of the tracer on the other, so that
// the decoder's work is not taken for the probes' price.
const (
	JobCore    = 0
	TracerCore = 1
)

// OnJobCore is jobCore as taskset takes it.
var OnJobCore = strconv.Itoa(JobCore)

func PinToTracerCore() error {
	if runtime.NumCPU() < 2 {
		return fmt.Errorf("one core: the job and the tracer need one each")
	}
	return pinTo(TracerCore)
}

// OnBothCores runs what no job runs beside, and pins the tracer again.
func OnBothCores(do func() error) error {
	if err := pinTo(TracerCore, JobCore); err != nil {
		return err
	}
	return errors.Join(do(), PinToTracerCore())
}

func pinTo(cores ...int) error {
	var set unix.CPUSet
	for _, core := range cores {
		set.Set(core)
	}
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("pinning the tracer: %w", err)
	}
	for _, e := range entries {
		tid, _ := strconv.Atoi(e.Name())
		if err := unix.SchedSetaffinity(tid, &set); err != nil && err != unix.ESRCH {
			return fmt.Errorf("pinning the tracer to cores %v: %w", cores, err)
		}
	}
	runtime.GOMAXPROCS(len(cores))
	return nil
}

// Monotonic is CLOCK_MONOTONIC, which the jobs stamp their steps with.
func Monotonic() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// cpuTime is what this process has used, seconds.
func CPUTime() float64 {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// LoadAverage is how many threads wanted to run, over the last minute.
func LoadAverage() float64 {
	b, _ := os.ReadFile("/proc/loadavg")
	var load float64
	fmt.Sscan(string(b), &load)
	return load
}

// Machine describes where this ran, in neutral words.
func Machine() string {
	var uts unix.Utsname
	unix.Uname(&uts)
	kernel := strings.SplitN(unix.ByteSliceToString(uts.Release[:]), ".", 3)
	kind := "machine"
	if b, _ := os.ReadFile("/proc/cpuinfo"); strings.Contains(string(b), " hypervisor ") {
		kind = "virtual machine"
	}
	return fmt.Sprintf("a %s with %d cores (%s), Linux %s", kind, runtime.NumCPU(), runtime.GOARCH,
		strings.Join(kernel[:min(2, len(kernel))], "."))
}
