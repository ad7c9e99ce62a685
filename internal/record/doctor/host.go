package doctor

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// defaultBuffer is the ring buffer's default size in bytes.
const defaultBuffer = 64 << 20

// hostChecks are facts about the machine that need no privilege.
func hostChecks() []check {
	var uts unix.Utsname
	unix.Uname(&uts)
	build := unix.ByteSliceToString(uts.Version[:])
	return []check{
		{"kernel", stateInfo, fmt.Sprintf("Linux %s on %s, %d CPUs", unix.ByteSliceToString(uts.Release[:]), runtime.GOARCH, runtime.NumCPU())},
		{"preemption", stateInfo, preemption(build, procfile.Line("/sys/kernel/debug/sched/preempt"))},
		lockdownCheck(procfile.Line("/sys/kernel/security/lockdown")),
		yamaCheck(procfile.Line("/proc/sys/kernel/yama/ptrace_scope")),
		memoryCheck(),
	}
}

// preemption is the model that the kernel was built with and, where debugfs is
// mounted, the one that is chosen of it: "none voluntary (full) lazy".
func preemption(build, chosen string) string {
	model := "voluntary or none"
	for _, m := range []string{"PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT_LAZY", "PREEMPT"} {
		if strings.Contains(" "+build+" ", " "+m+" ") {
			model = m
			break
		}
	}
	if _, rest, ok := strings.Cut(chosen, "("); ok {
		chosen, _, _ = strings.Cut(rest, ")")
		return model + ", set to " + chosen
	}
	if model == "PREEMPT_DYNAMIC" {
		return model + "; which model is set is in debugfs, not readable here"
	}
	return model
}

// lockdownCheck reads "none integrity [confidentiality]".
func lockdownCheck(modes string) check {
	_, mode, ok := strings.Cut(modes, "[")
	mode, _, _ = strings.Cut(mode, "]")
	switch {
	case !ok:
		return check{"lockdown", stateOK, "the kernel has none"}
	case mode == "confidentiality":
		return check{"lockdown", stateDegraded, "confidentiality: the kernel may refuse programs that read its memory; \"programs load\" " +
			"below decides"}
	}
	return check{"lockdown", stateOK, mode}
}

func yamaCheck(scope string) check {
	if scope == "" {
		return check{"Yama", stateOK, "the kernel has none"}
	}
	return check{"Yama", stateOK, "ptrace_scope " + scope + ": it restricts attaching a debugger, not reading a process's maps"}
}

// memoryCheck compares what is free with what a recording takes.
func memoryCheck() check {
	meminfo, _ := os.ReadFile("/proc/meminfo")
	var kib int64
	for line := range strings.Lines(string(meminfo)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			fmt.Sscan(rest, &kib)
		}
	}
	k := check{"memory", stateOK, amount.Bytes(kib<<10) + " available; the ring buffer takes " + amount.Bytes(defaultBuffer)}
	if kib<<10 < 4*defaultBuffer {
		k.State, k.Why = stateDegraded, k.Why+": choose a smaller --buffer-size"
	}
	return k
}
