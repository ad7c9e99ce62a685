package timeline

import (
	"cmp"
	"slices"
)

// lanes of devices: a stream of a device.
type lane struct {
	device int
	stream int64
}

// launched is work of a stream, with when the call that launched it began.
type launched struct {
	at      int64
	segment int
}

// devices: work follows the segment before its launch (it may begin before the
// call returns), the work before it on its stream, and what its stream was told to
// wait for. What was launched before the period, or is not known to have been launched,
// holds up its stream alike.
func (b *builder) devices() {
	last := map[lane]int{}
	early := map[int]bool{}
	for i, s := range b.Spans {
		if !s.OnDevice() {
			continue
		}
		n := b.add(i, 0, true, max(s.Begin, b.begin)-b.begin, s.End-b.begin)
		at := s.Begin
		if launch, ok := b.byID[s.Launch]; ok && s.Launch != 0 {
			at = b.Spans[launch].Begin
			if before, ok := b.before[launch]; ok && before >= 0 {
				b.nodes.After(n, before)
			}
		} else {
			early[n] = true
		}
		if w, ok := b.byID[s.after]; ok && s.after != 0 {
			if before, ok := b.before[w]; ok && before >= 0 {
				b.nodes.After(n, before)
			}
		}
		on := lane{s.Device, s.Stream}
		if k, ok := last[on]; ok {
			b.nodes.After(n, k)
		}
		last[on] = n
		b.queues[on] = append(b.queues[on], launched{at, n})
		b.onDevice = append(b.onDevice, n)
	}
	for _, q := range b.queues {
		// A stream begins its work in the order of the launches.
		for i := len(q) - 2; i >= 0; i-- {
			if early[q[i].segment] {
				q[i].at = min(q[i].at, q[i+1].at)
			}
		}
		slices.SortStableFunc(q, func(x, y launched) int { return cmp.Compare(x.at, y.at) })
	}
	slices.SortStableFunc(b.onDevice, func(x, y int) int { return cmp.Compare(b.Segments[x].To, b.Segments[y].To) })
	b.waitsOfStreams()
}

// recorded is the work that an event stands for: the last that was launched on the
// stream before the call that recorded the event, which a wait names by its
// correlation. -1 where the trace does not say.
func (b *builder) recorded(wait Span) int {
	call, ok := b.byCorrelation[wait.WaitCorrelation]
	if !ok || wait.WaitCorrelation == 0 || wait.WaitStream < 0 {
		return -1
	}
	return before(b.queues[lane{wait.Device, wait.WaitStream}], b.Spans[call].Begin)
}

// before is the last segment of a queue that was launched before a time, -1 for none.
func before(q []launched, at int64) int {
	i, _ := slices.BinarySearchFunc(q, at, func(l launched, at int64) int { return cmp.Compare(l.at, at) })
	if i == 0 {
		return -1
	}
	return q[i-1].segment
}

// waitsOfStreams: where a stream waits for an event, what is launched next on it
// follows the event's work; without its correlation, what ended last on the stream
// that it waits for.
func (b *builder) waitsOfStreams() {
	for _, s := range b.Spans {
		if s.Layer != "device" || s.Category != "sync" || s.WaitStream < 0 || s.Name == "Event Sync" {
			continue
		}
		at := s.Begin
		if call, ok := b.byID[s.Launch]; ok && s.Launch != 0 {
			at = b.Spans[call].Begin
		}
		q := b.queues[lane{s.Device, s.Stream}]
		i, _ := slices.BinarySearchFunc(q, at, func(l launched, at int64) int { return cmp.Compare(l.at, at) })
		if i == len(q) {
			continue
		}
		next, source := q[i].segment, b.recorded(s)
		if source < 0 {
			for _, l := range slices.Backward(b.queues[lane{s.Device, s.WaitStream}]) {
				if b.Segments[l.segment].To <= b.Segments[next].From {
					source = l.segment
					break
				}
			}
		}
		if source >= 0 && source != next {
			b.nodes.After(next, source)
		}
	}
}

// synchronisations: a call that waits for a device ends after what it waited for.
func (b *builder) synchronisations() {
	waits := map[int64]Span{} // what the trace says of a wait, by the call
	for _, s := range b.Spans {
		if s.Layer == "device" && s.Category == "sync" && s.Launch != 0 {
			waits[s.Launch] = s
		}
	}
	for i, s := range b.Spans {
		calls := s.Layer == "runtime" && (slices.Contains([]string{"sync", "copy", "free", "set"}, s.Category) || s.Bounds != nil) ||
			s.Layer == "collective" && s.Bounds != nil
		if !calls || len(b.owned[i]) == 0 {
			continue
		}
		n := b.owned[i][len(b.owned[i])-1]
		stream := s.Stream
		if w, ok := waits[s.ID]; ok {
			if w.Name == "Event Sync" {
				if k := b.recorded(w); k >= 0 {
					b.nodes.Waits(n, k)
					continue
				}
			}
			if w.Name == "Stream Sync" {
				stream = w.Stream
			}
		}
		if k := b.waitedFor(s, n, stream); k >= 0 {
			b.nodes.Waits(n, k)
		}
	}
}

// waitedFor is the last work that ended while the call ran: of the stream where the
// call is about one (-1 is all), or the call's own.
func (b *builder) waitedFor(s Span, n int, stream int64) int {
	call := b.Segments[n]
	for _, k := range slices.Backward(b.onDevice) {
		work := b.Segments[k]
		own := b.Spans[work.Span].Launch == s.ID
		by, known := b.byID[b.Spans[work.Span].Launch]
		switch {
		case known && b.Spans[by].Begin >= s.End: // not there yet, and nothing long
		case work.To > call.To: // not waited for: it goes on
		case work.To <= call.From:
			return -1
		case own && s.Bounds != nil && s.Category != "copy" && s.Category != "set" && work.To < call.To:
			return -1 // at the end of its bounds it may lie anywhere; a call that waits ends with it
		case s.Category == "sync" && (stream < 0 || stream == b.Spans[work.Span].Stream), own:
			return k
		}
	}
	return -1
}
