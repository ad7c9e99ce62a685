package weights

import (
	"math"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TestASliceThatSawNoTrainingStandsForNone: a job makes 1,000 autograd nodes a second for
// ten seconds and none for three. The slice that saw the training stands for all of it;
// the one behind it, in which there was none, for the three seconds.
func TestASliceThatSawNoTrainingStandsForNone(t *testing.T) {
	s := simulate()
	at := func(ms int64) Mark {
		return Mark{time.Unix(0, s.begin+ms*ms1), 0, uint64(min(ms, 10_000)), true}
	}
	for ms := int64(0); ms <= 13_000; ms += 100 {
		s.ledger.Look(at(ms))
	}
	for _, on := range []int64{1000, 12_000} {
		s.ledger.pending = append(s.ledger.pending, &interval{on: at(on), off: at(on + 100), over: true, attached: attached,
			processes: []int{simulatedPID}})
	}
	share := s.finish(13_000)
	if len(s.slices) != 2 {
		t.Fatalf("slices %v, want two", s.slices)
	}
	if row := s.slices[0]; row.Unit != event.UnitNodes || row.Recorded != 100 || row.Represented != 10_000 {
		t.Errorf("the slice of the training has %v of %v %s, want 100 of 10000 nodes", row.Recorded, row.Represented, row.Unit)
	}
	if got := share(0, 1050).Weight; got != 100 {
		t.Errorf("a row of the training stands for %v calls, want 100", got)
	}
	if row := s.slices[1]; row.Unit != event.UnitTime || math.Abs(row.Represented-3e9) > 2e8 {
		t.Errorf("the other slice stands for %v %s, want 3 s", row.Represented, row.Unit)
	}
	if got := share(1, 12_050).Weight; math.Abs(got-30) > 2 {
		t.Errorf("a row behind the training stands for %v calls, want 30", got)
	}
}
