package recorder

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/record/addressspace"
)

// GateCommand is how ebpfprof runs itself to wait for the word to exec: the job
// must not begin before its probes can.
const GateCommand = "internal-gate"

// File descriptors of the gate.
const (
	gateFD   = 3
	reportFD = 4
)

// Gate waits for a byte, then becomes the command. What exec returns goes to
// the tracer, which says it; a command that starts closes the report.
func Gate(args []string) int {
	syscall.CloseOnExec(reportFD)
	pipe := os.NewFile(gateFD, "gate")
	if n, _ := pipe.Read(make([]byte, 1)); n != 1 {
		return cli.ExitFailed // the tracer could not start
	}
	pipe.Close()
	err := restoreLimits(args[0])
	if err == nil {
		err = syscall.Exec(args[1], args[2:], os.Environ())
	}
	if errno, ok := err.(syscall.Errno); ok {
		os.NewFile(reportFD, "report").Write(binary.NativeEndian.AppendUint32(nil, uint32(errno)))
	}
	return 127
}

// limitsArgument passes the limits of the address space that ebpfprof was started with to the gate, which
// restores them for the command; "" if ebpfprof did not raise them.
func limitsArgument() string {
	limits, raised := addressspace.Limits()
	if !raised {
		return ""
	}
	return fmt.Sprintf("%d,%d", limits.Cur, limits.Max)
}

func restoreLimits(argument string) error {
	if argument == "" {
		return nil
	}
	var limits unix.Rlimit
	if _, err := fmt.Sscanf(argument, "%d,%d", &limits.Cur, &limits.Max); err != nil {
		return syscall.EINVAL
	}
	return unix.Setrlimit(unix.RLIMIT_AS, &limits)
}

// readErrno reads what gate reported.
func readErrno(report *os.File) (syscall.Errno, bool) {
	var b [4]byte
	if n, _ := report.Read(b[:]); n != len(b) {
		return 0, false
	}
	return syscall.Errno(binary.NativeEndian.Uint32(b[:])), true
}

// signalExitCode is what a shell makes of a process that a signal ended.
func signalExitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
