package process

import (
	"os"
	"testing"
	"time"
)

func TestAProcessStartsWhenItsMainThreadDoes(t *testing.T) {
	pid := os.Getpid()
	ticks, err := StartTicks(pid)
	if err != nil {
		t.Fatal(err)
	}
	started, ok := ThreadStartedNS(int32(pid), int32(pid))
	if !ok || started != StartedNS(ticks) {
		t.Errorf("the process began at %d, its main thread at %d (%v)", StartedNS(ticks), started, ok)
	}
	if age := time.Since(time.Unix(0, started)); age < -2*time.Second || age > 24*time.Hour {
		t.Errorf("this process is %s old", age)
	}
}

func TestATimeNamespaceMovesTheStart(t *testing.T) {
	for text, want := range map[string]int64{
		"monotonic           0         0\nboottime            0         0\n": 0,
		"monotonic 5 0\nboottime 86400 20000000\n":                           86400*100 + 2,
		"boottime -3 0\n": -300,
		"":                0,
		"boottime x 0\n":  0,
	} {
		if got := parseBootOffset([]byte(text)); got != want {
			t.Errorf("%q: %d ticks, want %d", text, got, want)
		}
	}
}
