package alwayson

import (
	"math"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/agentrun"
)

// stepsOf are the ends of steps of so many milliseconds each, for so long.
func stepsOf(from int64, lasting time.Duration, ms float64) (ends []int64) {
	for at := from; at < from+lasting.Nanoseconds(); {
		at += int64(ms * 1e6)
		ends = append(ends, at)
	}
	return ends
}

func TestATwinHasWindowsWhereItsStepsBecomeLonger(t *testing.T) {
	steady := stepsOf(0, time.Hour, 10)
	if n := windowsOf(steady); n != 0 {
		t.Errorf("%d windows of steps that stay as they are", n)
	}
	slower := stepsOf(0, time.Minute, 10)
	slower = append(slower, stepsOf(slower[len(slower)-1], 25*time.Minute, 10.6)...)
	if n := windowsOf(slower); n != 3 { // at once, and after each cool-down
		t.Errorf("%d windows of 25 minutes of longer steps", n)
	}
	if n := windowsOf(nil); n != 0 {
		t.Errorf("%d windows of nothing", n)
	}
}

// What a window takes is not what watching takes.
func TestWatchingIsWithoutWindows(t *testing.T) {
	begin := time.Unix(0, 0)
	var taken []usage
	cpu := 0.0
	for i, state := range []string{agentrun.Watching, agentrun.Watching, "waiting", "window", agentrun.Watching, agentrun.Watching,
		agentrun.Watching} {
		taken = append(taken, usage{at: begin.Add(time.Duration(i) * 10 * time.Second), cpu: cpu, state: state})
		if cpu += 0.05; state != agentrun.Watching {
			cpu += 3
		}
	}
	if got := whileWatching(taken); math.Abs(got-0.005) > 1e-9 {
		t.Errorf("%.4f of a core, want 0.005", got)
	}
	if got := whileWatching(taken[:1]); got != 0 {
		t.Errorf("%.4f of a single look", got)
	}
}
