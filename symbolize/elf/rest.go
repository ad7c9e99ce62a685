package elf

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// mappings are those of all files that are open, so that their pages can be given back
// while somebody reads them.
var mappings = struct {
	mu  sync.Mutex
	all map[*byte][]byte // by their begins
}{all: map[*byte][]byte{}}

// Rest gives the pages back that open files were read by. They stay in the kernel's cache,
// from where a later look has them again; but a process that has read all of a framework's
// libraries once, to plan its probes, would be taken for one that needs half a gigabyte for as
// long as it runs.
func Rest() {
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	for _, data := range mappings.all {
		_ = unix.Madvise(data, unix.MADV_DONTNEED) // of a shared mapping of a file it loses nothing
	}
	if left, err := mapped(); err == nil {
		rested.Store(left)
	}
}

// RestAfter rests where more than so many bytes of files have come since the last rest: one
// stack whose functions have to be named may bring a hundred megabytes of symbols.
func RestAfter(room int64) {
	now, err := mapped()
	if err != nil || now-rested.Load() <= room {
		return
	}
	Rest()
}

// rested is what was left at the last rest: what maps no file, as rings do, stays.
var rested atomic.Int64

// A file is read faster than anybody would think of Rest: Sparing looks every sparingEvery,
// and rests where more than sparingRoom of pages have come.
const (
	sparingEvery = 10 * time.Millisecond
	sparingRoom  = 48 << 20
)

// Sparing does what reads all over large files, and gives their pages back meanwhile.
func Sparing(do func()) {
	before, err := mapped()
	if err != nil {
		do()
		Rest()
		return
	}
	over, rested := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(rested)
		ticker := time.NewTicker(sparingEvery)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				restBeyond(before + sparingRoom/4) // of a small file's the next round takes care
				return
			case <-ticker.C:
				restBeyond(before + sparingRoom)
			}
		}
	}()
	defer func() { close(over); <-rested }()
	do()
}

// restBeyond rests where more than so many bytes are mapped: to read pages again that others
// are at work with costs them time.
func restBeyond(limit int64) {
	if now, err := mapped(); err == nil && now > limit {
		Rest()
	}
}

// mapped is how many bytes of files, and of other memory that is shared, this process has in
// its own: proc_pid_statm(5).
func mapped() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text)
	if len(fields) < 3 {
		return 0, strconv.ErrSyntax
	}
	pages, err := strconv.ParseInt(string(fields[2]), 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// keep has Rest know of a mapping, and returns what unmaps it.
func keep(data []byte) (release func() error) {
	begin := &data[0]
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	mappings.all[begin] = data
	return func() error {
		// While it is still known: afterwards the addresses may be anybody's.
		mappings.mu.Lock()
		defer mappings.mu.Unlock()
		delete(mappings.all, begin)
		return unix.Munmap(data)
	}
}
