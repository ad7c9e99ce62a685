package trigger

import (
	"testing"
	"time"
)

const step = int64(100e6)

// run feeds steps of a period and returns the first trigger and when it ended.
func run(w *Watch, at *int64, n int, period int64) *Trigger {
	for range n {
		*at += period
		w.Anchor(*at, true)
		if t := w.Step(*at, period); t != nil {
			return t
		}
	}
	return nil
}

func TestFivePercentIsTheBoundary(t *testing.T) {
	for _, c := range []struct {
		slower float64
		fires  bool
	}{{1.049, false}, {1.05, false}, {1.051, true}, {2, true}, {0.9, false}} {
		w, at := New(Published), int64(0)
		if early := run(w, &at, 200, step); early != nil {
			t.Fatalf("steady steps: %+v", early)
		}
		got := run(w, &at, 500, int64(c.slower*float64(step)))
		if (got != nil) != c.fires {
			t.Errorf("%v times as long: %+v", c.slower, got)
		}
	}
}

func TestFiveMeansWithoutAnAnchorAreAHang(t *testing.T) {
	const long = int64(1e9) // so that the least time does not decide
	for idle, fires := range map[float64]bool{4.9: false, 5.1: true} {
		w, at := New(Published), int64(0)
		run(w, &at, 60, long)
		w.Anchor(at, false) // a load: the next step has begun
		got := w.Check(at+int64(idle*float64(long)), 0)
		if (got != nil) != fires {
			t.Errorf("idle for %v steps: %+v", idle, got)
		}
		if fires && w.Check(at+100*long, 0) != nil {
			t.Error("a hang is said twice")
		}
	}
}

// A loop that has ended its step may do what it likes: evaluate, save, wait.
func TestAPauseBetweenStepsIsNoHang(t *testing.T) {
	w, at := New(Published), int64(0)
	run(w, &at, 60, step)
	if got := w.Check(at+1000*step, 0); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestShortStepsAreNotBlockedBelowASecond(t *testing.T) {
	w, at := New(Published), int64(0)
	run(w, &at, 60, 1e6)
	w.Anchor(at, false)
	if got := w.Check(at+900e6, 0); got != nil {
		t.Errorf("%+v", got)
	}
	if got := w.Check(at+1100e6, 0); got == nil {
		t.Error("a second without an anchor is nothing")
	}
}

func TestTheBestOfLongAgoDoesNotCount(t *testing.T) {
	w, at := New(Published), int64(0)
	run(w, &at, 100, step)
	at += int64(26 * time.Hour)
	w.Restart()
	if got := run(w, &at, 500, 2*step); got != nil {
		t.Errorf("compared with a day ago: %+v", got)
	}
}

func TestAfterARestartAsManyStepsAreNeededAgain(t *testing.T) {
	w, at := New(Published), int64(0)
	run(w, &at, 100, step)
	w.Restart()
	before := at
	if got := run(w, &at, 500, 2*step); got == nil || (at-before)/(2*step) != 50 {
		t.Errorf("%+v after %d steps", got, (at-before)/(2*step))
	}
}

func TestACheckpointIsNoDegradation(t *testing.T) {
	w, at := New(Published), int64(0)
	for range 10 {
		if got := run(w, &at, 100, step); got != nil {
			t.Fatalf("%+v", got)
		}
		if got := run(w, &at, 1, 100*step); got != nil {
			t.Fatalf("%+v", got)
		}
	}
}

func TestADegradationThatLastsIsSaidOnceInFiftySteps(t *testing.T) {
	w, at := New(Published), int64(0)
	run(w, &at, 100, step)
	n := 0
	for range 300 {
		if run(w, &at, 1, 2*step) != nil {
			n++
		}
	}
	if n != 6 {
		t.Errorf("said %d times in 300 steps", n)
	}
}

// What lasts is known at any time, also after a window, and is over when it is over.
func TestWhatLastsIsKnownAfterItWasSaid(t *testing.T) {
	w, at := New(Published), int64(0)
	now := func(where string, slow, hanging bool) {
		t.Helper()
		if s, h := w.Now(); s != slow || h != hanging {
			t.Errorf("%s: slow %v, hanging %v", where, s, h)
		}
	}
	run(w, &at, 200, step)
	now("steady", false, false)
	for range 7 { // run ends with each trigger
		run(w, &at, 30, step*3/2)
	}
	now("slow", true, false)
	w.Restart()
	now("after a window", true, false)
	run(w, &at, 49, step)
	now("before the mean is whole again", true, false)
	run(w, &at, 1, step)
	now("as fast as before", false, false)
	w.Anchor(at, false)
	if w.Check(at+20*step, 0) == nil {
		t.Fatal("no hang")
	}
	now("hangs", false, true)
	w.Restart()
	w.Check(at+1000*step, 0)
	now("hangs after a window", false, true)
	w.Anchor(at+1000*step, false)
	now("goes on", false, false)
}

// Where a step begins is not known, so that the others may wait for one between two steps.
func TestAWaitForPeersBetweenStepsIsAHang(t *testing.T) {
	const step = int64(100e6)
	w, at := filled(step)
	w.Anchor(at, true)
	for _, c := range []struct {
		now, since int64
		fires      bool
	}{
		{at + 1000*step, 0, false},             // it evaluates
		{at + 1000*step, at + 995*step, false}, // and waits for its peers for a moment
		{at + 1000*step, at + 989*step, true},  // for long
		{at + 9*step, at + step/2, false},      // the time between two steps counts from when it began to wait
		{at + 11*step, at + step/2, true},      // a second is more than five steps
	} {
		again := *w
		if got := again.Check(c.now, c.since); (got != nil) != c.fires || got != nil && got.IdleNS != c.now-at {
			t.Errorf("%d after the last anchor, waiting for %d: %+v", c.now-at, c.now-c.since, got)
		}
	}
	// One rank evaluates for a minute every now and then, and the others wait for it.
	w.Anchor(at+600*step, false)
	w.Anchor(at+601*step, true)
	at += 601 * step
	if got := w.Check(at+620*step, at+step); got != nil {
		t.Errorf("the second time: %+v", got)
	}
	if got := w.Check(at+902*step, at+step); got == nil {
		t.Error("half as long again is no hang")
	}
}

// filled is a watch whose steps are known, and when the last of them ended.
func filled(step int64) (w *Watch, at int64) {
	w = New(Published)
	for range Published.Steps + 1 {
		at += step
		w.Anchor(at-step/2, false)
		w.Anchor(at, true)
		w.Step(at, step)
	}
	return w, at
}
