package tracer

import (
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
)

// What waited in the rings is told for a minute, and after two it is forgotten.
func TestTheMostThatWaitedIsOfTheLastMinutes(t *testing.T) {
	s := &Session{stats: &statistics{}}
	begin := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		at         time.Duration
		now        decode.Pending
		calls, of2 int
	}{
		{0, decode.Pending{Calls: 100}, 100, 0},
		{time.Second, decode.Pending{Samples: 7}, 100, 7},
		{pendingFor, decode.Pending{Calls: 5}, 100, 7},
		{2*pendingFor - time.Second, decode.Pending{Calls: 3}, 100, 7},
		{2 * pendingFor, decode.Pending{Calls: 1}, 5, 0},
		{9 * pendingFor, decode.Pending{}, 0, 0},
	} {
		s.stats.wait(c.now, begin.Add(c.at))
		if p := s.Stats().Pending; p.Calls != c.calls || p.Samples != c.of2 {
			t.Errorf("after %v: %+v, not %d and %d", c.at, p, c.calls, c.of2)
		}
	}
}

// Every call is a hit, two where its return has a probe of its own, and the ring was not always empty meanwhile.
func TestHitsAreWhatTheJobPassed(t *testing.T) {
	needKernel(t)
	job, calls := startCalls(t)
	options := Options{PIDs: []int{job.Process.Pid}, Level: LevelWindow, Budget: Unlimited, catalog: nativeGroup("libcallee-plain",
		spec.ExitSites, callees)}
	var session *Session
	begun, passed := map[string]int{}, uint64(0)
	recordInto(t, &recordingSink{}, options, func(s *Session, stop func()) {
		session = s
		seen(t, s, "probe", func() bool { return s.Stats().Probes.Attached == len(callees) })
		begun = calls() // and the job ends
	})
	for name, n := range begun {
		if _, probed := callees[name]; probed {
			passed += uint64(n)
		}
	}
	stats := session.Stats()
	if hits := stats.Probes.Hits; passed == 0 || hits < passed || hits > 2*passed {
		t.Errorf("%d hits of %d calls that have begun and ended: %v", hits, passed, begun)
	}
	if stats.Pending.Calls == 0 || stats.Pending.Calls > 4<<20 {
		t.Errorf("%d bytes waited in the ring", stats.Pending.Calls)
	}
}
