package tracer

import (
	"testing"
	"time"
)

// TestAReadingThatWaitsDoesNotPutTheNextOneOff: maps that are read slowly because others
// have the CPUs, or because the job is mapping a library, are read again as soon as that
// took; those that take the CPU time itself no more than a twentieth of the time.
func TestAReadingThatWaitsDoesNotPutTheNextOneOff(t *testing.T) {
	for _, c := range []struct{ took, cpu, rest time.Duration }{
		{2 * time.Millisecond, 2 * time.Millisecond, 0},
		{100 * time.Millisecond, time.Millisecond, 100 * time.Millisecond},
		{100 * time.Millisecond, 80 * time.Millisecond, 1600 * time.Millisecond},
	} {
		p := &tracedProcess{}
		now := time.Now()
		p.rest(c.took, c.cpu)
		got := p.restUntil.Sub(now)
		if p.restUntil.IsZero() {
			got = 0
		}
		if got < c.rest || got > c.rest+time.Second {
			t.Errorf("a reading of %s, %s of them on the CPU: %s of rest, want %s", c.took, c.cpu, got, c.rest)
		}
	}
}

// TestAReadingTellsItsCPUTime: sleeping takes none.
func TestAReadingTellsItsCPUTime(t *testing.T) {
	r := beginReading()
	time.Sleep(50 * time.Millisecond)
	took, cpu := r.end()
	if took < 50*time.Millisecond || cpu > 25*time.Millisecond {
		t.Errorf("asleep for %s, %s of it on the CPU", took, cpu)
	}
}
