package accel

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// commands gives one runtime's calls to an accelerator, by hand.
type commands struct {
	*batch
	state *State
	now   int64
	id    int64
	// took is how long the next call takes, if not 10 ns.
	took  int64
	epoch uint32
}

func newCommands() *commands {
	b := &batch{}
	return &commands{batch: b, state: New(nil, b)}
}

// call takes 10 ns, unless told else, and ends now; its row is the last one if it does not wait.
func (m *commands) call(f spec.Function, values map[spec.Field]uint64) {
	m.now += 100
	m.id++
	f.Runtime = "opencl"
	r := &Record{PID: 1, TID: 1, EndSeen: true, Epoch: m.epoch}
	var a Arguments
	for field, v := range values {
		a.value[field], a.known[field] = v, true
		f.Values = append(f.Values, spec.Reg(field, 0))
		r.Args = append(r.Args, v)
	}
	took := int64(10)
	if m.took != 0 {
		took, m.took = m.took, 0
	}
	m.spans = append(m.spans, event.Span{ID: m.id, StartNS: m.now - took, DurationNS: took, Status: event.StatusOK,
		Call: &event.Call{Category: f.Category}, Detail: a.Detail(&f)})
	if m.state.Take(&f, r, &a, "", &m.spans[len(m.spans)-1]).Await() {
		m.spans = m.spans[:len(m.spans)-1]
	}
}

// batch takes what a State makes.
type batch struct {
	spans  []event.Span
	memory []event.Memory
	flows  []event.Flow
}

func (b *batch) Span(s event.Span)               { b.spans = append(b.spans, s) }
func (b *batch) Memory(m event.Memory, _ uint64) { b.memory = append(b.memory, m) }
func (b *batch) Flow(f event.Flow)               { b.flows = append(b.flows, f) }
func (b *batch) Name(_ uint32, base *event.Call, name string) *event.Call {
	named := *base
	named.Name = name
	return &named
}

func (b *batch) Recategorize(_ uint32, base *event.Call, category string) *event.Call {
	other := *base
	other.Category = category
	return &other
}

const aQueue, anotherQueue = 0x1000, 0x2000

func (m *commands) queue(handle, flags uint64) {
	m.call(spec.Function{Category: "stream", Effect: spec.OrdersStream, Parameter: 1},
		map[spec.Field]uint64{spec.FieldStream: handle, spec.FieldFlags: flags})
}

func (m *commands) launch(queue, event uint64) {
	m.call(spec.Function{Category: "copy"}, map[spec.Field]uint64{spec.FieldStream: queue, spec.FieldEvent: event})
}

func (m *commands) wait(event uint64) {
	m.call(spec.Function{Category: "sync", Effect: spec.WaitsEvent}, map[spec.Field]uint64{spec.FieldEvent: event})
}

func (m *commands) tell(event, which, time uint64) {
	m.call(spec.Function{Category: "event", Effect: spec.TellsTime},
		map[spec.Field]uint64{spec.FieldEvent: event, spec.FieldParameter: which, spec.FieldTime: time})
}

// bounded counts the commands with a time on the device, once all rows have gone.
func (m *commands) bounded() (n int) {
	m.state.FlushAll()
	for _, s := range m.spans {
		if s.Call.Category == "copy" && s.Detail != nil && s.Detail.DeviceTimeMethod != "" {
			n++
		}
	}
	return n
}

func TestAnEventOfAQueueInOrderBoundsWhatWasBeforeIt(t *testing.T) {
	m := newCommands()
	m.queue(aQueue, 0)
	for event := range uint64(3) {
		m.launch(aQueue, 10+event)
	}
	m.wait(11)
	if n := m.bounded(); n != 2 {
		t.Errorf("%d commands are bounded by the event of the second of three, want 2", n)
	}
}

func TestAnEventOfAQueueOutOfOrderBoundsItsCommandAlone(t *testing.T) {
	for name, known := range map[string]bool{"out of order": true, "from before the recording": false} {
		m := newCommands()
		if known {
			m.queue(aQueue, 1)
		}
		for event := range uint64(3) {
			m.launch(aQueue, 10+event)
		}
		m.wait(11)
		if n := m.bounded(); n != 1 {
			t.Errorf("a queue %s: %d commands are bounded by the event of the second, want that one", name, n)
		}
	}
}

func TestAnEventThatComesAgainIsAnotherCommands(t *testing.T) {
	m := newCommands()
	m.launch(aQueue, 10)
	m.launch(anotherQueue, 10) // the handle, released and made again
	m.wait(10)
	if n := m.bounded(); n != 1 {
		t.Errorf("%d commands are bounded, want the later of two with one handle", n)
	}
}

// record records an event on a queue, in so many ns.
func (m *commands) record(event uint64, took int64) {
	m.took = took
	m.call(spec.Function{Category: "event", Effect: spec.RecordsEvent},
		map[spec.Field]uint64{spec.FieldStream: aQueue, spec.FieldEvent: event})
}

// high is the bound of the only command, -1 if it has none.
func (m *commands) high() int64 {
	m.state.FlushAll()
	for _, s := range m.spans {
		if s.Call.Category == "copy" && s.Detail != nil && s.Detail.DeviceTimeHiNS != nil {
			return *s.Detail.DeviceTimeHiNS
		}
	}
	return -1
}

// TestWorkSubmittedDuringARecordIsOnNoSideOfTheEvent: another thread's call, whose place
// in the stream was not seen.
func TestWorkSubmittedDuringARecordIsOnNoSideOfTheEvent(t *testing.T) {
	const short, long = 10, 150 // long enough to have begun before the call in front ended
	for _, c := range []struct {
		name              string
		after, overlapped int64 // the bound where the calls came one after the other, and where not
		calls             func(m *commands, took int64)
	}{
		{"in front of an event that was waited for", 210, -1, func(m *commands, took int64) {
			m.launch(aQueue, 0)
			m.record(7, took)
			m.wait(7)
		}},
		{"between two events", 501, 100350, func(m *commands, took int64) {
			m.record(7, short)
			m.took = took
			m.launch(aQueue, 0)
			m.record(8, short)
			m.now += 100_000
			m.wait(8)
			m.call(spec.Function{Category: "event", Effect: spec.TellsElapsed},
				map[spec.Field]uint64{spec.FieldStartEvent: 7, spec.FieldEvent: 8, spec.FieldElapsed: 0})
		}},
		{"behind an event that had not passed", 110, 350, func(m *commands, took int64) {
			m.record(7, short)
			m.took = took
			m.launch(aQueue, 0)
			m.call(spec.Function{Category: "event", Effect: spec.QueriesEvent},
				map[spec.Field]uint64{spec.FieldEvent: 7, spec.FieldAnswer: 1})
			m.call(spec.Function{Category: "sync", Effect: spec.WaitsStream}, map[spec.Field]uint64{spec.FieldStream: aQueue})
		}},
	} {
		for took, want := range map[int64]int64{short: c.after, long: c.overlapped} {
			m := newCommands()
			c.calls(m, took)
			if got := m.high(); got != want {
				t.Errorf("%s, by a call of %d ns: at most %d ns, want %d", c.name, took, got, want)
			}
		}
	}
}

func TestTimesThatTheDeviceTellsAreItsCommands(t *testing.T) {
	m := newCommands()
	m.launch(aQueue, 10)
	m.launch(aQueue, 11)
	m.tell(11, spec.OpenCLStarted, 5000)
	m.tell(11, spec.OpenCLEnded, 5777)
	m.tell(10, spec.OpenCLEnded, 9999) // its begin is not asked for
	m.tell(99, spec.OpenCLEnded, 1)    // no command of ours
	m.state.FlushAll()
	measuredTimes := 0
	for _, s := range m.spans {
		if s.Detail == nil || s.Detail.DeviceTimeMethod != measured {
			continue
		}
		if measuredTimes++; *s.Detail.DeviceTimeLoNS != 777 || *s.Detail.DeviceTimeHiNS != 777 {
			t.Errorf("%d to %d ns, want 777", *s.Detail.DeviceTimeLoNS, *s.Detail.DeviceTimeHiNS)
		}
	}
	if measuredTimes != 1 {
		t.Errorf("%d commands have a measured time, want 1", measuredTimes)
	}
}

func TestTicksThatWrapAreCountedOn(t *testing.T) {
	var a Arguments
	a.value[spec.FieldTicksFrom], a.known[spec.FieldTicksFrom] = 0xfffffff0, true
	a.value[spec.FieldTicksTo], a.known[spec.FieldTicksTo] = 0x10, true
	if _, ns, ok := (deviceTick{ns: 10, bits: 32}).interval(&a); !ok || ns != 320 {
		t.Errorf("%d ns, %t, want 320", ns, ok)
	}
	if _, _, ok := (deviceTick{}).interval(&a); ok {
		t.Error("an interval in an unknown unit")
	}
}

func TestAMemoryObjectIsFreeWithItsLastHolder(t *testing.T) {
	m := newCommands()
	object := func(action string) {
		m.call(spec.Function{Category: "alloc", Memory: &spec.Memory{Space: "device", Level: "driver", Action: action}},
			map[spec.Field]uint64{spec.FieldAddress: 0x500})
	}
	object("release") // of before the recording: whether it was the last is unknown
	object("alloc")
	object("retain")
	object("release")
	object("release")
	object("release")
	var actions []string
	for _, row := range m.memory {
		actions = append(actions, row.Action)
	}
	if len(actions) != 2 || actions[0] != "alloc" || actions[1] != "free" {
		t.Errorf("rows of memory: %v, want one alloc and one free", actions)
	}
}
