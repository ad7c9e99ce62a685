package progress

import (
	"math"
	"testing"
	"time"
)

// clockOf is a clock whose processes waited so long for a core, by look.
func clockOf(looks []time.Duration, waits ...map[int]time.Duration) *JobClock {
	c := NewJobClock()
	at := time.Now()
	for i, after := range looks {
		c.Waits = func(tid int32) (time.Duration, bool) {
			w, ok := waits[i][int(tid)]
			return w, ok
		}
		c.Tick(at.Add(after), []int{1, 2})
	}
	return c
}

func TestTheJobsTimeIsWithoutItsWaitsForACore(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		looks []time.Duration
		waits []map[int]time.Duration
		own   time.Duration
		share float64
	}{
		"a core of its own":       {[]time.Duration{0, s}, []map[int]time.Duration{{1: 5 * s}, {1: 5 * s}}, s, 1},
		"half a core":             {[]time.Duration{0, 2 * s}, []map[int]time.Duration{{1: 0}, {1: s}}, s, 0.5},
		"two processes":           {[]time.Duration{0, s}, []map[int]time.Duration{{1: 0, 2: 0}, {1: s / 2, 2: 0}}, s * 3 / 4, 0.75},
		"one is new":              {[]time.Duration{0, s}, []map[int]time.Duration{{1: 0}, {1: s / 2, 2: 9 * s}}, s / 2, 0.5},
		"one is gone":             {[]time.Duration{0, s}, []map[int]time.Duration{{1: 0, 2: 0}, {1: s / 2}}, s / 2, 0.5},
		"nobody knows":            {[]time.Duration{0, s}, []map[int]time.Duration{{}, {}}, s, 1},
		"never on a core":         {[]time.Duration{0, s}, []map[int]time.Duration{{1: 0}, {1: s}}, s / 20, 0.05},
		"a wait charged too late": {[]time.Duration{0, s}, []map[int]time.Duration{{1: 0}, {1: 3 * s}}, s / 20, 0.05},
		"of late":                 {[]time.Duration{0, s / 2, s}, []map[int]time.Duration{{1: 0}, {1: 0}, {1: s / 2}}, s/2 + s/40, 1 - 0.95/2},
		"looked at too soon":      {[]time.Duration{0, s, s + time.Millisecond}, []map[int]time.Duration{{1: 0}, {1: 0}, {1: s}}, s, 1},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clockOf(c.looks, c.waits...)
			if diff := clock.Own - c.own; diff < -time.Microsecond || diff > time.Microsecond {
				t.Errorf("own time %s, want %s", clock.Own, c.own)
			}
			if math.Abs(clock.Share-c.share) > 1e-6 {
				t.Errorf("share %v, want %v", clock.Share, c.share)
			}
		})
	}
}
