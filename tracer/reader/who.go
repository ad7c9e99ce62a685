package reader

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// Whose a process is, and which of those that had its pid: by files of proc that wait for
// nothing.

// startOf is when a process began, in ticks since boot; 0 where it is gone.
func startOf(pid int) uint64 { return statOf(pid, 19) }

// usedBy is how much of a CPU a process has used, in user mode and in the kernel.
func usedBy(pid int) time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ, part of the ABI on x86-64 and arm64
	return time.Duration(statOf(pid, 11)+statOf(pid, 12)) * tick
}

// statOf is a number of /proc/PID/stat by its place behind the name (proc_pid_stat(5)), 0 where there is none.
func statOf(pid, field int) (value uint64) {
	text, err := procfile.Read("/proc/"+strconv.Itoa(pid)+"/stat", 4096)
	if err != nil {
		return 0
	}
	if fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])); len(fields) > field {
		value, _ = strconv.ParseUint(fields[field], 10, 64)
	}
	return value
}

// nobody is the user of a process that is gone.
const nobody = ^uint32(0)

func userOf(pid int) uint32 {
	text, err := procfile.Read("/proc/"+strconv.Itoa(pid)+"/status", 0)
	if err != nil {
		return nobody
	}
	for line := range bytes.Lines(text) {
		value, ok := bytes.CutPrefix(line, []byte("Uid:"))
		if fields := bytes.Fields(value); ok && len(fields) > 0 {
			if user, err := strconv.ParseUint(string(fields[0]), 10, 32); err == nil {
				return uint32(user)
			}
		}
	}
	return nobody
}
