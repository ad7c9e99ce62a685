package process

import (
	"encoding/json"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/reader"
)

// Who puts a probe into a file waits for the lock of the memory of every process that maps it, and no
// process of the machine can fork meanwhile (uprobe_register). Any process may keep its own lock: it
// has a page of its own file system fetched, by another process that reads its memory, and does not answer. So
// one looks before. A process that takes the lock between the look and the probe is not seen, nor one whose
// lock others share, for as long as nobody waits to have it alone.

const (
	// locksPatience is for all locks of the machine, which take some 5 µs each: to unmap hundreds of gigabytes
	// takes a second, and nobody is to lose probes for that.
	locksPatience = 3 * time.Second
	// lockPatience is for that of one, when one is known to be kept.
	lockPatience = time.Second
)

// KeepsLock finds a process that keeps the lock of its memory, 0 if none does.
func KeepsLock() (pid int) {
	pids, err := FS{}.pids()
	if err != nil || locksFree(pids, locksPatience) {
		return 0
	}
	for _, pid := range pids {
		if !locksFree([]int{pid}, lockPatience) {
			return pid
		}
	}
	return 0
}

func locksFree(pids []int, patience time.Duration) bool {
	request, err := json.Marshal(pids)
	return err != nil || reader.Try(askLocks, request, patience)
}

// answerLocks takes the lock of each process's memory, and gives it back: to ask for pages does.
func answerLocks(r *reader.Request) reader.Reply {
	var pids []int
	if json.Unmarshal(r.Text, &pids) != nil {
		return reader.Reply{Err: syscall.EINVAL}
	}
	page := make([]byte, 8)
	for _, pid := range pids {
		fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // a thread of the kernel, or gone
		}
		_, _ = unix.Pread(fd, page, 0)
		unix.Close(fd)
	}
	return reader.Reply{}
}
