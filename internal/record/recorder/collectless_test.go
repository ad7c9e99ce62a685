package recorder

import (
	"runtime/debug"
	"testing"
)

func TestTheCollectorIsAsBeforeOnceAllIsAttached(t *testing.T) {
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	defer debug.SetGCPercent(percent())
	for set, during := range map[int]int{100: startingGC, 50: startingGC, 800: 800, -1: -1} {
		debug.SetGCPercent(set)
		asUsual := collectLess()
		if got := percent(); got != during {
			t.Errorf("GOGC=%d: %d during the start, want %d", set, got, during)
		}
		asUsual()
		if got := percent(); got != set {
			t.Errorf("GOGC=%d: %d once all is attached", set, got)
		}
		debug.SetGCPercent(70)
		if asUsual(); percent() != 70 {
			t.Errorf("GOGC=%d: set back twice", set)
		}
	}
}
