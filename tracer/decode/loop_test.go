package decode

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestTheReaderSleepsLongerTheLessThereIs, and wakes at once for calls, for much
// in the ring of samples, and in time for a small ring of calls.
func TestTheReaderSleepsLongerTheLessThereIs(t *testing.T) {
	settled := func(found look, callBytes int) (wait time.Duration) {
		wait = pollWait
		for range 200 {
			wait = nextWait(wait, found, callBytes)
		}
		return wait
	}
	for name, c := range map[string]struct {
		callBytes       int
		samples, behind bool
		want            time.Duration
	}{
		"samples":          {64 << 20, true, false, idleWait},
		"nothing":          {64 << 20, false, false, restWait},
		"a small ring":     {1 << 20, false, false, tinyIdleWait},
		"many samples":     {64 << 20, true, true, pollWait},
		"many, small ring": {1 << 20, true, true, pollWait},
	} {
		found := look{samples: c.samples, behind: c.behind}
		if got := settled(found, c.callBytes); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		found.calls = true
		if got := nextWait(restWait, found, c.callBytes); got != pollWait {
			t.Errorf("%s: %v after calls", name, got)
		}
	}
	for _, calls := range []bool{true, false} {
		if got := settled(look{calls: calls, few: patientWait}, 4<<20); got != patientWait {
			t.Errorf("few calls that may wait (any: %v): %v, want %v", calls, got, patientWait)
		}
		if got := nextWait(patientWait, look{calls: calls, few: tinyIdleWait}, 4<<20); got != tinyIdleWait {
			t.Errorf("few calls in a slice (any: %v): %v, want %v", calls, got, tinyIdleWait)
		}
	}
	if got := settled(look{few: patientWait}, 64<<20); got != restWait {
		t.Errorf("nothing for a patient reader of a large ring: %v, want %v", got, restWait)
	}
	if got := settled(look{calls: true, few: patientWait, behind: true}, 4<<20); got != pollWait {
		t.Errorf("few calls and many samples: %v, want %v", got, pollWait)
	}
	resting := settled(look{}, 64<<20)
	if got := nextWait(resting, look{samples: true}, 64<<20); got != idleWait {
		t.Errorf("%v after the first sample", got)
	}
}

// A reader that takes too much of the CPUs reads larger batches while their ring has room.
func TestAThriftyReaderReadsLargerBatches(t *testing.T) {
	const size = 32 << 20
	var thrifty atomic.Bool
	rings := Rings{CallBytes: size, Thrifty: &thrifty}
	if few := rings.patience(Pending{}); few != 0 {
		t.Errorf("waits for %v before it has to be thrifty", few)
	}
	thrifty.Store(true)
	if few := rings.patience(Pending{Calls: size/someCalls - 1}); few != tinyIdleWait {
		t.Errorf("waits for %v where there is room, want %v", few, tinyIdleWait)
	}
	if few := rings.patience(Pending{Calls: size / someCalls}); few != 0 {
		t.Errorf("waits for %v where the ring fills", few)
	}
}
