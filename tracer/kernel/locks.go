package kernel

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/reader"
)

// locks are looked at before probes go in: whoever keeps that of its memory keeps the kernel waiting, and
// all forks of the machine with it (process.KeepsLock).
type locks struct {
	mu   sync.Mutex
	free time.Time // when they were
}

// lookedAt is for how long a look is good: links are made by the handful.
const lookedAt = 20 * time.Millisecond

var errHeld = errors.New("a process keeps whoever reads its memory waiting, and would keep all forks of the machine waiting while " +
	"probes go in: the warning read_late names it; end that process, and record again")

func (l *locks) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.free) < lookedAt {
		return nil
	}
	if pid := process.KeepsLock(); pid != 0 {
		return fmt.Errorf("pid %d of user %d keeps the lock of its memory, and would keep all forks of the machine waiting while probes go in: "+
			"end that process, and record again", pid, process.User(pid))
	}
	if reader.Held() {
		return errHeld
	}
	l.free = time.Now()
	return nil
}
