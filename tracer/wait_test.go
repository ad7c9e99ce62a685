package tracer

import (
	"testing"
	"time"
)

// TestTheReaderSleepsLongerTheLessThereIs, and wakes at once for calls, for much
// in the ring of samples, and in time for a small ring of calls.
func TestTheReaderSleepsLongerTheLessThereIs(t *testing.T) {
	settled := func(s *Session) (wait time.Duration) {
		wait = pollWait
		for range 200 {
			wait = s.nextWait(wait, false)
		}
		return wait
	}
	for name, c := range map[string]struct {
		buffer          int
		sampled, behind bool
		want            time.Duration
	}{
		"samples":          {64 << 20, true, false, idleWait},
		"nothing":          {64 << 20, false, false, restWait},
		"a small ring":     {1 << 20, false, false, tinyIdleWait},
		"many samples":     {64 << 20, true, true, pollWait},
		"many, small ring": {1 << 20, true, true, pollWait},
	} {
		s := &Session{options: Options{BufferBytes: c.buffer}, decoder: &decoder{sampled: c.sampled, behind: c.behind}}
		if got := settled(s); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got := s.nextWait(restWait, true); got != pollWait {
			t.Errorf("%s: %v after calls", name, got)
		}
	}
	s := &Session{options: Options{BufferBytes: 64 << 20}, decoder: &decoder{}}
	resting := settled(s)
	if s.decoder.sampled = true; s.nextWait(resting, false) != idleWait {
		t.Errorf("%v after the first sample", s.nextWait(resting, false))
	}
}
