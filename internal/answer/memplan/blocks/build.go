package blocks

import (
	"cmp"
	"slices"
)

// Build makes the blocks of each arena. Events are in time; those of one arena
// that are not are put in order.
func Build(arenas []Arena, events []Event) []*Lives {
	builders := make([]*builder, len(arenas))
	for i, a := range arenas {
		builders[i] = &builder{lives: Lives{Arena: a, Before: Unknown, AllocatedPeak: Unknown, ReservedPeak: Unknown}, open: map[int64]int32{}}
	}
	if !slices.IsSortedFunc(events, inTime) {
		slices.SortStableFunc(events, inTime)
	}
	// Of ten million events growing blocks would take half of the time.
	allocations := make([]int, len(arenas))
	for i := range events {
		if events[i].Action == Alloc {
			allocations[events[i].Arena]++
		}
	}
	for i, n := range allocations {
		builders[i].lives.Blocks = make([]Block, 0, n)
	}
	for i := range events {
		builders[events[i].Arena].add(&events[i])
	}
	var all []*Lives
	for _, b := range builders {
		if b.lives.Ticks > 0 {
			all = append(all, b.close())
		}
	}
	return all
}

func inTime(a, b Event) int { return cmp.Compare(a.TSNS, b.TSNS) }

// builder follows one arena.
type builder struct {
	lives Lives
	open  map[int64]int32 // by address: the live block
	live  int64
}

func (b *builder) add(e *Event) {
	l := &b.lives
	if e.Action == OutOfMemory {
		l.OutOfMemory++
		l.Shortages = append(l.Shortages, Shortage{e.TSNS, b.live})
		return
	}
	l.Ticks++
	if l.Ticks == 1 {
		l.BeginNS = e.TSNS
		b.baseline(e)
	}
	l.EndNS = e.TSNS
	l.AllocatedPeak, l.ReservedPeak = max(l.AllocatedPeak, e.Allocated), max(l.ReservedPeak, e.Reserved)
	if e.Weight > 1 {
		l.Sliced++
	}
	if e.Action == Free {
		b.free(e)
		return
	}
	b.alloc(e)
}

// baseline is what was in use before the first event, as the allocator says.
func (b *builder) baseline(e *Event) {
	switch {
	case e.Allocated == Unknown || e.Bytes == Unknown:
	case e.Action == Alloc:
		b.lives.Before = max(0, e.Allocated-e.Bytes)
	default:
		b.lives.Before = e.Allocated + e.Bytes
	}
}

func (b *builder) alloc(e *Event) {
	l := &b.lives
	l.Allocations++
	if e.Duration != Unknown {
		l.AllocationNS += e.Duration
		l.TimedAllocations++
	}
	if e.Bytes == Unknown {
		l.NoSize++
		b.odd(e)
		return
	}
	if old, is := b.open[e.Address]; is {
		l.Reused++
		b.odd(e)
		b.end(old, e, 0)
	}
	b.open[e.Address] = int32(len(l.Blocks))
	l.Blocks = append(l.Blocks, Block{
		Address: e.Address, Bytes: e.Bytes, Born: l.Ticks, Died: Alive, BornNS: e.TSNS, Path: e.Path, BornIn: e.Span,
		TID: e.TID, AllocationTookNS: e.Duration, FreeTookNS: Unknown,
	})
	if b.live += e.Bytes; b.live > l.Peak {
		l.Peak, l.PeakTick, l.PeakNS = b.live, l.Ticks, e.TSNS
	}
}

func (b *builder) free(e *Event) {
	l := &b.lives
	l.Frees++
	at, is := b.open[e.Address]
	if is {
		b.end(at, e, e.Span)
		delete(b.open, e.Address)
		return
	}
	l.FreedUnknown++
	if e.Bytes == Unknown {
		return
	}
	// It was there all the time before.
	l.Blocks = append(l.Blocks, Block{
		Address: e.Address, Bytes: e.Bytes, Died: l.Ticks, BornNS: l.BeginNS, DiedNS: e.TSNS, DiedIn: e.Span, TID: e.TID,
		AllocationTookNS: Unknown, FreeTookNS: e.Duration,
	})
	if l.Before != Unknown {
		l.Before = max(0, l.Before-e.Bytes)
	}
}

func (b *builder) end(at int32, e *Event, span int64) {
	block := &b.lives.Blocks[at]
	block.Died, block.DiedNS, block.DiedIn = b.lives.Ticks, e.TSNS, span
	if e.Action == Free {
		block.FreeTookNS = e.Duration
	}
	b.live -= block.Bytes
}

func (b *builder) odd(e *Event) {
	if b.lives.FirstOutOfFit == 0 {
		b.lives.FirstOutOfFit = e.TSNS
	}
}

// close completes the lives: blocks born before the recording count from its
// beginning, which is known only now.
func (b *builder) close() *Lives {
	l := &b.lives
	early := slices.ContainsFunc(l.Blocks, func(x Block) bool { return x.Born == 0 })
	if early {
		l.findPeak()
	}
	return l
}

func (l *Lives) findPeak() {
	l.Peak, l.PeakTick, l.PeakNS = 0, 0, l.BeginNS
	l.Walk(func(tick, ns, live int64) {
		if live > l.Peak {
			l.Peak, l.PeakTick, l.PeakNS = live, tick, ns
		}
	})
}

// Walk calls visit with the live bytes of Blocks after each tick, from 0 on.
func (l *Lives) Walk(visit func(tick, ns, live int64)) {
	changes, times := make([]int64, l.Ticks+1), make([]int64, l.Ticks+1)
	times[0] = l.BeginNS
	for i := range l.Blocks {
		b := &l.Blocks[i]
		changes[b.Born] += b.Bytes
		times[b.Born] = b.BornNS
		if b.Died != Alive {
			changes[b.Died] -= b.Bytes
			times[b.Died] = b.DiedNS
		}
	}
	var live int64
	for tick := range changes {
		live += changes[tick]
		if times[tick] == 0 { // an event that made no block
			times[tick] = times[max(tick-1, 0)]
		}
		visit(int64(tick), times[tick], live)
	}
}

// At are the blocks that live at a tick.
func (l *Lives) At(tick int64) (alive []int) {
	for i := range l.Blocks {
		if b := &l.Blocks[i]; b.Born <= tick && tick < b.Died {
			alive = append(alive, i)
		}
	}
	return alive
}

// Point is live bytes over a stretch of time.
type Point struct {
	NS       int64 // where the stretch begins
	Min, Max int64
}

// Curve is the live bytes in at most n stretches of equal time.
func (l *Lives) Curve(n int) []Point {
	if n < 1 || l.Ticks == 0 {
		return nil
	}
	width := max(1, (l.EndNS-l.BeginNS)/int64(n)+1)
	var points []Point
	last, first := int64(0), true
	l.Walk(func(_, ns, live int64) {
		at := (ns - l.BeginNS) / width
		if first || at > (points[len(points)-1].NS-l.BeginNS)/width {
			p := Point{l.BeginNS + at*width, live, live}
			if !first { // what was live when the stretch began counts in it, too
				p.Min, p.Max = min(last, live), max(last, live)
			}
			points, first = append(points, p), false
		}
		p := &points[len(points)-1]
		p.Min, p.Max, last = min(p.Min, live), max(p.Max, live), live
	})
	return points
}
