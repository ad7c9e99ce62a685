package analysis

import (
	"errors"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// ranOut adds an allocation of 8 GiB that found no room twice, at line 11, and the kernel's
// killing of another process a second later, last seen at line 22.
func (r *recording) ranOut() {
	r.stack(51, 11, "greedy")
	r.stack(52, 22, "grow")
	asked, refusing, seen := int64(8<<30), int64(51), int64(52)
	limit := "/job"
	r.must(errors.Join(
		r.dataset.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: pid, Command: "python train.py"}}}),
		r.dataset.Write(&event.Batch{Processes: []event.Process{{ID: 2, PID: pid + 1, Command: "python worker.py", Cgroup: &limit}}}),
	))
	ns := r.ns + 5e9
	row := event.Memory{TSNS: ns, PID: pid, TID: pid, Space: "host", Level: "allocator", Action: event.ActionOutOfMemory, Bytes: &asked,
		StackID: &refusing, Weight: 1}
	again := row
	again.TSNS++
	killed := event.Memory{TSNS: ns + 1e9, PID: pid + 1, TID: pid + 1, Space: "host", Level: event.LevelKernel,
		Action: event.ActionOutOfMemory, StackID: &seen,
		StackSource: event.StackOfLastSample, Weight: 1}
	r.must(r.dataset.Write(&event.Batch{Memory: []event.Memory{row, again, killed}}))
	reading := func(of int32, at int64, name string, value float64) event.Counter {
		return event.Counter{TSNS: at, Source: "process", Name: name, Kind: event.Gauge, Unit: "bytes", Value: value, PID: &of}
	}
	r.must(r.dataset.Write(&event.Batch{Counters: []event.Counter{
		reading(pid+1, ns-4e9, "process_memory_resident", 100<<20),
		reading(pid+1, ns+9e8, "process_memory_resident", 500<<20),
		reading(pid+1, ns+9e8, "process_memory_virtual", 3<<30),
		reading(pid+1, ns+2e9, "process_memory_resident", 1<<20), // it is gone by then
		{TSNS: ns, Source: "cgroup", Scope: "memory:/job", Name: "cgroup_memory_limit", Kind: event.Gauge, Unit: "bytes", Value: 512 << 20},
		{TSNS: ns, Source: "cgroup", Scope: "memory:/other", Name: "cgroup_memory_limit", Kind: event.Gauge, Unit: "bytes", Value: 1},
	}}))
}

// A dataset in which nothing but the end was recorded tells of that.
func TestMemoryThatRanOutComesFirst(t *testing.T) {
	r := newRecording(t)
	r.ranOut()
	r.must(r.dataset.Close())
	m, err := Load(t.Context(), r.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(m.Arenas) != 0 || len(m.OutOfMemory) != 2 {
		t.Fatalf("%d arenas, %+v", len(m.Arenas), m.OutOfMemory)
	}
	killed, refused := m.OutOfMemory[0], m.OutOfMemory[1]
	if killed.Level != event.LevelKernel || !killed.LastSample || killed.AskedBytes != nil || *killed.Resident != 500<<20 ||
		*killed.ResidentBefore != 100<<20 || *killed.BeforeSeconds != 5 || *killed.Virtual != 3<<30 || *killed.Limit != 512<<20 {
		t.Errorf("killed: %+v", killed)
	}
	if refused.Times != 2 || *refused.AskedBytes != 8<<30 || refused.LastSample || refused.Resident != nil || refused.At < 5 ||
		refused.At > 5.1 {
		t.Errorf("refused: %+v", refused)
	}
	for _, check := range []struct{ text, want string }{
		{killed.Sentence(), "the kernel killed pid 4712 (python worker.py) for want of memory, 6.0 s after the recording began; its last " +
			"sample was at train.py:22 (grow)"},
		{refused.Sentence(), "pid 4711 (python train.py) asked for 8.00 GiB of host memory and there was no room, 5.0 s after the recording " +
			"began and once before, at train.py:11 (greedy)"},
		{strings.Join(killed.Details(), "|"), "the process held 500.0 MiB, 5.0 s before 100.0 MiB; its address space had 3.00 GiB; its control " +
			"group may have 512.0 MiB"},
		{strings.Join(refused.Details(), "|"), "what the process held before is not known"},
	} {
		if check.text != check.want {
			t.Errorf("%q\nwant %q", check.text, check.want)
		}
	}
	if _, err := Load(t.Context(), r.dir, 1); !errors.Is(err, ErrNoSuchArena) {
		t.Errorf("of another process: %v", err)
	}
	empty := newRecording(t)
	empty.must(empty.dataset.Close())
	if _, err := Load(t.Context(), empty.dir, 0); !errors.Is(err, source.ErrNoEvents) {
		t.Errorf("without any event: %v", err)
	}
}

// What was live then is told beside it.
func TestMemoryThatRanOutSaysWhatWasLive(t *testing.T) {
	r := newRecording(t)
	kept := int64(0)
	for range 5 {
		r.alloc(0, 0, 1000)
		kept += 1000
	}
	r.ranOut()
	r.ns += 10e9
	r.alloc(0, 0, 5000)
	r.must(r.dataset.Close())
	m, err := Load(t.Context(), r.dir, pid)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(m.Arenas) != 1 || len(m.OutOfMemory) != 1 || m.OutOfMemory[0].LiveBytes == nil || *m.OutOfMemory[0].LiveBytes != kept {
		t.Errorf("%d arenas, %+v; %d bytes were live", len(m.Arenas), m.OutOfMemory, kept)
	}
}
