package uprobe

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"
)

// changing is held while sites are put in or taken out. For each the kernel takes a lock
// of the whole machine (dup_mmap_sem in kernel/events/uprobes.c), which its holder hands
// to the next that waits: two calls at once, of thousands of sites each, go through them
// in turn, one site and one switch of the CPU at a time, and between any two the job may
// run. That took seconds and cost the job half a second, where one after the other takes
// tens of milliseconds (TestLinksAreTakenOutOneAfterTheOther).
var changing sync.Mutex

const (
	// between is how long there is between two looks at a process that takes sites out,
	// and asleep how many of them must find it asleep: it then waits for the grace periods,
	// which others may use. Asleep for a moment it also is where the job holds a lock.
	between = 200 * time.Microsecond
	asleep  = 3
)

// inTurn begins a call that takes sites out, and returns once they are out; the call may
// then still wait for the kernel's grace periods.
func inTurn(number, a uintptr) *call {
	changing.Lock()
	defer changing.Unlock()
	c := shelter(number, a, 0, 0)
	for slept := 0; slept < asleep; {
		time.Sleep(between)
		switch {
		case c.look(false):
			return c
		case isRunning(c.pid):
			slept = 0
		default:
			slept++
		}
	}
	return c
}

// isRunning reports whether a process has a CPU or waits for one (state R in proc_pid_stat(5)).
func isRunning(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	state := bytes.TrimLeft(stat[bytes.LastIndexByte(stat, ')')+1:], " ")
	return len(state) > 0 && state[0] == 'R'
}
