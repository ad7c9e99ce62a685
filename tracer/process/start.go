package process

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// StartTicks is when the process that has a pid now began, as Process.StartTicks
// says it. The errors are ErrNotFound and those of a damaged file.
func StartTicks(pid int) (uint64, error) {
	ticks, _, err := Begun(pid)
	return ticks, err
}

// Begun is StartTicks, and whether the process is a thread of the kernel's own, which has no
// memory and no program.
func Begun(pid int) (ticks uint64, kernel bool, err error) {
	s, err := FS{}.stat(pid)
	if err != nil {
		return 0, false, vanished(pid, "reading stat", err)
	}
	return s.startTicks, s.kernelThread(), nil
}

// ThreadStartedNS is when a thread began, since the Unix epoch: the same from
// every reader, exact to a hundredth of a second. ok is false when it has ended.
func ThreadStartedNS(pid, tid int32) (ns int64, ok bool) {
	b, err := procfile.Read(FS{}.pidPath(int(pid), "task", strconv.Itoa(int(tid)), "stat"), 4096)
	if err != nil {
		return 0, false
	}
	s, err := parseStat(b)
	return StartedNS(s.startTicks), err == nil
}

// StartedNS turns StartTicks into nanoseconds since the Unix epoch.
func StartedNS(ticks uint64) int64 { return FS{}.bootNS() + int64(ticks)*nsPerTick }

// NamespaceTicks is what /proc adds to the kernel's own count of ticks since boot,
// for a reader in a time namespace (time_namespaces(7)).
var NamespaceTicks = sync.OnceValue(func() int64 {
	own, err := os.Readlink("/proc/self/ns/time")
	children, _ := os.Readlink("/proc/self/ns/time_for_children")
	if err != nil || own != children { // the file speaks of the children's
		return 0
	}
	offsets, err := procfile.Read("/proc/self/timens_offsets", 4096)
	if err != nil {
		return 0
	}
	return parseBootOffset(offsets)
})

// parseBootOffset reads the line "boottime 86400 0" of timens_offsets.
func parseBootOffset(offsets []byte) int64 {
	for line := range bytes.Lines(offsets) {
		fields := strings.Fields(string(line))
		if len(fields) != 3 || fields[0] != "boottime" {
			continue
		}
		seconds, err := strconv.ParseInt(fields[1], 10, 64)
		nanoseconds, errNS := strconv.ParseInt(fields[2], 10, 64)
		if err == nil && errNS == nil {
			return seconds*ticksPerSecond + nanoseconds/nsPerTick
		}
	}
	return 0
}

// clockBootNS is the Unix epoch's time at boot: the difference of two clocks that
// are read right after each other.
func clockBootNS() int64 {
	var wall, boot unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_REALTIME, &wall) != nil {
		return 0
	}
	return wall.Nano() - boot.Nano()
}
