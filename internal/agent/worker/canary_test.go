package worker

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func TestOnlyWhatHarmsAProcessEndsACanary(t *testing.T) {
	at := int64(1)
	for signal, want := range map[int32]bool{4: true, 5: true, 7: true, 11: true, 6: false, 9: false, 15: false} {
		e := ending{pid: 7}
		e.Write(&event.Batch{Processes: []event.Process{{PID: 8, EndedNS: &at, ExitSignal: &signal}}})
		if e.signal != 0 {
			t.Error("another process's end counts")
		}
		e.Write(&event.Batch{Processes: []event.Process{{PID: 7}}})
		if e.Write(&event.Batch{Processes: []event.Process{{PID: 7, EndedNS: &at, ExitSignal: &signal}}}); harmful[e.signal] != want {
			t.Errorf("signal %d is harm: %v", signal, !want)
		}
	}
}

// What fails while one process is recorded alone is told as what fails later is.
func TestAFailureOfTheCanaryIsTold(t *testing.T) {
	h := startHanging(t)
	k := h.canaried(101)
	rank, framework, at, signal := int32(1), "torch", h.now.UnixNano(), int32(11)
	k.guarded.Write(&event.Batch{Processes: []event.Process{{PID: 101, Rank: &rank, Framework: &framework}}})
	k.guarded.Write(&event.Batch{Memory: []event.Memory{{TSNS: at, PID: 101, Space: "host", Level: "allocator", Action: "out_of_memory"}}})
	k.guarded.Write(&event.Batch{Processes: []event.Process{{PID: 101, Rank: &rank, Framework: &framework, EndedNS: &at,
		ExitSignal: &signal}}})
	if k.end(t.Context(), h.now); h.status.Failed == nil || h.status.Failed.PID != 101 || *h.status.Failed.Rank != 1 ||
		h.status.Failures["out_of_memory"] != 1 || h.status.Failures["died"] != 1 {
		t.Errorf("%+v, %v", h.status.Failed, h.status.Failures)
	}
	if !harmful[k.ending.signal] {
		t.Errorf("ended by signal %d", k.ending.signal)
	}
}
