package pickle

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
)

// Room is the memory that values may take while they are made: small files can unpack to, or
// name, any number of them, and no count of values says what they take.
type Room struct {
	most  uint64
	steps int
}

const (
	// roomSteps is after how many values the memory is looked at.
	roomSteps = 1 << 18
	// roomUnknown is the room on a machine that does not say what it has left.
	roomUnknown = 8 << 30
)

// NewRoom has three quarters of the memory that the machine has left.
func NewRoom() *Room {
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemAvailable:" {
			continue
		}
		if kilobytes, err := strconv.ParseUint(fields[1], 10, 54); err == nil {
			return &Room{most: kilobytes << 10 / 4 * 3}
		}
	}
	return &Room{most: roomUnknown}
}

// Step is called for each value. Its error wraps ErrTooLarge.
func (r *Room) Step() error {
	if r.steps++; r.steps%roomSteps != 0 || heapBytes() <= r.most {
		return nil
	}
	runtime.GC() // some of it may be nobody's any more
	if heapBytes() <= r.most {
		return nil
	}
	return fmt.Errorf("%w: its %d values take more than the %d MiB of memory that can be spared here, read it on a machine with more",
		ErrTooLarge, r.steps, r.most>>20)
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
