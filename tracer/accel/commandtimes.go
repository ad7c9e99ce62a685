package accel

import (
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What runtimes say of single commands: OpenCL and Level Zero give each an event
// of its own, which can be waited for and asked when the command ran. The
// commands of a stream may overtake one another.

// streamOrder is what is known of a stream since it was created.
type streamOrder struct {
	inOrder bool // its commands run one after the other
	timed   bool // its commands can be asked when they ran
	// blocking: a call for it returns when its command is complete.
	blocking bool
}

const (
	// CL_QUEUE_PROPERTIES, the key of the flags in a queue's properties.
	openCLQueueProperties = 0x1093
	// CL_QUEUE_PROFILING_ENABLE
	openCLProfiling = 2
	// ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS
	zeSynchronous = 1
	// ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2: ticks a second, not ns of a tick
	zeProperties12 = 0x00020006
)

// streamOrder reads the flags of a new stream: they are an argument, or a list
// of keys and values, of which the first pair is looked at.
func (c *Call) streamOrder() streamOrder {
	flags, known := c.args.value[spec.FieldFlags], c.args.Has(spec.FieldFlags)
	if c.args.Has(spec.FieldList) {
		switch {
		case c.args.value[spec.FieldList] == 0, c.args.Has(spec.FieldParameter) && c.args.value[spec.FieldParameter] == 0:
			known = true
		case c.args.value[spec.FieldParameter] == openCLQueueProperties && c.args.Has(spec.FieldAnswer):
			flags, known = c.args.value[spec.FieldAnswer], true
		}
	}
	order := streamOrder{inOrder: known && flags&c.f.Parameter == 0}
	if c.f.OrderedBy {
		order.inOrder = known && flags&c.f.Parameter != 0
	}
	order.blocking = c.args.value[spec.FieldBlocking] == zeSynchronous && c.f.Runtime == "level_zero"
	order.timed = known && c.f.Runtime == "opencl" && flags&openCLProfiling != 0
	return order
}

// one is what is known of a single command.
func (l *timeline) one(n uint64, completed bool, p *proof) {
	if n < l.first || n >= l.next() {
		return // its row has gone
	}
	w := &l.work[n-l.first]
	switch {
	case w.submitted > p.began:
	case !completed:
		w.notBefore = max(w.notBefore, p.began)
	default:
		p.of(l, w, p.began)
		p.endStream()
	}
}

// blocked: the call returned when its command was complete, and with it what was
// before it, in a stream that keeps the order.
func (t *deviceTimes) blocked(w *work, line *timeline, c *Call) {
	w.completed = end(c.span)
	if t.orders[c.args.value[spec.FieldStream]].inOrder {
		p := newProof(c)
		t.complete(line, line.next(), c.span.StartNS, p)
		p.prove(c)
	}
}

// deviceInterval is when a command ran, by the device's own clock, ns.
type deviceInterval struct {
	from, to           int64
	fromKnown, toKnown bool
}

func (i *deviceInterval) known() bool { return i.fromKnown && i.toKnown && i.to >= i.from }

// deviceTick is the unit of a device's clock.
type deviceTick struct {
	ns   float64
	bits uint64 // that count before it begins anew
}

// told takes what the device measured.
func (t *deviceTimes) told(c *Call) {
	if c.f.Effect == spec.TellsTick {
		ns := float64(c.args.value[spec.FieldTickNS])
		if c.args.value[spec.FieldParameter] == zeProperties12 {
			ns = 1e9 / max(ns, 1)
		}
		t.tick = deviceTick{ns, c.args.value[spec.FieldTickBits]}
		return
	}
	mark, ok := t.events[c.args.value[spec.FieldEvent]]
	line := t.streams[mark.stream]
	if !ok || !mark.own || line == nil || mark.behind <= line.first || mark.behind > line.next() {
		return
	}
	w := &line.work[mark.behind-1-line.first]
	switch {
	case c.f.Effect == spec.TellsTicks:
		if from, to, ok := t.tick.interval(c.args); ok {
			w.device = deviceInterval{from, to, true, true}
		}
	case !c.args.Has(spec.FieldTime):
	case c.args.value[spec.FieldParameter] == spec.OpenCLStarted:
		w.device.from, w.device.fromKnown = int64(c.args.value[spec.FieldTime]), true
	case c.args.value[spec.FieldParameter] == spec.OpenCLEnded:
		w.device.to, w.device.toKnown = int64(c.args.value[spec.FieldTime]), true
	}
}

// interval is from 0 to how long a command ran; false where the unit is not
// known.
func (tick deviceTick) interval(a *Arguments) (from, to int64, ok bool) {
	if tick.ns <= 0 || tick.bits == 0 || !a.Has(spec.FieldTicksFrom) || !a.Has(spec.FieldTicksTo) {
		return 0, 0, false
	}
	ticks := a.value[spec.FieldTicksTo] - a.value[spec.FieldTicksFrom]
	if tick.bits < 64 {
		ticks &= 1<<tick.bits - 1
	}
	return 0, int64(float64(ticks) * tick.ns), true
}

// setMeasured gives a row its time on the device, as that told it.
func setMeasured(s *event.Span, ns int64) {
	d := s.MakeDetail()
	lo, hi := ns, ns
	d.DeviceTimeLoNS, d.DeviceTimeHiNS, d.DeviceTimeMethod = &lo, &hi, measured
}
