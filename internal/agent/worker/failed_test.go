package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Failures are told a moment after they were noticed or when the session is over, with the
// job's last moments: those of each kind once a minute at the most.
func TestAFailureIsToldOnceWithTheLastMoments(t *testing.T) {
	h := startHanging(t)
	k := h.watching()
	now := h.now
	recording := func() tracer.Recording { return tracer.Recording{ID: "7", StartedNS: now.UnixNano()} }
	rank, framework := int32(1), "torch"
	k.guarded.Write(&event.Batch{Processes: []event.Process{{PID: 101, Rank: &rank, Framework: &framework}}})
	k.guarded.Write(&event.Batch{Spans: []event.Span{{ID: 1, PID: 101, TID: 101, Call: backward, StartNS: now.UnixNano(), DurationNS: 1e6}}})
	noRoom := func() {
		k.guarded.Write(&event.Batch{Memory: []event.Memory{{TSNS: now.UnixNano(), PID: 101, Space: "host", Level: "allocator",
			Action: "out_of_memory"}}})
	}
	if reason := k.fail(t.Context(), now, false, recording); reason != "" {
		t.Errorf("nothing has failed, and the reason is %q", reason)
	}
	noRoom()
	if reason := k.fail(t.Context(), now, false, recording); reason != "" || h.status.Failed != nil {
		t.Errorf("what comes after it is still on its way, and the reason is %q", reason)
	}
	now = now.Add(failedPatience)
	if reason := k.fail(t.Context(), now, false, recording); reason != "out_of_memory" {
		t.Errorf("the reason is %q", reason)
	}
	first := h.status.Failed
	if first == nil || *first.Rank != 1 || first.PID != 101 || !first.At.Equal(h.now) || !strings.HasSuffix(first.Dump, "-train-failed") {
		t.Fatalf("%+v", first)
	}
	for _, table := range []string{"span", "memory", "process", "session"} {
		if files, _ := filepath.Glob(filepath.Join(first.Dump, table, "*.parquet")); len(files) == 0 {
			t.Errorf("%s has no %s", first.Dump, table)
		}
	}
	// One that comes again waits for its minute, and counts.
	noRoom()
	k.fail(t.Context(), now, false, recording)
	noRoom()
	now = now.Add(failedEvery / 2)
	if k.fail(t.Context(), now, false, recording); h.status.Failed != first {
		t.Errorf("%+v is told half a minute later", h.status.Failed)
	}
	now = now.Add(failedEvery / 2)
	if reason := k.fail(t.Context(), now, false, recording); reason != "out_of_memory" || h.status.Failed.Also != 1 ||
		h.status.Failures["out_of_memory"] != 3 {
		t.Errorf("%s: %+v, %v", reason, h.status.Failed, h.status.Failures)
	}
	// What a death brings is told with it, at once where the session is over.
	signal, at := int32(9), now.UnixNano()
	k.guarded.Write(&event.Batch{Processes: []event.Process{{PID: 101, Rank: &rank, Framework: &framework, EndedNS: &at,
		ExitSignal: &signal}}})
	noRoom()
	now = now.Add(time.Second)
	if reason := k.fail(t.Context(), now, true, recording); reason != "died" || h.status.Failed.Dump == "" || h.status.Failed.Also != 1 {
		t.Errorf("%s: %+v", reason, h.status.Failed)
	}
	waiting, err := filepath.Glob(filepath.Join(h.config.Spool, "outbox", "v1", "failure", "*", "*", "*", "*"))
	if err != nil || len(waiting) != 3 {
		all, _ := filepath.Glob(filepath.Join(h.config.Spool, "outbox", "*", "*", "*"))
		t.Errorf("%d files for the store: %v %v", len(waiting), err, all)
	}
}

// Without a spool there are no last moments, and the rest all the same.
func TestWithoutASpoolAFailureIsTold(t *testing.T) {
	h := startHanging(t)
	h.config.SpoolMB = 0
	k := h.watching()
	k.guarded.Write(&event.Batch{Memory: []event.Memory{{PID: 5, Space: "host", Level: "kernel", Action: "out_of_memory"}}})
	if reason := k.fail(t.Context(), h.now, true, nil); reason != "out_of_memory" || h.status.Failed.Dump != "" ||
		h.status.Failed.Rank != nil {
		t.Errorf("%q: %+v", reason, h.status.Failed)
	}
	if entries, _ := os.ReadDir(h.config.Spool); len(entries) > 1 {
		t.Errorf("%v are in the spool", entries)
	}
}
