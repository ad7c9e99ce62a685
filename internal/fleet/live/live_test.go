package live

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

var (
	load     = &event.Call{Layer: "scope", Name: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"}
	backward = &event.Call{Layer: "autograd", Category: "backward", Name: "Engine::execute"}
	optimize = &event.Call{Layer: "scope", Name: "Optimizer.step#SGD.step"}
	other    = &event.Call{Layer: "op", Name: "aten::mm"}
)

// drive makes steps of a period: a load, two backward passes, an optimizer's step.
func drive(s *Steps, pid int32, at *int64, n int, period int64) {
	for range n {
		for k, call := range []*event.Call{load, backward, other, backward, optimize} {
			s.Write(&event.Batch{Spans: []event.Span{{PID: pid, TID: pid, Call: call, StartNS: *at + int64(k)*period/6, DurationNS: period / 10}}})
		}
		*at += period
	}
}

func TestStepsOfTwoJobsAreToldApart(t *testing.T) {
	s := New(trigger.Published)
	rank := int32(5)
	s.Write(&event.Batch{Processes: []event.Process{{PID: 7, Rank: &rank}}})
	a, b := int64(1e9), int64(1e9)
	for range 40 {
		drive(s, 7, &a, 1, 30e6)
		drive(s, 8, &b, 1, 50e6)
	}
	ended, triggers := s.Take(true)
	count := map[int32]int{}
	for _, e := range ended {
		count[e.PID]++
		if want := map[int32]int64{7: 30e6, 8: 50e6}[e.PID]; e.Number > 0 && e.PeriodNS != want {
			t.Errorf("pid %d: a step of %d ns", e.PID, e.PeriodNS)
		}
	}
	// Ten repeats are seen before the first step is one.
	if count[7] < 28 || count[7] > 40 || count[7] != count[8] || len(triggers) != 0 {
		t.Errorf("%v steps, %v", count, triggers)
	}
	if ended[0].Rank != 5 && ended[1].Rank != 5 {
		t.Errorf("%+v", ended[:2])
	}
	if n, sequence := s.Learnt(); n != 2 || sequence != "LBBO" {
		t.Errorf("%d threads, %q", n, sequence)
	}
}

func TestALoopThatSlowsDownAndOneThatStopsAreTold(t *testing.T) {
	s := New(trigger.Published)
	at := int64(1e9)
	drive(s, 7, &at, 120, 20e6)
	drive(s, 7, &at, 60, 24e6)
	_, triggers := s.Take(true)
	if len(triggers) == 0 || triggers[0].Kind != trigger.Slow || triggers[0].PID != 7 {
		t.Fatalf("%+v", triggers)
	}
	s.Restart()
	drive(s, 8, &at, 60, 24e6)
	if slow, hanging := s.Now(); slow != 1 || hanging != 0 {
		t.Errorf("%d slow, %d hang", slow, hanging)
	}
	drive(s, 7, &at, 60, 24e6)
	s.Write(&event.Batch{Spans: []event.Span{{PID: 7, TID: 7, Call: load, StartNS: at, DurationNS: 1e6}}}) // and no more
	s.Take(true)
	s.Check(at + 500e6)
	if _, triggers = s.Take(true); len(triggers) != 0 {
		t.Errorf("half a second: %+v", triggers)
	}
	s.Check(at + 1200e6)
	if _, triggers = s.Take(true); len(triggers) != 1 || triggers[0].Kind != trigger.Hanging {
		t.Errorf("%+v", triggers)
	}
	if _, hanging := s.Now(); hanging != 1 {
		t.Errorf("%d hang", hanging)
	}
	end := at + 2e9
	s.Write(&event.Batch{Processes: []event.Process{{PID: 7, EndedNS: &end}}})
	if slow, hanging := s.Now(); slow != 0 || hanging != 0 {
		t.Errorf("once it has ended: %d slow, %d hang", slow, hanging)
	}
}

// What the budget has no room for beside the probes is no part of a step.
func TestStepsGoOnWhereWaitsAreSampled(t *testing.T) {
	s := New(trigger.Published)
	at := int64(1e9)
	drive(s, 7, &at, 120, 20e6)
	s.Take(true)
	for _, source := range []string{"waits", "io", "detail"} {
		s.Write(&event.Batch{Warnings: []event.Warning{{TSNS: at, Kind: "slice", Source: source, Count: 1}}})
	}
	drive(s, 7, &at, 5, 20e6)
	if ended, _ := s.Take(true); len(ended) < 4 || len(s.Sliced()) > 0 {
		t.Errorf("%d steps of 5, and in slices are %v", len(ended), s.Sliced())
	}
}

// TestALoopThatGoesIntoSlicesDoesNotHang: the budget takes first the scopes, then the
// backward passes of short steps out of what is seen all the time.
func TestALoopThatGoesIntoSlicesDoesNotHang(t *testing.T) {
	s := New(trigger.Published)
	at := int64(1e9)
	drive(s, 7, &at, 120, 20e6)
	s.Write(&event.Batch{Spans: []event.Span{{PID: 7, TID: 7, Call: load, StartNS: at, DurationNS: 1e6}}})
	s.Write(&event.Batch{Warnings: []event.Warning{{TSNS: at + 2e6, Kind: "slice", Source: "scope", Count: 1}}})
	s.Write(&event.Batch{Spans: []event.Span{{PID: 7, TID: 7, Call: optimize, StartNS: at + 1e6, DurationNS: 1e6}}}) // is read late
	at += 3e6
	s.Take(true)
	for range 100 {
		for k := range int64(2) {
			s.Write(&event.Batch{Spans: []event.Span{{PID: 7, TID: 7, Call: backward, StartNS: at + k*5e6, DurationNS: 1e6}}})
		}
		at += 10e6
	}
	s.Write(&event.Batch{Spans: []event.Span{{PID: 7, TID: 7, Call: optimize, StartNS: at, DurationNS: 1e6, SliceID: 3, Weight: 50}}})
	s.Check(at + 1e6)
	if ended, triggers := s.Take(true); len(ended) < 80 || len(triggers) > 0 {
		t.Errorf("%d steps by their backward passes, %+v", len(ended), triggers)
	}
	s.Write(&event.Batch{Warnings: []event.Warning{{TSNS: at, Kind: "slice", Source: "backward", Count: 1}}})
	at += 30e9
	s.Check(at)
	for range 20 {
		s.Write(&event.Batch{Spans: []event.Span{{PID: 7, TID: 7, Call: backward, StartNS: at, DurationNS: 1e6, SliceID: 4, Weight: 50}}})
		at += 20e6
	}
	s.Check(at + 30e9)
	if ended, triggers := s.Take(true); len(ended) > 0 || len(triggers) > 0 {
		t.Errorf("%d steps from slices, %+v", len(ended), triggers)
	}
}

func TestAnEndedProcessIsForgotten(t *testing.T) {
	s := New(trigger.Published)
	for pid := range int32(3 * mostThreads) {
		at := int64(1e9)
		drive(s, pid+1, &at, 2, 1e6)
		ended := int64(2e9)
		s.Write(&event.Batch{Processes: []event.Process{{PID: pid + 1, EndedNS: &ended}}})
	}
	if len(s.threads) != 0 || len(s.ranks) != 0 || s.ignored != 0 {
		t.Errorf("%d threads, %d ranks, %d ignored", len(s.threads), len(s.ranks), s.ignored)
	}
}

// A wait belongs to the step that it was in, also where it is read after the step's
// end; one over a boundary to both.
func TestWaitsBelongToTheStepsThatTheyWereIn(t *testing.T) {
	s := New(trigger.Published)
	at := int64(1e9)
	var told []pattern.Step
	for range 200 {
		begin := at
		drive(s, 7, &at, 1, 100e6)
		steps, _ := s.Take(false)
		told = append(told, steps...)
		s.Waited(&event.Sample{PID: 7, TID: 7, TSNS: begin + 50e6, WeightNS: 30e6}, pattern.Collective)
		s.Waited(&event.Sample{PID: 7, TID: 7, TSNS: begin + 95e6, WeightNS: 10e6}, pattern.Collective)
		s.Waited(&event.Sample{PID: 7, TID: 7, TSNS: begin + 10e6, WeightNS: 10e6}, pattern.Python)
		s.Waited(&event.Sample{PID: 7, TID: 8, TSNS: begin, WeightNS: 90e6}, pattern.Collective) // another thread
	}
	if len(told) < 150 || len(s.ended) > 30 || len(s.waits) > 200 {
		t.Errorf("%d steps told, %d and %d waits kept", len(told), len(s.ended), len(s.waits))
	}
	for _, e := range told {
		if e.WaitNS != 40e6 || e.LoadNS != 10e6 {
			t.Fatalf("%+v", e)
		}
	}
}
