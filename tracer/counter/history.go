package counter

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/beat"
	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

const (
	// HistoryFor is how far back a History knows, and historyEvery how often it looks: what
	// grows by a gigabyte a second is still seen to.
	HistoryFor   = 30 * time.Second
	historyEvery = 200 * time.Millisecond
	// historyLooks are taken at once, of some microseconds each: where there are more
	// processes, each is looked at less often.
	historyLooks = 256
	// historyFiles are kept open, of the first processes.
	historyFiles = 64
)

// History keeps what each process of a job has held of memory lately. It is not reported until
// there is no memory left: then it is taken. It may be asked from anywhere.
type History struct {
	files    Files
	clock    func() int64
	mu       sync.Mutex // between who looks, who takes, and who knows the processes
	of       []*held
	next     int // in of: who is looked at next
	lookedNS int64
	ended    []*held // those that ended within HistoryFor, oldest first
}

// held is one process's.
type held struct {
	pid   int
	file  *procfile.Kept // nil: it is opened at each look
	looks []look         // the last ones, oldest first
	told  int64          // the time of the last that was taken
	ended int64          // when it was forgotten
}

// look is one line of /proc/PID/statm, in bytes.
type look struct {
	ns                        int64
	virtual, resident, shared float64
}

// NewHistory makes one without processes. The clock is what readings are stamped with.
func NewHistory(files Files, clock func() int64) *History {
	return &History{files: files, clock: clock}
}

// Follow adds a process, and looks at it: what it had when that began is known.
func (h *History) Follow(pid int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.ContainsFunc(h.of, func(of *held) bool { return of.pid == pid }) {
		of := &held{pid: pid}
		if len(h.of) < historyFiles {
			of.file, _ = procfile.Keep(h.statm(pid))
		}
		h.of = append(h.of, of)
		h.lookAt(of)
	}
}

// Forget says that a process has ended. A job that memory was refused may be gone before
// its refusal is read: what it held is still known as long as it would be otherwise, of as
// many as are looked at at once.
func (h *History) Forget(pid int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of = slices.DeleteFunc(h.of, func(of *held) bool {
		if of.pid != pid {
			return false
		}
		of.ended = h.clock()
		of.close()
		h.ended = append(h.ended, of)
		return true
	})
	h.forgetOld()
}

// forgetOld lets go of what ended too long ago, and of the oldest of too many.
func (h *History) forgetOld() {
	since := h.clock() - int64(HistoryFor)
	first := max(0, len(h.ended)-historyLooks)
	for first < len(h.ended) && h.ended[first].ended <= since {
		first++
	}
	h.ended = slices.Delete(h.ended, 0, first)
}

// Run looks until the context ends.
func (h *History) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		h.Look()
		timer.Reset(beat.Of(historyEvery))
	}
}

// Close lets go of the files.
func (h *History) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range h.of {
		of.close()
	}
}

// close lets go of the file.
func (of *held) close() {
	if of.file != nil {
		_ = of.file.Close() // nothing was written
		of.file = nil
	}
}

// Look looks at every process once, or at as many as there is time for.
func (h *History) Look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.look()
}

func (h *History) look() {
	h.lookedNS = h.clock()
	h.forgetOld()
	for range min(len(h.of), historyLooks) {
		h.next = (h.next + 1) % len(h.of)
		h.lookAt(h.of[h.next])
	}
}

func (h *History) statm(pid int) string { return h.files.path("proc", fmt.Sprint(pid), "statm") }

func (h *History) lookAt(of *held) {
	line := ""
	if of.file != nil {
		line = of.file.Line()
	} else {
		line = procfile.Line(h.statm(of.pid))
	}
	l, ok := parseStatm(line)
	if !ok || l.virtual == 0 { // it is ending: its memory is gone
		return
	}
	l.ns = h.clock()
	old := 0
	for old < len(of.looks) && of.looks[old].ns <= l.ns-int64(HistoryFor) {
		old++
	}
	of.looks = append(of.looks[:0], of.looks[old:]...)
	of.looks = append(of.looks, l)
}

// parseStatm reads /proc/PID/statm: pages in all, resident, and of those with a file or
// shared. See proc(5).
func parseStatm(text string) (l look, ok bool) {
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return l, false
	}
	for i, to := range []*float64{&l.virtual, &l.resident, &l.shared} {
		pages, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return l, false
		}
		*to = float64(pages) * float64(os.Getpagesize())
	}
	return l, true
}

// Take looks once more, and returns what it knows of all processes and has not returned
// before.
func (h *History) Take() (readings []Reading) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// Who has no memory may ask for it a thousand times a second.
	if h.clock()-h.lookedNS > int64(historyEvery)/10 {
		h.look()
	}
	h.forgetOld()
	for _, of := range slices.Concat(h.ended, h.of) {
		at, before := machine.of(int32(of.pid)), of.told
		first := len(of.looks)
		for first > 0 && of.looks[first-1].ns > of.told {
			first--
		}
		for _, l := range of.looks[first:] {
			r := round{name: "process", now: l.ns, history: map[series]point{}}
			r.gauge(at, "process_memory_resident", Bytes, l.resident)
			r.gauge(at, "process_memory_shared", Bytes, l.shared)
			r.gauge(at, "process_memory_virtual", Bytes, l.virtual)
			for i := range r.readings {
				if before > 0 {
					period := l.ns - before
					r.readings[i].PeriodNS = &period
				}
			}
			readings = append(readings, r.readings...)
			before = l.ns
		}
		of.told = before
	}
	return readings
}
