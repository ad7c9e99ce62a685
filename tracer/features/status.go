package features

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// What a process's status says of ways in which probes can harm it (proc_pid_status(5)). To read it
// waits for nothing.

// mostThreads of a process are looked at.
const mostThreads = 4096

// underSeccomp reports whether any thread of a process has a seccomp filter, as in most containers, or is
// in strict mode. A filter may be a single thread's.
func underSeccomp(pid int) bool {
	if confined(statusOf(pid, pid)) {
		return true
	}
	directory, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return false
	}
	defer directory.Close()
	names, _ := directory.Readdirnames(mostThreads)
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil && tid != pid && confined(statusOf(pid, tid)) {
			return true
		}
	}
	return false
}

func confined(status string) bool {
	mode := field(status, "Seccomp")
	return mode != "" && mode != "0"
}

// Debugger is the process that traces a process with ptrace, such as a debugger or one that makes a checkpoint
// of it; 0: none does.
func Debugger(pid int) int {
	by, _ := strconv.Atoi(field(statusOf(pid, pid), "TracerPid"))
	return by
}

// DebuggerHarm is what may come of one.
const DebuggerHarm = "a breakpoint that it sets where a probe is, and removes after the recording, leaves the probe's own behind, which " +
	"kills the process with SIGTRAP, and a checkpoint that is made meanwhile may keep the breakpoints of probes: do neither during the recording"

func statusOf(pid, tid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		return ""
	}
	return string(text)
}

func field(status, name string) string {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
