package probes

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Of a function that some process begins to use it is known since when none did only if all
// who map the file were looked at before.
func TestItIsKnownSinceWhenAllWereLookedAt(t *testing.T) {
	var l looks
	library := &process.Library{}
	mapped := map[int]*process.Library{7: library}
	if at := l.all(mapped); at != 0 {
		t.Errorf("nobody was looked at, and it is known since %d", at)
	}
	l.note(7, 100)
	mapped[8] = library
	if at := l.all(mapped); at != 0 {
		t.Errorf("one was not looked at, and it is known since %d", at)
	}
	l.note(8, 150)
	if at := l.all(mapped); at != 100 {
		t.Errorf("it is known since %d, want the earlier look, 100", at)
	}
	delete(mapped, 7)
	if at := l.all(mapped); at != 150 || len(l.at) != 1 {
		t.Errorf("it is known since %d, of %d processes, want 150, of the one that is left", at, len(l.at))
	}
	delete(mapped, 8)
	if at := l.all(mapped); at != 0 {
		t.Errorf("nobody maps the file, and it is known since %d", at)
	}
}
