package kernel

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// onCPUOf runs f on the CPU where a process ran last, so that putting probes in
// and taking them out stalls it less. For each site the kernel changes a page
// of the process and has every CPU that runs the process forget the old one: an
// interrupt of another CPU, which in a virtual machine costs some 30 µs, on both
// sides, thousands of times. On the process's own CPU there is nothing to
// interrupt: 5,900 sites stall a job of one thread 25 ms instead of 230, and
// are in after 50 ms instead of 270 (docs/overhead-appendix.md). Threads on other CPUs
// cost what they always did.
//
// Where that cannot be done, f runs all the same.
func onCPUOf(pid int, f func()) {
	cpu, err := lastCPU(pid)
	if err != nil {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, there unix.CPUSet
	if unix.SchedGetaffinity(0, &before) == nil {
		there.Set(cpu)
		if unix.SchedSetaffinity(0, &there) == nil {
			defer unix.SchedSetaffinity(0, &before)
		}
	}
	f()
}

// lastCPU is the CPU that the main thread of a process ran on last: field 39 of
// /proc/PID/stat, see proc_pid_stat(5).
func lastCPU(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, field 2, may have anything in it, a ')' too.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 37 {
		return 0, fmt.Errorf("/proc/%d/stat has too few fields", pid)
	}
	return strconv.Atoi(string(fields[36]))
}
