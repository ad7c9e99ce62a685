package accel

import (
	"cmp"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// sync waits so long for a queue, for part of which the thread waited for a processor.
func (m *commands) sync(queue uint64, took, delay int64) {
	m.now += took
	m.took = took
	m.call(spec.Function{Category: "sync", Effect: spec.WaitsStream},
		map[spec.Field]uint64{spec.FieldStream: queue, spec.FieldDelay: uint64(delay)})
}

// join has a queue wait for an event.
func (m *commands) join(queue, event uint64) {
	m.call(spec.Function{Category: "event", Effect: spec.StreamWaits},
		map[spec.Field]uint64{spec.FieldStream: queue, spec.FieldEvent: event})
}

// lows are the lower bounds of the commands, in their order.
func (m *commands) lows() (lows []int64) {
	m.state.FlushAll()
	slices.SortFunc(m.spans, func(a, b event.Span) int { return cmp.Compare(a.ID, b.ID) })
	for _, s := range m.spans {
		if s.Call.Category != "copy" {
			continue
		}
		low := int64(-1)
		if s.Detail != nil && s.Detail.DeviceTimeLoNS != nil {
			low = *s.Detail.DeviceTimeLoNS
		}
		lows = append(lows, low)
	}
	return lows
}

// TestAWaitForOnePieceOfWorkBoundsItFromBelow: the first is never alone, as what was
// there before the recording is not known; of the others it depends.
func TestAWaitForOnePieceOfWorkBoundsItFromBelow(t *testing.T) {
	const blocked, delay = 1_000_000, 100_000
	const least = blocked - delay - waking
	for name, c := range map[string]struct {
		calls func(m *commands)
		want  []int64
	}{
		"alone": {func(m *commands) { m.launch(aQueue, 0); m.sync(aQueue, blocked, delay) }, []int64{0, least}},
		"two of one stream": {func(m *commands) { m.launch(aQueue, 0); m.launch(aQueue, 0); m.sync(aQueue, blocked, delay) },
			[]int64{0, 0, 0}},
		"a wait that did not block": {func(m *commands) { m.launch(aQueue, 0); m.sync(aQueue, waking, 0) }, []int64{0, 0}},
		"a wait for a processor":    {func(m *commands) { m.launch(aQueue, 0); m.sync(aQueue, blocked, blocked) }, []int64{0, 0}},
		"behind another stream's": {func(m *commands) { m.launch(anotherQueue, 0); m.launch(aQueue, 0); m.sync(aQueue, blocked, delay) },
			[]int64{0, -1, 0}},
		"before a stream of unknown end": {func(m *commands) { m.launch(aQueue, 0); m.launch(anotherQueue, 0); m.sync(aQueue, blocked, delay) },
			[]int64{0, least, -1}},
		"behind an unknown event": {func(m *commands) {
			m.join(aQueue, 99)
			m.launch(aQueue, 0)
			m.sync(aQueue, blocked, delay)
		}, []int64{0, 0}},
		"a callback behind it": {func(m *commands) {
			m.launch(aQueue, 0)
			m.call(spec.Function{Category: "callback"}, map[spec.Field]uint64{spec.FieldStream: aQueue})
			m.sync(aQueue, blocked, delay)
		}, []int64{0, 0}},
		"by an event, with more behind it": {func(m *commands) {
			m.launch(aQueue, 0)
			m.record(7, 10)
			m.launch(aQueue, 0)
			m.now += blocked
			m.took = blocked
			m.call(spec.Function{Category: "sync", Effect: spec.WaitsEvent}, map[spec.Field]uint64{spec.FieldEvent: 7, spec.FieldDelay: delay})
		}, []int64{0, least, -1}},
		"by a stream that waits for its": {func(m *commands) {
			m.launch(aQueue, 0)
			m.record(7, 10)
			m.join(anotherQueue, 7)
			m.sync(anotherQueue, blocked, delay)
		}, []int64{0, least}},
		"a call that ended later had begun before": {func(m *commands) {
			m.launch(aQueue, 0)
			m.sync(aQueue, blocked, delay)
			m.now += 100
			m.took = blocked + 1_000
			m.launch(anotherQueue, 0)
		}, []int64{0, 0, -1}},
		"probes were out before it": {func(m *commands) {
			m.epoch = 2
			m.launch(aQueue, 0)
			m.sync(aQueue, blocked, delay)
			m.launch(aQueue, 0)
			m.sync(aQueue, blocked, delay)
		}, []int64{0, 0, least}},
		"probes were out before the wait": {func(m *commands) {
			m.launch(aQueue, 0)
			m.epoch = 2
			m.sync(aQueue, blocked, delay)
		}, []int64{0, 0}},
	} {
		m := newCommands()
		m.epoch = 1
		m.launch(aQueue, 0)
		m.sync(aQueue, blocked, delay)
		if c.calls(m); !slices.Equal(m.lows(), c.want) {
			t.Errorf("%s: at least %d ns, want %d", name, m.lows(), c.want)
		}
	}
}

func TestAWaitHasAnEdgeFromTheLastWorkOfEachStream(t *testing.T) {
	m := newCommands()
	m.launch(aQueue, 0) // 1
	m.launch(aQueue, 0)
	m.record(7, 10)
	m.join(anotherQueue, 7)
	m.launch(anotherQueue, 0)
	m.launch(anotherQueue, 0) // 6
	m.sync(anotherQueue, 100, 0)
	m.sync(anotherQueue, 100, 0) // finds nothing to wait for
	m.sync(aQueue, 100, 0)
	var from []int64
	for _, f := range m.flows {
		if f.ToSpanID != 7 || f.Kind != "launch_sync" {
			t.Errorf("an edge to call %d, want the wait, number 7", f.ToSpanID)
		}
		from = append(from, f.FromSpanID)
	}
	if slices.Sort(from); !slices.Equal(from, []int64{2, 6}) {
		t.Errorf("edges from %v, want the last of both queues, 2 and 6", from)
	}
}
