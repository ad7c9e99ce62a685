package explain

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TestAWriteThatWaitsForItsReaderSaysSo: a pipe that is full, and not a file, whose writes wait for a disk.
func TestAWriteThatWaitsForItsReaderSaysSo(t *testing.T) {
	pace := []seen{{9000, "write", script + "; StreamHandler.emit@/usr/lib/python3.11/logging/__init__.py:1100"},
		{9000, "on", script + "; op:aten::mm"}}
	row := func(kind, operation string, waited int64) event.IO {
		return event.IO{TSNS: 1e18, EndNS: 1e18 + 1e9, PID: 100, TID: 100, Operation: operation, Kind: kind, Calls: 10, DurationNS: waited,
			WaitedNS: &waited}
	}
	for _, c := range []struct {
		name string
		io   []event.IO
		pipe bool
	}{
		{"a full pipe", []event.IO{row("pipe", "write", 8e9), row("file", "write", 1e8)}, true},
		{"a slow disk, and a pipe that is read", []event.IO{row("file", "write", 8e9), row("pipe", "write", 1e8), row("pipe", "read", 9e9)}, false},
		{"nothing was measured", nil, false},
	} {
		found, err := inputOutput(counted(t, made(t, pace), &event.Batch{IO: c.io}))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %+v", c.name, err, found)
		}
		if got := strings.Contains(found[0].sentence, "45 % of the time is writing to a pipe at fit.py:40, whose reader is slower"); got != c.pipe {
			t.Errorf("%s: %s", c.name, found[0].sentence)
		}
	}
}

// TestCollectivesOfPythonObjectsAreNamed, and those of tensors are not taken for them.
func TestCollectivesOfPythonObjectsAreNamed(t *testing.T) {
	of := func(name string) string {
		found, err := collectives(counted(t, made(t, []seen{{9000, "futex", script + "; share@/home/me/fit.py:7; " + name + "@" + site +
			"torch/distributed/distributed_c10d.py:3000"}, {9000, "on", script + "; op:aten::mm"}}), &event.Batch{}))
		if err != nil || len(found) != 1 {
			t.Fatalf("%v, %+v", err, found)
		}
		return found[0].sentence + " " + found[0].Advice
	}
	if got := of("all_gather_object"); !strings.Contains(got, "collectives of Python objects (all_gather_object) at share (fit.py:7)") ||
		!strings.Contains(got, "Send tensors instead") {
		t.Error(got)
	}
	if got := of("all_gather"); strings.Contains(got, "objects") {
		t.Error(got)
	}
}
