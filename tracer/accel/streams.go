package accel

import (
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// deviceTimes bounds the time that work took on the device by what the host saw:
// it cannot have begun before its call did, nor before an event in front of it
// was seen not to have passed, and it was complete when a wait or a query behind
// it said so. The elapsed time between two events, which the device measured, is
// a bound for the work between them. No bound is guessed. The host does not see
// work begin: below, it is 0 but for work that a wait was for alone (proof.go).
//
// A row waits here for its bound, a while.
type deviceTimes struct {
	streams timelines
	events  map[uint64]eventMark
	orders  map[uint64]streamOrder // by handle, of streams that may run out of order
	lone    map[home]lone
	busy    busyTill
	tick    deviceTick
	beyond  bool  // calls may return before their work is complete
	now     int64 // the latest time seen
}

// streamKey tells streams apart. The default streams have a handle that is the
// same on each device, and in some variants on each thread.
type streamKey struct {
	handle uint64
	home   home
	tid    uint32
}

// home is where a thread's work goes: its context and device, or, while those
// are not known, the thread itself, which has not changed them.
type home struct {
	context uint64
	device  int32
	tid     uint32
}

// timeline is the work of one stream, in its order. Work number n is
// work[n-first].
type timeline struct {
	work  []work
	first uint64
	lower
}

func (t *timeline) next() uint64 { return t.first + uint64(len(t.work)) }

type work struct {
	span      event.Span
	home      home
	submitted int64 // when its call had returned
	notBefore int64
	completed int64  // when it was first seen to be complete, 0 before
	between   int64  // at most, by two events around it; 0 if not known
	event     uint64 // its own, 0 if it has none
	device    deviceInterval
	timed     bool // its stream tells times: they may be asked for
	epoch     uint32
	alone     bool  // nothing else was on the device when it was submitted
	atLeast   int64 // what it took
}

// eventMark stands behind the work of a stream up to a number. Of work that another
// thread submitted to the stream while the event was being recorded, it is unknown
// on which side it is.
type eventMark struct {
	stream    streamKey
	behind    uint64
	began     int64 // when its call did
	submitted int64 // when that had returned
	own       bool  // of the last command behind it alone
}

// follows reports whether work is certainly behind the
func (m *eventMark) follows(w *work) bool { return w.span.StartNS >= m.submitted }

// precedes reports whether work is certainly in front of it.
func (m *eventMark) precedes(w *work) bool { return w.submitted <= m.began }

const (
	bounded  = "bounded"
	measured = "measured"

	// How long a row waits for its bound, and for events around it, ns.
	waitForBound  = 10e9
	waitForEvents = 1e9
	// How much work of a stream may wait.
	maxTimeline = 1 << 16
	// What cuEventElapsedTime resolves, by its documentation, ns.
	eventResolution = 500
)

func newDeviceTimes() deviceTimes {
	return deviceTimes{streams: timelines{}, events: map[uint64]eventMark{}, orders: map[uint64]streamOrder{}, lone: map[home]lone{},
		busy: busyTill{}}
}

func (c *Call) home() home {
	at := c.devices.current(c.tid)
	switch {
	case at.device != nil:
		return home{context: at.context, device: *at.device}
	case at.context != 0:
		return home{context: at.context, device: -1}
	}
	return home{device: -1, tid: c.tid}
}

// lastDefaultStream: 0 is the default stream, 1 the legacy one, 2 the thread's own, which
// alone has no order with other streams.
const lastDefaultStream = 2

func (c *Call) stream() streamKey {
	handle := c.args.value[spec.FieldStream]
	if handle > lastDefaultStream {
		return streamKey{handle: handle}
	}
	key := streamKey{handle: handle, home: c.home()}
	if c.f.PerThread || handle == lastDefaultStream {
		key.handle, key.tid = lastDefaultStream, c.tid
	}
	return key
}

func (t *deviceTimes) line(key streamKey) *timeline {
	line, ok := t.streams[key]
	if !ok {
		line = &timeline{lower: lower{orders: key.handle < lastDefaultStream}}
		t.streams[key] = line
	}
	return line
}

// waits reports whether the call submitted work to the device whose end is still to be
// seen.
func (c *Call) waits() bool {
	if c.span.Status != event.StatusOK || c.isCaptured() || !c.args.Has(spec.FieldStream) {
		return false
	}
	switch c.f.Category {
	case "launch", "copy", "set":
		return true
	}
	return c.f.Effect == spec.LaunchesGraph || c.f.Effect == spec.ExecutesLists
}

// enqueue keeps a call's row until its work is complete.
func (t *deviceTimes) enqueue(c *Call) {
	line := t.line(c.stream())
	w := work{span: *c.span, home: c.home(), submitted: end(c.span), notBefore: c.span.StartNS}
	w.timed = t.orders[c.args.value[spec.FieldStream]].timed
	if event := c.args.value[spec.FieldEvent]; event != 0 {
		w.event = event
		t.events[event] = eventMark{stream: c.stream(), behind: line.next() + 1, began: c.span.StartNS, submitted: w.submitted, own: true}
	}
	if c.args.value[spec.FieldBlocking] != 0 || t.orders[c.args.value[spec.FieldStream]].blocking {
		t.blocked(&w, line, c)
	}
	t.alone(line, &w, c.r.Epoch)
	line.work = append(line.work, w)
}

func end(s *event.Span) int64 { return s.StartNS + max(s.DurationNS, 0) }

// apply takes what a call says of work that is complete, or is not.
func (t *deviceTimes) apply(c *Call) {
	began, ended := c.span.StartNS, end(c.span)
	completed := c.span.Status == event.StatusOK
	switch c.f.Effect {
	case spec.RecordsEvent:
		if c.args.value[spec.FieldCount] > 0 { // behind some events only
			delete(t.events, c.args.value[spec.FieldEvent])
			return
		}
		key := c.stream()
		t.events[c.args.value[spec.FieldEvent]] = eventMark{key, t.line(key).next(), began, ended, false}
	case spec.DestroysEvent:
		delete(t.events, c.args.value[spec.FieldEvent])
	case spec.WaitsStream, spec.QueriesStream:
		if line := t.streams[c.stream()]; completed && line != nil {
			p := newProof(c)
			t.complete(line, line.next(), began, p)
			p.prove(c)
		}
	case spec.WaitsEvent, spec.QueriesEvent:
		if c.args.Has(spec.FieldAnswer) {
			completed = int32(c.args.value[spec.FieldAnswer]) <= 0 // of OpenCL: complete, or ended by an error
		}
		p := newProof(c)
		for _, event := range c.all(spec.FieldEvent) {
			t.event(t.events[event], completed, p)
		}
		p.prove(c)
	case spec.StreamWaits:
		mark, known := t.events[c.args.value[spec.FieldEvent]]
		t.line(c.stream()).join(c, mark, known)
	case spec.OrdersStream:
		t.orders[c.args.value[spec.FieldStream]] = c.streamOrder()
	case spec.RunsUntilReturn:
		if completed && !t.beyond {
			setBound(c.span, 0, ended-began)
		}
	case spec.RunsBeyondReturn:
		t.beyond = true
	case spec.TellsTime, spec.TellsTicks, spec.TellsTick:
		t.told(c)
	case spec.NoEffect:
		if c.f.Category == "callback" && c.args.Has(spec.FieldStream) {
			t.line(c.stream()).strange = ended
		}
	case spec.WaitsContext, spec.WaitsDevice:
		p := newProof(c)
		t.everything(c.waitedFor(), p)
		p.prove(c)
	case spec.TellsElapsed:
		t.elapsed(c)
	}
}

// blocking notes what a copy to the host proves that returns when it is done:
// its own time, and that of what was on the default stream before it.
func (t *deviceTimes) blocking(c *Call) {
	if c.f.Category != "copy" || c.span.Status != event.StatusOK || c.f.Direction != "device_to_host" || c.args.Has(spec.FieldStream) {
		return
	}
	began, ended := c.span.StartNS, end(c.span)
	if line := t.streams[c.stream()]; line != nil {
		p := newProof(c)
		t.complete(line, line.next(), began, p)
		p.prove(c)
	}
	setBound(c.span, 0, ended-began)
}

// waitedFor is the context that a wait names, else the current one.
func (c *Call) waitedFor() home {
	context := c.args.value[spec.FieldContext]
	if context == 0 {
		return c.home()
	}
	h := home{context: context, device: -1}
	if device := c.devices.contexts[context]; device != nil {
		h.device = *device
	}
	return h
}

func (t *deviceTimes) event(mark eventMark, completed bool, p *proof) {
	line := t.streams[mark.stream]
	if line == nil || mark.submitted > p.began {
		p.more = true
		return // not recorded here, or again meanwhile
	}
	if mark.own && !t.orders[mark.stream.handle].inOrder {
		line.one(mark.behind-1, completed, p)
		return
	}
	if mark.own {
		mark.behind-- // its own command is certain
		line.one(mark.behind, completed, p)
	}
	if completed {
		t.complete(line, mark.behind, mark.began, p)
		return
	}
	for i := range line.work {
		if w := &line.work[i]; line.first+uint64(i) >= mark.behind && mark.follows(w) {
			w.notBefore = max(w.notBefore, p.began)
		}
	}
}

// everything of one context was complete when a call returned that waited for it.
func (t *deviceTimes) everything(where home, p *proof) {
	for _, line := range t.streams {
		for i := range line.work {
			if w := &line.work[i]; w.home == where {
				p.of(line, w, p.began)
			}
		}
		p.more = p.more || line.strange != 0
		p.endStream()
	}
	for _, line := range t.streams {
		if line.home == where {
			line.pass(p.began)
			line.joins = slices.DeleteFunc(line.joins, func(j join) bool { return j.submitted <= p.began })
			line.settle(p)
		}
	}
}

// complete marks the work before a number, submitted before the wait, or the record of
// the event that it waits for, began, and what the stream had been told to wait for.
func (t *deviceTimes) complete(line *timeline, behind uint64, began int64, p *proof) {
	for i := range line.work {
		if line.first+uint64(i) >= behind {
			break
		}
		p.of(line, &line.work[i], began)
	}
	p.endStream()
	p.more = p.more || line.strange != 0
	p.unsettled = p.unsettled || line.settled != p.epoch
	line.pass(began)
	line.settle(p)
	t.joined(line, behind, began, p)
}

// elapsed is what the device measured between two events: it bounds what lies
// between them on one stream, and is the measured time of the call that tells it.
func (t *deviceTimes) elapsed(c *Call) {
	if !c.args.Has(spec.FieldElapsed) {
		return
	}
	ns := float64(math.Float32frombits(uint32(c.args.value[spec.FieldElapsed]))) * 1e6
	if !(ns >= 0 && ns < math.MaxInt64/2) {
		return
	}
	// A float has 24 bits: what it rounds off grows with the time.
	off := eventResolution + ns/(1<<23)
	lo, hi := int64(max(ns-off, 0)), int64(ns+off)+1
	detail := c.detail()
	detail.DeviceTimeLoNS, detail.DeviceTimeHiNS, detail.DeviceTimeMethod = &lo, &hi, measured
	from, to := t.events[c.args.value[spec.FieldStartEvent]], t.events[c.args.value[spec.FieldEvent]]
	line := t.streams[from.stream]
	if line == nil || from.stream != to.stream {
		return
	}
	for n := max(from.behind, line.first); n < min(to.behind, line.next()); n++ {
		if w := &line.work[n-line.first]; from.follows(w) && to.precedes(w) && (w.between == 0 || hi < w.between) {
			w.between = hi
		}
	}
}

// flushExpired lets rows go whose bound is known or will not come.
func (t *deviceTimes) flushExpired(rows Rows) {
	for _, line := range t.streams {
		n := 0
		for n < len(line.work) && line.work[n].ready(t, len(line.work)-n) {
			n++
		}
		line.letGo(rows, t, n)
	}
}

func (t *deviceTimes) flushAll(rows Rows) {
	for _, line := range t.streams {
		line.letGo(rows, t, len(line.work))
	}
}

func (w *work) ready(t *deviceTimes, waiting int) bool {
	switch {
	case waiting > maxTimeline, t.now-w.submitted > waitForBound:
		return true
	case w.completed == 0:
		return false
	}
	if w.device.known() {
		return true
	}
	if w.timed {
		return false
	}
	return len(t.events) == 0 || w.between != 0 || t.now-w.completed > waitForEvents
}

// letGo hands the first rows to the sink's batch.
func (l *timeline) letGo(rows Rows, t *deviceTimes, n int) {
	for i := range l.work[:n] {
		w := &l.work[i]
		if w.completed == 0 {
			l.open, l.settled = l.open-1, 0
		} else {
			hi := w.completed - w.notBefore
			if w.between != 0 {
				hi = min(hi, w.between)
			}
			setBound(&w.span, min(w.atLeast, hi), hi)
		}
		if w.device.known() {
			setMeasured(&w.span, w.device.to-w.device.from)
		}
		if mark, ok := t.events[w.event]; ok && w.event != 0 && mark.own && mark.behind == l.first+uint64(i)+1 {
			delete(t.events, w.event)
		}
		rows.Span(w.span)
	}
	l.work = l.work[:copy(l.work, l.work[n:])]
	l.first += uint64(n)
}

// setBound gives a row its time on the device.
func setBound(s *event.Span, lo, hi int64) {
	hi = max(hi, 0)
	d := s.MakeDetail()
	d.DeviceTimeLoNS, d.DeviceTimeHiNS, d.DeviceTimeMethod = &lo, &hi, bounded
}
