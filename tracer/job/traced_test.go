package job

import (
	"fmt"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// A job that loads libraries without end, or calls the dynamic linker's hook, puts
// nothing off that the manager has to do.
func TestLoadingWithoutEndDoesNotPutTheReadingOff(t *testing.T) {
	now := time.Now()
	for _, overdue := range []time.Duration{0, time.Minute} { // it was not looked at in time
		p := &traced{maps: readings{next: now.Add(-overdue)}}
		for at := now; at.Before(now.Add(time.Second)); at = at.Add(time.Millisecond) {
			p.linked(at)
		}
		if !p.maps.hurry || p.maps.next.After(now) {
			t.Errorf("overdue by %s: in a hurry %v, to be looked at %s later", overdue, p.maps.hurry, p.maps.next.Sub(now))
		}
	}
	p := &traced{maps: readings{next: now.Add(time.Minute)}}
	for at := now; at.Before(now.Add(time.Second)); at = at.Add(time.Millisecond) {
		p.linked(at)
	}
	if want := now.Add(linkSettle); !p.maps.hurry || !p.maps.next.Equal(want) {
		t.Errorf("in a hurry %v, to be looked at %s later, want %s", p.maps.hurry, p.maps.next.Sub(now), linkSettle)
	}
}

func TestAProcessThatHasExitedIsSaidOnceAndNotOfEachOfItsFiles(t *testing.T) {
	var s said
	exited := fmt.Errorf("a.so: %w", &process.Error{PID: 7, Reason: process.ErrExited})
	gone := &process.LibraryError{PID: 7, Path: "a.so", Reason: process.ErrNotFound}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{exited, true}, {exited, false}, {gone, true}, {gone, true},
		{&process.Error{PID: 7, Reason: process.ErrPermission}, true}, {exited, false},
	} {
		if got := s.isNewReason(c.err); got != c.want {
			t.Errorf("isNewReason(%v) = %v", c.err, got)
		}
	}
}
