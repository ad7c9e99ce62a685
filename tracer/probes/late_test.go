package probes

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A process with probes of its own has lost the calls before them: it is counted, once for all its files, and one that has
// ended is not.
func TestProcessesThatJoinAreCountedOnce(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	var l Late
	for _, w := range l.Losses() {
		if w.Count != 0 {
			t.Errorf("before anything was late: %+v", w)
		}
	}
	l.join(os.Getpid())
	l.join(os.Getpid())
	l.join(gone.Process.Pid)
	w := l.Losses()[0]
	if w.Source != "processes" || w.Count != 1 || strings.Contains(w.Detail, "first 0 ms") {
		t.Errorf("%+v", w)
	}
}
