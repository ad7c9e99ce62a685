package timeline

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// A recording of the host has bounds of the time that work took on a device, and the answers
// are made twice: as if each piece had taken the least time that it can have taken, and the
// most. Where it ran is in neither case known; the assumptions are below.

// End is the end of the bounds that a graph is made with.
type End int

// The ends. A graph of points in time is the same at both.
const (
	Least End = iota
	Most
)

// Bounds are of the time that what a call handed over took on a device, in ns.
type Bounds struct {
	Least, Most int64
	// Ended is when a wait had shown it to be done, 0 where that is not known apart.
	Ended int64
}

// bounded makes the bounds of a row, nil where it handed nothing over that they are known of.
func bounded(s Span, least, most int64, known bool) *Bounds {
	handed := s.Layer == "collective" || s.Layer == "runtime" && slices.Contains([]string{"launch", "graph", "copy", "set"}, s.Category)
	if !known || !handed || least < 0 || most < least {
		return nil
	}
	return &Bounds{Least: least, Most: most}
}

// endedSQL is which waits ended with which work.
const endedSQL = `SELECT f.from_span_id, min(w.ts_ns + w.duration_ns) FROM flow f JOIN span w ON w.session_id = f.session_id
	AND w.span_id = f.to_span_id
WHERE f.kind = 'launch_sync' AND w.pid = %d AND w.ts_ns >= %d AND w.duration_ns >= 0 AND f.from_span_id IS NOT NULL GROUP BY 1`

// ended finds when the work of the spans was seen to be done; nothing is read where none has bounds.
func ended(ctx context.Context, db *dataset.DB, t Thread, all ...[]Span) error {
	of := map[int64]*Bounds{}
	first := int64(math.MaxInt64)
	for _, spans := range all {
		for _, s := range spans {
			if s.Bounds != nil {
				of[s.ID], first = s.Bounds, min(first, s.Begin)
			}
		}
	}
	if len(of) == 0 {
		return nil
	}
	err := db.Each(ctx, fmt.Sprintf(endedSQL, t.PID, first), func(v []driver.Value) error {
		id, _ := v[0].(int64)
		if b := of[id]; b != nil {
			b.Ended, _ = v[1].(int64)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading what was waited for: %w", err)
	}
	return nil
}

// handed is a piece of work that only bounds are known of.
type handed struct {
	Span
	ended int64 // it was done by then
	alike int   // it and those behind it on its stream that were seen to be done with it
	most  int64 // that these can have taken together
	// At the least: what the wait that saw it done tells of it, and which wait that is.
	least int64
	wait  *Span
}

// measured: the device said how long it took, though not when.
func (h *handed) measured() bool { return h.Bounds.Least == h.Bounds.Most }

// place adds rows of devices for the work that only bounds are known of, as it can have run:
//
// At the least, work begins as soon as it was handed over and what was before it on its stream
// is done; if a wait told that it, or some of what it waited for, took some time at least, with
// that wait. What a wait for several pieces tells is shared evenly by those of one stream.
//
// At the most, a stream is at work from when something is handed over until that was seen to be
// done. What was seen to be done together shares that time evenly, since nobody saw which piece
// took how much of it; what the device measured itself lies at the end of it.
//
// A step's time on either end is the same: where it ends is measured. What was handed over
// before the step began is a row of a device alone.
func place(spans []Span, begin int64, end End) []Span {
	queues := map[lane][]*handed{}
	for _, s := range spans {
		if s.OnDevice() {
			return spans // points in time
		}
		if s.Bounds != nil {
			on := lane{s.Device, max(s.Stream, 0)} // a call that names none is of the default stream
			queues[on] = append(queues[on], &handed{Span: s})
		}
	}
	if len(queues) == 0 {
		return spans
	}
	waits := waitsByEnd(spans)
	for _, q := range queues {
		seen(q)
	}
	told(queues, waits)
	all := slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.Begin < begin })
	for on, q := range queues {
		var until int64
		for i, h := range q {
			w := work(h, on, begin)
			if end == Least {
				until = h.leastly(&w, until)
			} else {
				until = h.mostly(&w, until, q[i+1:])
			}
			if w.End >= begin {
				all = append(all, w)
			}
		}
	}
	slices.SortFunc(all, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(b.End, a.End), cmp.Compare(b.ID, a.ID))
	})
	return all
}

// work is the row of a device for a call. Its number is the call's below zero, which none has.
func work(h *handed, on lane, begin int64) Span {
	category := h.Category
	switch {
	case h.Layer == "collective":
		category = "collective"
	case category != "copy" && category != "set":
		category = "kernel"
	}
	w := Span{ID: -h.ID, Layer: "device", Category: category, Name: h.Name, Device: on.device, Stream: on.stream, Launch: h.ID, WaitStream: -1,
		Bytes: h.Bytes, Sequence: h.Sequence, Communicator: h.Communicator, Stack: h.Stack, Bounds: h.Bounds}
	if h.Begin < begin {
		w.Launch = 0
	}
	return w
}

// seen says of the work of a stream, in its order, by when it was done.
func seen(q []*handed) {
	for i, h := range slices.Backward(q) {
		h.ended, h.alike, h.most = h.Begin+h.Bounds.Most, 1, h.Bounds.Most
		if h.Bounds.Ended > h.Begin {
			h.ended = max(h.Bounds.Ended, h.ended)
		}
		if i+1 == len(q) {
			continue
		}
		next := q[i+1]
		if h.ended > next.ended || h.Bounds.Ended == 0 && h.measured() {
			h.ended = next.ended // a stream does one thing after the other
		}
		if h.ended == next.ended {
			h.alike, h.most = next.alike+1, next.most+h.Bounds.Most
		}
	}
}

// told finds what waits say of the least time of the work that they saw done: of one piece that
// is its own bound, of several what the device did meanwhile.
func told(queues map[lane][]*handed, waits []Span) {
	type group struct {
		on   lane
		work []*handed
	}
	groups := map[int]group{} // by the wait, the stream with the most work
	for on, q := range queues {
		mine := map[int][]*handed{}
		for _, h := range q {
			h.least = h.Bounds.Least
			i, found := slices.BinarySearchFunc(waits, h.ended, func(s Span, at int64) int { return cmp.Compare(s.End, at) })
			if found && waits[i].ID != h.ID && waits[i].Begin >= h.Begin && !h.measured() {
				mine[i], h.wait = append(mine[i], h), &waits[i]
			}
		}
		for i, work := range mine {
			best, there := groups[i]
			if !there || len(work) > len(best.work) || len(work) == len(best.work) && (on.device < best.on.device || on.device == best.on.device &&
				on.stream < best.on.stream) {
				groups[i] = group{on, work}
			}
		}
	}
	for i, g := range groups {
		own := int64(0)
		for _, h := range g.work {
			own += h.least
		}
		if busy := min(waits[i].Busy, waits[i].End-waits[i].Begin); busy > own {
			for _, h := range g.work {
				h.least = min(max(busy/int64(len(g.work)), h.least), h.Bounds.Most)
			}
		}
	}
}

// leastly places the work at the least, and returns when it ends.
func (h *handed) leastly(w *Span, until int64) int64 {
	w.Begin = max(h.Begin, until)
	switch {
	case h.least == 0 || h.measured():
	case h.wait != nil:
		w.Begin, w.after = max(h.wait.Begin, until), h.wait.ID
	default:
		w.Begin = max(w.Begin, h.ended-h.least)
	}
	w.End = w.Begin + h.least
	return w.End
}

// mostly places the work at the most, with what is behind it on its stream, and returns when it ends.
func (h *handed) mostly(w *Span, until int64, behind []*handed) int64 {
	w.Begin = max(h.Begin, until)
	room := max(h.ended-w.Begin, 0)
	if h.most <= room {
		w.Begin = h.ended - h.most
		w.End = w.Begin + h.Bounds.Most
		return w.End
	}
	took := min(max(room/int64(h.alike), h.Bounds.Least), h.Bounds.Most, room)
	if h.alike > 1 { // nothing else is there yet
		took = max(took, min(behind[0].Begin-w.Begin, h.Bounds.Most, room))
	} else {
		took = min(room, h.Bounds.Most)
	}
	w.End = w.Begin + took
	return w.End
}

// waitsByEnd are the calls that can have waited for a device, in order of their end.
func waitsByEnd(spans []Span) (waits []Span) {
	for _, s := range spans {
		if s.Layer == "runtime" && slices.Contains([]string{"sync", "copy", "free", "set"}, s.Category) {
			waits = append(waits, s)
		}
	}
	slices.SortStableFunc(waits, func(a, b Span) int { return cmp.Compare(a.End, b.End) })
	return waits
}

// Bounded says whether the graph was made with bounds of device times.
func (g *StepGraph) Bounded() bool {
	return slices.ContainsFunc(g.Spans, func(s Span) bool { return s.Layer == "device" && s.Bounds != nil })
}
