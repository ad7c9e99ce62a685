package pipeline

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// memoryPeriod is how often the job's processes are looked at. The kernel keeps each one's peak, so that little is
// missed: what a process adds after the last look before its end.
const memoryPeriod = 250 * time.Millisecond

// memory follows the processes below the recorder and how much each has held.
type memory struct {
	recorder int
	self     string // the recorder's program: its own helpers do not count
	peaks    map[int]int64
}

func newMemory(recorder int) *memory {
	self, _ := os.Executable()
	return &memory{recorder: recorder, self: self, peaks: map[int]int64{}}
}

// look reads the peaks of all processes of the job.
func (m *memory) look() {
	parents := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			parents[pid] = parentOf(pid)
		}
	}
	for pid := range parents {
		if pid == m.recorder || !below(parents, pid, m.recorder) {
			continue
		}
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); exe == m.self {
			continue
		}
		m.peaks[pid] = max(m.peaks[pid], highWater(pid))
	}
}

// below says whether a process descends from another one.
func below(parents map[int]int, pid, ancestor int) bool {
	for range len(parents) {
		parent := parents[pid]
		if parent == ancestor {
			return true
		}
		if parent <= 1 {
			return false
		}
		pid = parent
	}
	return false
}

func parentOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name in parentheses may have anything in it.
	_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// highWater is the most resident memory that a process has had, in KiB.
func highWater(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(text), "VmHWM:")
	if fields := strings.Fields(rest); ok && len(fields) > 0 {
		n, _ := strconv.ParseInt(fields[0], 10, 64)
		return n
	}
	return 0
}

// pids are the job's processes that were seen.
func (m *memory) pids() (all []int) {
	for pid := range m.peaks {
		all = append(all, pid)
	}
	return all
}

// peakMiB adds up the peaks; nil where no process was seen. Workers share pages with the process that forked them, so
// that the sum may be more than what they took of the machine.
func (m *memory) peakMiB() *float64 {
	var sum int64
	for _, kib := range m.peaks {
		sum += kib
	}
	if sum == 0 {
		return nil
	}
	return new(float64(sum) / 1024)
}
