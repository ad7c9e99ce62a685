package text

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What ran out of memory comes before all that was live, and where there is nothing else
// that is said.
func TestMemoryThatRanOutIsPrintedFirst(t *testing.T) {
	m := &analysis.Memory{Warnings: []string{"something was lost"}}
	for pid := range int32(mostShortages + 2) {
		m.OutOfMemory = append(m.OutOfMemory, analysis.Shortage{Shortage: source.Shortage{PID: pid + 1, Level: event.LevelKernel, Times: 1,
			At: 3}})
	}
	var b strings.Builder
	Memory(&b, m, 10)
	lines := strings.Split(b.String(), "\n")
	want := "out of memory: the kernel killed pid 1 for want of memory, 3.0 s after the recording began"
	if lines[1] != want || strings.Count(b.String(), "out of memory: ") != mostShortages || !strings.Contains(b.String(),
		"in 2 more places") ||
		!strings.Contains(b.String(), "no allocation was recorded") {
		t.Errorf("%s", b.String())
	}
}
