package job

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
		var r rests
		now := time.Now()
		r.read(now, c.took, c.cpu)
		got := r.until.Sub(now)
		if r.until.IsZero() {
			got = 0
		}
		if got != c.rest {
			t.Errorf("a reading of %s, %s of them on the CPU: %s of rest, want %s", c.took, c.cpu, got, c.rest)
		}
	}
}

// TestShortReadingsWithoutEndTakeTheirShare: a job whose maps are just short enough, and
// that loads without end, has them read for a tenth of the time; one that loads a hundred
// libraries at its start has each found at once.
func TestShortReadingsWithoutEndTakeTheirShare(t *testing.T) {
	var r rests
	begin := time.Now()
	now, cpu := begin, time.Duration(0)
	for now.Before(begin.Add(time.Minute)) {
		now = now.Add(19 * time.Millisecond)
		cpu += 19 * time.Millisecond
		r.read(now, 19*time.Millisecond, 19*time.Millisecond)
		if r.until.After(now) {
			now = r.until
		}
	}
	if most := savedReads + time.Minute/readShare + time.Second; cpu > most {
		t.Errorf("%s of a minute were taken, want at most %s", cpu, most)
	}
	if !r.often {
		t.Error("no one is told")
	}

	r, now = rests{}, begin
	for range 100 {
		now = now.Add(12 * time.Millisecond)
		r.read(now, 2*time.Millisecond, 2*time.Millisecond)
	}
	if !r.until.IsZero() || r.often {
		t.Error("the libraries of a start are put off")
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
