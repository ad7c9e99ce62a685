package beat

import (
	"testing"
	"time"
)

// Those who wake now and then meet on a beat at their first sleep, and stay there.
func TestSleepersMeet(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ now, wait, want time.Duration }{
		{0, 100 * ms, 100 * ms},
		{30 * ms, 100 * ms, 70 * ms},
		{70 * ms, 100 * ms, 30 * ms},
		{70 * ms, 200 * ms, 130 * ms},
		{70 * ms, 199 * ms, 130 * ms},
		{110 * ms, 150 * ms, 90 * ms},
		{110 * ms, 89 * ms, 89 * ms},
		{70 * ms, 500 * ms, 330 * ms},
		{70 * ms, 40 * ms, 40 * ms},
		{70 * ms, 0, 0},
	} {
		if got := of(c.now, c.wait); got != c.want {
			t.Errorf("who would sleep %v at %v sleeps %v, want %v", c.wait, c.now, got, c.want)
		}
	}
	for _, beat := range []time.Duration{every, half} {
		for begun := range 100 {
			now := time.Duration(begun) * ms
			for range 3 {
				slept := of(now, beat)
				if slept <= 0 || slept > beat {
					t.Fatalf("who would sleep %v sleeps %v", beat, slept)
				}
				// Timers ring a little late.
				now += slept + ms/10
			}
			if late := now % beat; late > ms {
				t.Errorf("who begins at %d ms and sleeps %v wakes %v after a beat", begun, beat, late)
			}
		}
	}
}
