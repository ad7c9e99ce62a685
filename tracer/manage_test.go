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

	now := time.Now()
	for _, overdue := range []time.Duration{0, time.Minute} { // it was not looked at in time
		p := &tracedProcess{rescanAt: now.Add(-overdue)}
		for at := now; at.Before(now.Add(time.Second)); at = at.Add(time.Millisecond) {
			p.linked(at)
		}
		if !p.hurry || p.rescanAt.After(now) {
			t.Errorf("overdue by %s: in a hurry %v, to be looked at %s later", overdue, p.hurry, p.rescanAt.Sub(now))
		}
	}
	p := &tracedProcess{rescanAt: now.Add(time.Minute)}
	for at := now; at.Before(now.Add(time.Second)); at = at.Add(time.Millisecond) {
		p.linked(at)
	}
	if want := now.Add(linkSettle); !p.hurry || !p.rescanAt.Equal(want) {
		t.Errorf("in a hurry %v, to be looked at %s later, want %s", p.hurry, p.rescanAt.Sub(now), linkSettle)
	}
}
