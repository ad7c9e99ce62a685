package pyramid

import "math"

// row has the calls of one depth of a lane.
type row struct {
	long   []Span
	levels [Levels]*level
	closes int64 // no open cell ends before
}

// level are the cells of one level of a row, in order of time, and the two that calls still add to: a call shorter than
// a bin touches two bins at most.
type level struct {
	cells     []cell
	cur, next *sum
}

// sum is a cell in the making.
type sum struct {
	bin   int64
	busy  int64
	count int64
	flags uint8
	names []named // those with the most time, as far as they fit
}

type named struct {
	name uint32
	busy int64
}

// mostNames are kept apart within a cell: with more, the share of the first is a lower bound.
const mostNames = 8

// add counts time of a name.
func (s *sum) add(name uint32, busy int64) {
	s.busy += busy
	least := 0
	for i := range s.names {
		if s.names[i].name == name {
			s.names[i].busy += busy
			return
		}
		if s.names[i].busy < s.names[least].busy {
			least = i
		}
	}
	if len(s.names) < mostNames {
		s.names = append(s.names, named{name, busy})
	} else if s.names[least].busy < busy {
		s.names[least] = named{name, busy}
	}
}

// merge adds a finer cell.
func (s *sum) merge(o *sum) {
	busy := s.busy + o.busy
	for _, n := range o.names {
		s.add(n.name, n.busy)
	}
	s.busy = busy // the names may be fewer than there are
	s.count += o.count
	s.flags |= o.flags
}

func (s *sum) cell() cell {
	c := cell{bin: uint32(s.bin), busy: s.busy, count: uint32(min(s.count, math.MaxUint32)), flags: s.flags}
	var most int64 = -1
	for _, n := range s.names {
		if n.busy > most {
			c.name, most = n.name, n.busy
		}
	}
	if s.busy > 0 {
		c.share = uint8(255 * float64(most) / float64(s.busy))
	}
	return c
}

// adder adds calls to rows.
type adder struct {
	lowest int
	top    int // cells of this level go into no coarser one
	kept   int64
}

// at returns the open cell of a bin. Bins come in order, but for the next one of a call that touches two.
func (a *adder) at(r *row, number int, bin int64) *sum {
	l := r.levels[number]
	if l == nil {
		l = &level{}
		r.levels[number] = l
	}
	for l.cur != nil && l.cur.bin < bin-1 {
		a.closeFirst(r, number)
	}
	switch {
	case l.cur == nil:
		l.cur = &sum{bin: bin}
		r.closes = min(r.closes, (bin+1)*Width(number))
		return l.cur
	case l.cur.bin == bin:
		return l.cur
	case l.next == nil:
		l.next = &sum{bin: bin}
	}
	return l.next
}

// closeFirst writes the earlier of the open cells down, and adds it to the coarser level.
func (a *adder) closeFirst(r *row, number int) {
	l := r.levels[number]
	done := l.cur
	l.cur, l.next = l.next, nil
	l.cells = append(l.cells, done.cell())
	a.kept++
	if number < a.top {
		a.at(r, number+1, done.bin>>2).merge(done)
	}
}

// advance closes the cells that end before a time; no call begins before it any more.
func (a *adder) advance(r *row, ns int64) {
	if ns < r.closes {
		return
	}
	r.closes = math.MaxInt64
	for number := a.lowest; number <= a.top; number++ {
		l := r.levels[number]
		if l == nil {
			continue
		}
		width := Width(number)
		for l.cur != nil && (l.cur.bin+1)*width <= ns {
			a.closeFirst(r, number)
		}
		if l.cur != nil {
			r.closes = min(r.closes, (l.cur.bin+1)*width)
		}
	}
}

// finish closes all cells.
func (a *adder) finish(r *row) {
	for number := a.lowest; number <= a.top; number++ {
		for l := r.levels[number]; l != nil && l.cur != nil; {
			a.closeFirst(r, number)
		}
	}
	r.closes = math.MaxInt64
}

// clip gives back the room that slices have to grow: nothing is added any more. slices.Clip would keep it.
func (r *row) clip() {
	r.long = append([]Span(nil), r.long...)
	for _, l := range r.levels {
		if l != nil {
			l.cells = append([]cell(nil), l.cells...)
		}
	}
}

// short adds a call to the cells of a level: its time to each bin that it touches, itself to the first.
func (a *adder) short(r *row, number int, s Span) {
	width := Width(number)
	bin := s.Start / width
	duration := max(s.Duration, 0)
	first := min(duration, (bin+1)*width-s.Start)
	c := a.at(r, number, bin)
	c.add(s.Name, first)
	c.count++
	c.flags |= s.Flags
	if duration > first {
		a.at(r, number, bin+1).add(s.Name, duration-first)
	}
}
