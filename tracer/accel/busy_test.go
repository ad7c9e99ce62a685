package accel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// busy are the lower bounds in the rows of the waits, in their order; 0: none.
func (m *commands) busy() (least []int64) {
	for _, s := range m.spans {
		if s.Call.Category != "sync" {
			continue
		}
		if s.Detail != nil && s.Detail.Wait != nil {
			least = append(least, *s.Detail.Wait.DeviceBusyLoNS)
		} else {
			least = append(least, 0)
		}
	}
	return least
}

// TestAWaitSaysHowLongTheDeviceWasBusy: whichever of the work it was. The first says
// nothing, as what was there before the recording is not known; of the others it depends.
func TestAWaitSaysHowLongTheDeviceWasBusy(t *testing.T) {
	const blocked, delay = 1_000_000, 100_000
	const least = blocked - delay - waking
	callback := spec.Function{Category: "callback"}
	on := func(queue uint64) map[spec.Field]uint64 { return map[spec.Field]uint64{spec.FieldStream: queue} }
	for name, c := range map[string]struct {
		calls func(m *commands)
		want  []int64
	}{
		"one": {func(m *commands) { m.launch(aQueue, 0); m.sync(aQueue, blocked, delay) }, []int64{0, least}},
		"two of one stream": {func(m *commands) { m.launch(aQueue, 0); m.launch(aQueue, 0); m.sync(aQueue, blocked, delay) },
			[]int64{0, least - between}},
		"nothing":                 {func(m *commands) { m.sync(aQueue, blocked, delay) }, []int64{0, 0}},
		"a wait for a processor":  {func(m *commands) { m.launch(aQueue, 0); m.sync(aQueue, blocked, blocked-waking) }, []int64{0, 0}},
		"more delay than it took": {func(m *commands) { m.launch(aQueue, 0); m.sync(aQueue, blocked, 2*blocked) }, []int64{0, 0}},
		"another stream that was through": {func(m *commands) {
			m.launch(anotherQueue, 0)
			m.sync(anotherQueue, blocked, delay)
			m.launch(anotherQueue, 0)
			m.launch(aQueue, 0)
			m.launch(aQueue, 0)
			m.sync(aQueue, blocked, delay)
		}, []int64{0, 0, least - 2*between}},
		"beside a stream of unknown end": {func(m *commands) {
			m.launch(anotherQueue, 0)
			m.launch(aQueue, 0)
			m.sync(aQueue, blocked, delay)
		}, []int64{0, 0}},
		"a callback in front": {func(m *commands) {
			m.call(callback, on(aQueue))
			m.launch(aQueue, 0)
			m.sync(aQueue, blocked, delay)
			m.launch(aQueue, 0)
			m.sync(aQueue, blocked, delay)
		}, []int64{0, 0, least}},
		"a callback of another stream, which a default stream waits for": {func(m *commands) {
			m.call(callback, on(anotherQueue))
			m.launch(aQueue, 0)
			m.sync(aQueue, blocked, delay)
		}, []int64{0, 0}},
		"behind the event of a stream that was not seen to be through": {func(m *commands) {
			m.record(7, 10)
			m.call(spec.Function{Category: "event", Effect: spec.RecordsEvent}, map[spec.Field]uint64{spec.FieldStream: anotherQueue,
				spec.FieldEvent: 8})
			m.join(aQueue, 8)
			m.launch(aQueue, 0)
			m.sync(aQueue, blocked, delay)
		}, []int64{0, 0}},
		"probes were out before it": {func(m *commands) {
			m.epoch = 2
			m.launch(aQueue, 0)
			m.sync(aQueue, blocked, delay)
			m.launch(aQueue, 0)
			m.sync(aQueue, blocked, delay)
		}, []int64{0, 0, least}},
		"two threads at the same time": {func(m *commands) {
			m.launch(aQueue, 0)
			m.record(7, 10)
			m.launch(aQueue, 0)
			m.now += blocked
			m.took = blocked
			m.call(spec.Function{Category: "sync", Effect: spec.WaitsEvent}, map[spec.Field]uint64{spec.FieldEvent: 7, spec.FieldDelay: 0})
			m.now += 500_000 - 100
			m.took = blocked
			m.call(spec.Function{Category: "sync", Effect: spec.WaitsStream}, map[spec.Field]uint64{spec.FieldStream: aQueue, spec.FieldDelay: 0})
		}, []int64{0, blocked - waking - between, 500_000 - waking}},
	} {
		m := newCommands()
		m.epoch = 1
		m.launch(aQueue, 0)
		m.sync(aQueue, blocked, delay)
		if c.calls(m); !slices.Equal(m.busy(), c.want) {
			t.Errorf("%s: the device was busy for at least %d ns, want %d", name, m.busy(), c.want)
		}
	}
}

// simulated is a device of some streams, one of which may be a default stream that waits for
// all others and they for it, and a thread that gives it work. It begins late, takes a moment
// between two pieces and lets who waits for it go on late, as the bounds allow for.
type simulated struct {
	*commands
	ordered  bool // the first is a default stream
	r        *rand.Rand
	through  []int64            // of each stream, when it will be
	began    map[int64][2]int64 // of each piece, by its span
	events   map[uint64]int64   // when each will have passed
	recorded []uint64
}

func newSimulated(seed uint64, ordered bool) *simulated {
	s := &simulated{commands: newCommands(), ordered: ordered, r: rand.New(rand.NewPCG(seed, 1)), through: make([]int64, 4),
		began: map[int64][2]int64{}, events: map[uint64]int64{}}
	s.epoch, s.now = 1, 1_000_000
	return s
}

func (s *simulated) below(n int64) int64 { return s.r.Int64N(n) }

// until makes a call that takes until then.
func (s *simulated) until(then int64, f spec.Function, values map[spec.Field]uint64) {
	s.took = then - s.now
	s.now = then - 100
	s.call(f, values)
}

// soon makes one that takes some microseconds.
func (s *simulated) soon(f spec.Function, values map[spec.Field]uint64) {
	s.until(s.now+1000+s.below(9000), f, values)
}

func (s *simulated) handle(stream int) uint64 {
	if stream == 0 && s.ordered {
		return 0
	}
	return 0x1000 * uint64(1+stream)
}

// after is when what is given to a stream now can begin.
func (s *simulated) after(stream int) int64 {
	switch {
	case !s.ordered:
		return s.through[stream]
	case stream == 0:
		return slices.Max(s.through)
	}
	return max(s.through[stream], s.through[0])
}

// end is when a stream is through: the default stream as one that has been given a mark.
func (s *simulated) end(stream int) int64 {
	if stream == 0 {
		return s.after(0)
	}
	return s.through[stream]
}

// give has a stream do something, of the device or of the host.
func (s *simulated) give(stream int, ns int64, host bool) {
	call := spec.Function{Category: "copy"}
	if host {
		call.Category = "callback"
	}
	s.soon(call, map[spec.Field]uint64{spec.FieldStream: s.handle(stream)})
	begin := s.after(stream)
	if begin <= s.now {
		begin = s.now + s.below(100_000)
	} else {
		begin += s.below(between)
	}
	s.through[stream] = begin + ns
	if !host {
		s.began[s.id] = [2]int64{begin, begin + ns}
	}
}

// wait blocks until then, and a little longer, for part of which the thread has no processor.
func (s *simulated) wait(then int64, effect spec.Effect, values map[spec.Field]uint64) {
	ended := max(s.now+1000+s.below(9000), then+s.below(100_000))
	if s.below(3) == 0 {
		delay := s.below(3_000_000)
		ended, values[spec.FieldDelay] = ended+delay, uint64(delay)
	} else {
		values[spec.FieldDelay] = 0
	}
	s.until(ended, spec.Function{Category: "sync", Effect: effect}, values)
}

func (s *simulated) move() {
	stream := int(s.below(int64(len(s.through))))
	on := map[spec.Field]uint64{spec.FieldStream: s.handle(stream)}
	switch n := s.below(40); {
	case n < 18:
		s.give(stream, 20_000+s.below(2_000_000), false)
	case n == 18:
		s.give(stream, s.below(5_000_000), true)
	case n < 23:
		event := 1 + uint64(s.below(6))
		s.soon(spec.Function{Category: "event", Effect: spec.RecordsEvent}, map[spec.Field]uint64{spec.FieldStream: s.handle(stream),
			spec.FieldEvent: event})
		s.events[event] = s.after(stream)
		s.recorded = append(s.recorded, event)
	case n < 26 && len(s.recorded) > 0:
		event := s.recorded[s.below(int64(len(s.recorded)))]
		s.soon(spec.Function{Category: "event", Effect: spec.StreamWaits}, map[spec.Field]uint64{spec.FieldStream: s.handle(stream),
			spec.FieldEvent: event})
		s.through[stream] = max(s.through[stream], s.events[event])
	case n < 29 && len(s.recorded) > 0:
		event := s.recorded[s.below(int64(len(s.recorded)))]
		s.wait(s.events[event], spec.WaitsEvent, map[spec.Field]uint64{spec.FieldEvent: event})
	case n < 33:
		s.wait(s.end(stream), spec.WaitsStream, on)
	case n < 36:
		s.wait(slices.Max(s.through), spec.WaitsContext, map[spec.Field]uint64{})
	case n == 36 && s.below(4) == 0: // probes are out for a while, and streams have work that was not seen
		s.epoch++
		s.through[stream] = max(s.after(stream), s.now) + s.below(4_000_000)
	default:
		s.now += s.below(500_000)
	}
}

// busyIn is how long the device worked between two moments.
func (s *simulated) busyIn(from, to int64) (ns int64) {
	var pieces [][2]int64
	for _, p := range s.began {
		pieces = append(pieces, p)
	}
	slices.SortFunc(pieces, func(a, b [2]int64) int { return int(a[0] - b[0]) })
	for _, p := range pieces {
		if begin, finish := max(p[0], from), min(p[1], to); finish > begin {
			ns, from = ns+finish-begin, finish
		}
	}
	return ns
}

// check holds all claims against what the device did, and returns how many there are of
// pieces and of waits, and what share of the device's time those of the waits are.
func (s *simulated) check(t *testing.T, what string) (pieces, waits int, share float64) {
	t.Helper()
	s.state.FlushAll()
	sum := int64(0)
	for _, one := range s.spans {
		d := one.Detail
		if d == nil {
			d = &event.Detail{}
		}
		if truth, known := s.began[one.ID]; known && d.DeviceTimeLoNS != nil {
			if took := truth[1] - truth[0]; took < *d.DeviceTimeLoNS || took > *d.DeviceTimeHiNS {
				t.Errorf("%s: a piece took %d ns, outside of [%d, %d]", what, took, *d.DeviceTimeLoNS, *d.DeviceTimeHiNS)
			}
			if *d.DeviceTimeLoNS > 0 {
				pieces++
			}
		}
		if d.Wait != nil {
			if truth := s.busyIn(one.StartNS, end(&one)); truth < *d.Wait.DeviceBusyLoNS {
				t.Errorf("%s: the device was busy for %d ns of a wait of %d, less than %d", what, truth, one.DurationNS, *d.Wait.DeviceBusyLoNS)
			}
			waits, sum = waits+1, sum+*d.Wait.DeviceBusyLoNS
		}
	}
	truth := s.busyIn(0, 1<<62)
	if sum > truth {
		t.Errorf("%s: the device was busy for %d ns, the waits add up to %d", what, truth, sum)
	}
	return pieces, waits, float64(sum) / float64(truth)
}

// TestBoundsHoldOfASimulatedDevice: lower bounds and upper ones, of pieces of work and of
// the device, in whatever order a job's calls come.
func TestBoundsHoldOfASimulatedDevice(t *testing.T) {
	pieces, waits := 0, 0
	for seed := range uint64(400) {
		s := newSimulated(seed, seed%2 == 0)
		for range 300 {
			s.move()
		}
		p, w, _ := s.check(t, fmt.Sprint("seed ", seed))
		pieces, waits = pieces+p, waits+w
	}
	if pieces < 400 || waits < 1000 {
		t.Errorf("%d pieces of work and %d waits have a lower bound, want many", pieces, waits)
	}
	t.Logf("%d pieces of work and %d waits have a lower bound", pieces, waits)
}

// TestASimulatedTrainingStepBoundsTheDevice: forty pieces a step, and one wait at its end.
func TestASimulatedTrainingStepBoundsTheDevice(t *testing.T) {
	s := newSimulated(1, true)
	for range 100 {
		for range 40 {
			s.give(0, 50_000+s.below(500_000), false)
		}
		s.wait(s.after(0), spec.WaitsStream, map[spec.Field]uint64{spec.FieldStream: 0})
	}
	if pieces, waits, share := s.check(t, "training"); pieces != 0 || waits != 99 || share < 0.75 {
		t.Errorf("%d pieces, %d waits and %.2f of the device's time have a lower bound, want none, 99, and most of it", pieces, waits, share)
	} else {
		t.Logf("at least %.2f of the device's time", share)
	}
}
