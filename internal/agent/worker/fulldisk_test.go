package worker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// A spool whose disk is full, while collectives are open, costs the raw events and nothing
// else: the session's sink fails for nothing, or the worker would end with it.
func TestAFullSpoolDoesNotEndTheWorkerOfAJobWithOpenCollectives(t *testing.T) {
	c := config.Defaults()
	c.Spool = t.TempDir()
	if err := syscall.Mount("tmpfs", c.Spool, "tmpfs", 0, "size=1048576,mode=700"); err != nil {
		t.Skipf("needs the right to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(c.Spool, syscall.MNT_DETACH) })
	var said strings.Builder
	w := &worker{config: c, job: jobs.Job{Name: "llama"}, host: "node1", out: json.NewEncoder(&said)}
	k := w.windowed(99, time.Unix(1_800_000_000, 0))
	if k.raw == nil {
		t.Fatal(said.String())
	}
	k.raw.Begin(event.Recording{ID: "one", StartedNS: 1})
	full, err := os.Create(filepath.Join(c.Spool, "full"))
	for err == nil {
		_, err = full.Write(make([]byte, 4096))
	}
	full.Close()
	open := event.OpenCalls{SeenNS: 2, Calls: []event.OpenCall{{StartNS: 1, PID: 7, TID: 7, Call: &event.Call{Layer: "collective",
		Category: "work", Name: "allreduce"}, Communicator: -1}}}
	// The writer's goroutine meets the full disk, and a later call has its error.
	for calls := 0; k.raw.Sink.Failed == nil; calls++ {
		if calls == 1_000_000 {
			t.Fatal("the disk is not full")
		}
		open.SeenNS++
		if err := k.guarded.Write(&event.Batch{OpenCalls: []event.OpenCalls{open}}); err != nil {
			t.Fatalf("the session ends: %v", err)
		}
	}
	if err := k.guarded.Write(&event.Batch{OpenCalls: []event.OpenCalls{open}}); err != nil {
		t.Fatalf("the session ends: %v", err)
	}
	if _, err := k.raw.End(); err == nil {
		t.Error("it is not said that raw events are missing")
	}
}
