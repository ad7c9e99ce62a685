package keys

import (
	"math"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
)

// durations are the columns in ns that are no point in time: they are the same on every clock.
var durations = map[string]bool{
	"duration_ns": true, "off_cpu_threshold_ns": true, "counters_period_ns": true, "rotation_ns": true, "overhead_ns": true,
	"cpu_ns": true, "run_delay_ns": true, "device_time_lo_ns": true, "device_time_hi_ns": true, "device_busy_lo_ns": true,
	"waited_ns": true, "weight_ns": true, "ready_ns": true, "wall_ns": true, "period_ns": true,
	"offset_ns": true, "offset_lo_ns": true, "offset_hi_ns": true, "longer_ns": true, // between clocks, and of calls
}

func TestEveryTimeOfTheSchemaIsKnownToBeOneOrNot(t *testing.T) {
	for _, table := range output.Schema() {
		for _, c := range table.Columns {
			if is := Of(c.Name) == Time; c.Unit == "ns" && is == durations[c.Name] || c.Unit != "ns" && is {
				t.Errorf("%s.%s (unit %q): a time, or a duration? The package has to know", table.Name, c.Name, c.Unit)
			}
		}
	}
}

func TestShiftsAreWhatMakesNumbersDiffer(t *testing.T) {
	recordings := []Recording{
		{Session: "a", PIDs: []int64{100, 101}, Low: 1, High: 50},
		{Session: "b", PIDs: []int64{101, 300}, Low: 1, High: 90},
		{Session: "c", PIDs: []int64{7}, Low: 500, High: 600},
		{Session: "d", PIDs: []int64{100 + Above}, Low: 10, High: 20},
		{Session: "e", PIDs: []int64{100}, High: 0},
	}
	shifts, err := For(recordings)
	if err != nil {
		t.Fatal(err)
	}
	want := Shifts{"b": {PID: Above, ID: 50}, "d": {ID: 600}, "e": {PID: 2 * Above}}
	for _, r := range recordings {
		if shifts[r.Session] != want[r.Session] {
			t.Errorf("session %s is moved by %+v, want %+v", r.Session, shifts[r.Session], want[r.Session])
		}
	}
	pids, ids := map[int64]bool{}, map[int64]bool{}
	for _, r := range recordings {
		s := shifts[r.Session]
		for _, pid := range r.PIDs {
			if now := pid + s.By(PID, pid); pids[now] {
				t.Errorf("two processes are %d", now)
			} else {
				pids[now] = true
			}
		}
		for id := max(r.Low, 1); id <= r.High; id++ {
			if now := id + s.By(ID, id); ids[now] {
				t.Fatalf("two spans are %d", now)
			} else {
				ids[now] = true
			}
		}
	}
}

func TestMoreRecordingsThanProcessIDsAreRefused(t *testing.T) {
	many := make([]Recording, math.MaxInt32/Above+2)
	for i := range many {
		many[i] = Recording{Session: string(rune('a' + i)), PIDs: []int64{5}}
	}
	if _, err := For(many); err == nil {
		t.Errorf("%d recordings with one process id have been given numbers", len(many))
	}
}

func TestWhatIsNoNumberOfTheKernelsStays(t *testing.T) {
	s := Shift{PID: Above, ID: 10}
	for _, c := range []struct {
		kind      Kind
		value, by int64
	}{{PID, 5, Above}, {PID, 0, 0}, {TID, 5, Above}, {TID, 1 << 30, 0}, {TID, 0, 0}, {TID, -3, 0}, {ID, 1, 10}, {ID, 0, 0}, {Time, 5, 0},
		{None, 5, 0}} {
		if by := s.By(c.kind, c.value); by != c.by {
			t.Errorf("a value %d of kind %d is moved by %d, want %d", c.value, c.kind, by, c.by)
		}
	}
}
