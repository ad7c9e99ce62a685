package tracer

import (
	"testing"
	"time"
)

// A job that loads libraries without end, or calls the dynamic linker's hook, puts
// nothing off that the manager has to do.
func TestLoadingWithoutEndPutsNothingOff(t *testing.T) {
	a := newAlarm()
	defer a.Stop()
	<-a.C
	a.set(time.Hour)
	due := a.at
	for range 100 {
		if a.sooner(2 * time.Hour); !a.at.Equal(due) {
			t.Fatalf("what was due at %s is by now at %s", due, a.at)
		}
	}
	if a.sooner(time.Minute); !a.at.Before(due) {
		t.Error("it is not brought forward")
	}
	a.sooner(0)
	<-a.C
}
