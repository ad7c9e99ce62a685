package accel

import (
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What a wait proves: which work it was that ended it, and, where that was one piece of
// work and a device that had nothing else to do, how long that took at least. While the
// thread was blocked the device worked.

const (
	// flowWait is from work on a device to the wait that it ended.
	flowWait   = "launch_sync"
	methodWait = "stream_order"
	// waking is more than a wait takes that has nothing to wait for, and than a device
	// takes to begin, and to have who waits for it woken, ns. On a virtual machine to wake
	// an idle processor has been seen to take over 100 µs, which run_delay does not count:
	// it begins when that processor has taken the thread into its queue.
	waking = 250_000
	// mostJoins of a stream are kept: those before a wait for it are none any more.
	mostJoins = 1 << 8
)

// proof is what a call has shown of work: that it is complete.
type proof struct {
	began, ended int64
	epoch        uint32
	shown        []*work // to be complete, for the first time
	last         []int64 // of each stream the span of the last of them
	streams      int     // of shown, those of streams that are through
	more         bool    // it may have waited for something else, too
	blocked      int64   // for how long it was, because of what it waited for
	dark         []home  // of streams whose work is not all known, before it
	unsettled    bool    // one of those is what it waited for
}

func newProof(c *Call) *proof {
	p := &proof{began: c.span.StartNS, ended: end(c.span), epoch: c.r.Epoch, blocked: blocked(c)}
	if p.blocked > 0 {
		p.dark = c.times.streams.dark(p.epoch)
	}
	return p
}

// of takes work that is complete if it was submitted before a time.
func (p *proof) of(line *timeline, w *work, before int64) {
	switch {
	case w.completed != 0:
	case w.submitted <= before:
		w.completed = p.ended
		p.shown = append(p.shown, w)
		line.open--
	case w.span.StartNS < p.ended:
		p.more = true
	}
}

// endStream: what comes is of another stream.
func (p *proof) endStream() {
	if n := len(p.shown); n > p.streams {
		p.last, p.streams = append(p.last, p.shown[n-1].span.ID), n
	}
}

// since reports whether work was shown to be complete that was submitted in the epoch of
// the call: all that the streams were given since was seen.
func (p *proof) since() bool {
	n := len(p.shown)
	return n > 0 && p.shown[n-1].epoch == p.epoch
}

// lower is what a stream's work is known by to have had the device for itself.
type lower struct {
	home    home
	open    int    // so much of its work is not known to be complete
	settled uint32 // the epoch in which it was through, and from when on nothing is missed; 0: none
	strange int64  // when it was last given what is no work of the device, and is not through; 0: it has none
	orders  bool   // a default stream: others wait for it, and it for others
	joins   []join
}

// pass: the stream is through with what it was given before.
func (l *timeline) pass(before int64) {
	if l.strange <= before {
		l.strange = 0
	}
}

func (l *timeline) settle(p *proof) {
	if p.since() {
		l.settled = p.epoch
	}
}

// join is where a stream was told to wait for an event.
type join struct {
	at        uint64 // the work before it was there already
	submitted int64  // when the job asked for that
	mark      eventMark
}

func (l *timeline) join(c *Call, mark eventMark, known bool) {
	switch {
	case c.graphs.streams[c.args.value[spec.FieldStream]] != nil: // an edge of the graph
	case !known || mark.submitted > c.span.StartNS || len(l.joins) >= mostJoins:
		l.strange = end(c.span)
	default:
		l.joins = append(l.joins, join{l.next(), end(c.span), mark})
	}
}

// joined: a stream is through with what it was told to wait for.
func (t *deviceTimes) joined(line *timeline, behind uint64, began int64, p *proof) {
	var through []join
	kept := line.joins[:0]
	for _, j := range line.joins {
		// A request after the last work is in front of a wait that began later.
		if j.submitted <= began && (j.at < behind || behind == line.next()) {
			through = append(through, j)
		} else {
			kept = append(kept, j)
		}
	}
	line.joins = kept
	for _, j := range through {
		if other := t.streams[j.mark.stream]; other != nil {
			// What it did before the recording is not known, and may have been waited for.
			p.more = p.more || other.settled != p.epoch
			t.complete(other, j.mark.behind, j.mark.began, p)
		}
	}
}

// alone notes whether work has the device for itself, and takes that back of other work
// that it was submitted before: its call was not seen to end then.
func (t *deviceTimes) alone(line *timeline, w *work, epoch uint32) {
	w.epoch = epoch
	if one := t.lone[w.home]; one.line != nil && one.number >= one.line.first {
		other := &one.line.work[one.number-one.line.first]
		if w.span.StartNS < max(other.submitted, other.completed) {
			other.alone, other.atLeast = false, 0
		}
	}
	w.alone = line.open == 0 && line.settled == epoch && t.idle(w.home, epoch)
	if w.alone {
		t.lone[w.home] = lone{line, line.next()}
	}
	line.home = w.home
	if w.completed == 0 {
		line.open++
	}
}

// lone is the last work that had a device for itself.
type lone struct {
	line   *timeline
	number uint64
}

// idle reports whether a device has nothing to do, as far as the calls say that were seen.
func (t *deviceTimes) idle(where home, epoch uint32) bool {
	for _, line := range t.streams {
		used := line.next() > 0 || line.strange != 0 || len(line.joins) > 0
		if used && !line.place().elsewhere(where) && (line.settled != epoch || line.open > 0) {
			return false
		}
	}
	return true
}

// beside is how much other streams of a device have to do, and whether a wait may have been
// for that, too: where there is a default stream, which waits for what others were given, and
// they for it.
func (t timelines) beside(where home) (n int, ordered bool) {
	for _, line := range t {
		if line.place().elsewhere(where) {
			continue
		}
		ordered = ordered || line.orders
		n += line.open + len(line.joins)
		if line.strange != 0 {
			n++
		}
	}
	return n, ordered
}

// prove draws what follows from what the call has shown.
func (p *proof) prove(c *Call) {
	if c.f.Category == "event" {
		return // it asked, and did not wait
	}
	for _, from := range p.last {
		c.state.rows.Flow(event.Flow{TSNS: p.began, FromSpanID: from, ToSpanID: c.span.ID, Kind: flowWait, Method: methodWait})
	}
	if p.blocked == 0 {
		return
	}
	if len(p.shown) == 1 && !p.more && p.since() && p.shown[0].alone {
		if others, ordered := c.times.streams.beside(p.shown[0].home); others == 0 || !ordered {
			p.shown[0].atLeast = p.blocked
		}
	}
	c.times.busy.note(c, p)
}
