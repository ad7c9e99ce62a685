package pyramid

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// Window is what of a recording is drawn.
type Window struct {
	From, Until int64 // from the base, ns
	Level       int
	Lanes       []int // numbers in Lanes
	Depth       int   // rows of each lane; deeper ones are left out, 0 is none
	Most        int   // rectangles; with more the level is coarser
}

// Rect is a rectangle of the picture: a call, or a cell of short ones.
type Rect struct {
	Lane     int // among the window's
	Depth    int
	Start    int64
	Duration int64 // of a call -1 if its end was not seen, of a cell the bin's width
	Name     uint32
	Count    int64 // of a cell, the calls that begin in it
	Busy     int64
	Share    uint8 // of the cell's busy time that Name has at least, of 255
	Flags    uint8
}

// Picture is a window's rectangles.
type Picture struct {
	Level     int
	Coarsened int // levels coarser than was asked for
	Rects     []Rect
	Partial   bool  // calls after this time are not read yet
	UntilNS   int64 // if Partial
}

// mostFine are the rows that are read for a level that is not kept: four row groups.
const mostFine = 4 * 122_880

// Query draws a window. Where it asks for a finer level than is kept, the rows are read from the dataset, unless they
// are too many.
func (p *Pyramid) Query(ctx context.Context, db *dataset.DB, w Window) (*Picture, error) {
	if w.From >= w.Until || w.Level < 0 || w.Level >= Levels {
		return nil, fmt.Errorf("no window from %d to %d at level %d", w.From, w.Until, w.Level)
	}
	asked := w.Level
	p.mu.RLock()
	lowest, done := p.lowest, p.done
	p.mu.RUnlock()
	if w.Level < lowest && done {
		picture, err := p.fine(ctx, db, w, lowest)
		if err != nil || picture != nil && len(picture.Rects) <= w.Most {
			return picture, err
		}
	}
	w.Level = max(w.Level, lowest)
	for {
		picture := p.coarse(w)
		picture.Coarsened = w.Level - asked
		if len(picture.Rects) <= w.Most || w.Level == Levels-1 {
			return picture, nil
		}
		w.Level++
	}
}

// coarse draws a window at a kept level; it stops soon after the most rectangles.
func (p *Pyramid) coarse(w Window) *Picture {
	p.mu.RLock()
	defer p.mu.RUnlock()
	picture := &Picture{Level: w.Level, Partial: !p.done}
	if picture.Partial && len(p.blocks) > 0 {
		picture.UntilNS = p.blocks[len(p.blocks)-1].ns - p.base
	}
	for at, number := range w.Lanes {
		if number < 0 || number >= len(p.lanes) {
			continue
		}
		for depth, r := range p.lanes[number].rows {
			if depth >= w.Depth || len(picture.Rects) > w.Most {
				break
			}
			picture.row(r, at, depth, w, Width(w.Level))
		}
	}
	return picture
}

// row adds what a row has at a level, and the calls that are at least as long as a bin of it.
func (picture *Picture) row(r *row, lane, depth int, w Window, longest int64) {
	flags := uint8(0)
	if depth == maxDepth {
		flags = Deeper
	}
	width := Width(w.Level)
	if l := r.levels[w.Level]; l != nil {
		first := sort.Search(len(l.cells), func(i int) bool { return (int64(l.cells[i].bin)+1)*width > w.From })
		for _, c := range l.cells[first:] {
			start := int64(c.bin) * width
			if start >= w.Until {
				break
			}
			picture.Rects = append(picture.Rects, Rect{Lane: lane, Depth: depth, Start: start, Duration: width, Name: c.name,
				Count: int64(c.count), Busy: c.busy, Share: c.share, Flags: c.flags | Cell | flags})
		}
	}
	picture.long(r, lane, depth, w, longest, flags)
}

// long adds the calls of a row that are at least so long.
func (picture *Picture) long(r *row, lane, depth int, w Window, longest int64, flags uint8) {
	end := sort.Search(len(r.long), func(i int) bool { return r.long[i].Start >= w.Until })
	first := 0
	if depth < maxDepth {
		// Calls of a row follow one another: at most one that began before the window reaches into it.
		first = sort.Search(end, func(i int) bool { return r.long[i].Start >= w.From })
		for first > 0 && r.long[first-1].Start+max(r.long[first-1].Duration, 0) > w.From {
			first--
		}
	}
	for _, s := range r.long[first:end] {
		if s.Duration >= 0 && (s.Duration < longest || s.Start+s.Duration <= w.From && s.Start < w.From) || s.Duration < 0 && s.Start < w.From {
			continue
		}
		picture.Rects = append(picture.Rects, Rect{Lane: lane, Depth: depth, Start: s.Start, Duration: s.Duration, Name: s.Name, Count: 1,
			Busy: max(s.Duration, 0), Share: 255, Flags: s.Flags | flags})
	}
}

// fine reads the rows of a window; nil if they are too many.
func (p *Pyramid) fine(ctx context.Context, db *dataset.DB, w Window, lowest int) (*Picture, error) {
	width := Width(w.Level) // whole bins
	w.From, w.Until = w.From/width*width, (w.Until+width-1)/width*width
	p.mu.RLock()
	// Calls that began before the window and reach into it are shorter than a bin of the finest kept level, or in memory.
	from, ordinal := p.block(w.From - Width(lowest))
	rows := p.ordinal(w.Until) - ordinal
	wanted := map[*Lane]int{}
	for at, number := range w.Lanes {
		if number >= 0 && number < len(p.lanes) {
			wanted[p.lanes[number]] = at
		}
	}
	p.mu.RUnlock()
	if rows > mostFine {
		return nil, nil
	}
	f := fineReader{p: p, window: w, lowest: lowest, ordinal: ordinal, wanted: wanted, rows: map[[2]int]*row{}, adder: adder{lowest: w.Level,
		top: w.Level}}
	f.reader.reset()
	if err := f.read(ctx, db, from); err != nil {
		return nil, err
	}
	return f.picture(), nil
}

// block is where to begin reading for calls from a time on.
func (p *Pyramid) block(ns int64) (from int64, ordinal int) {
	at := sort.Search(len(p.blocks), func(i int) bool { return p.blocks[i].ns-p.base > ns })
	if at == 0 {
		return 0, 0
	}
	return p.blocks[at-1].ns, p.blocks[at-1].ordinal
}

// ordinal is a row that begins at a time or soon after.
func (p *Pyramid) ordinal(ns int64) int {
	at := sort.Search(len(p.blocks), func(i int) bool { return p.blocks[i].ns-p.base >= ns })
	if at == len(p.blocks) {
		return len(p.depths)
	}
	return p.blocks[at].ordinal
}

// fineReader draws a window from the dataset's rows.
type fineReader struct {
	p       *Pyramid
	window  Window
	lowest  int
	ordinal int
	wanted  map[*Lane]int
	reader  reader
	rows    map[[2]int]*row // by lane and depth
	adder   adder
}

func (f *fineReader) read(ctx context.Context, db *dataset.DB, from int64) error {
	scan := dataset.Scan{Table: "span", Columns: scanned, From: from, Until: f.p.base + f.window.Until, Before: outerFirst}
	err := db.Scan(ctx, scan, func(batch *dataset.Batch) error {
		f.batch(batch)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading calls for the timeline: %w", err)
	}
	return nil
}

func (f *fineReader) batch(batch *dataset.Batch) {
	p := f.p
	p.mu.RLock()
	defer p.mu.RUnlock()
	f.reader.begin(batch)
	if len(f.reader.numbers) == 0 {
		for i, n := range p.names {
			f.reader.numbers[n] = uint32(i)
		}
	}
	for i := range batch.Rows {
		ordinal := f.ordinal
		f.ordinal++
		s, ok := f.reader.span(p.base, i)
		if !ok || s.Duration < 0 || s.Duration >= Width(f.lowest) || s.Start < f.window.From && s.Start+s.Duration <= f.window.From ||
			ordinal >= len(p.depths) {
			continue
		}
		lane, wanted := f.lane(i)
		if !wanted || int(p.depths[ordinal]) >= f.window.Depth {
			continue
		}
		s.Name = f.name(i)
		f.add(lane, int(p.depths[ordinal]), s)
	}
}

func (f *fineReader) add(lane, depth int, s Span) {
	key := [2]int{lane, depth}
	r := f.rows[key]
	if r == nil {
		r = &row{}
		f.rows[key] = r
	}
	f.adder.advance(r, s.Start)
	if s.Duration >= Width(f.window.Level) {
		r.long = append(r.long, s)
		return
	}
	f.adder.short(r, f.window.Level, s)
}

// lane is the number of a row's lane in the window.
func (f *fineReader) lane(i int) (int, bool) {
	key := f.reader.key(i)
	lane, known := f.reader.lanes[key]
	if !known {
		full := key.full(f.reader.batch)
		at := slices.IndexFunc(f.p.lanes, func(l *Lane) bool { return l.Key == full })
		if at >= 0 {
			lane = f.p.lanes[at]
		}
		f.reader.lanes[key] = lane
	}
	at, wanted := f.wanted[lane]
	return at, wanted
}

func (f *fineReader) name(i int) uint32 {
	key := [2]int64{f.reader.batch.Columns[colLayer][i], f.reader.batch.Columns[colName][i]}
	n, known := f.reader.names[key]
	if !known {
		n = f.reader.numbers[Name{f.reader.batch.Text(key[1]), f.reader.batch.Text(key[0])}]
		f.reader.names[key] = n
	}
	return n
}

// picture puts what was read together with the long calls in memory.
func (f *fineReader) picture() *Picture {
	f.p.mu.RLock()
	defer f.p.mu.RUnlock()
	picture := &Picture{Level: f.window.Level}
	for key, r := range f.rows {
		f.adder.finish(r)
		picture.row(r, key[0], key[1], f.window, Width(f.window.Level))
	}
	for lane, at := range f.wanted {
		if lane == nil {
			continue
		}
		for depth, r := range lane.rows {
			if depth < f.window.Depth {
				flags := uint8(0)
				if depth == maxDepth {
					flags = Deeper
				}
				picture.long(r, at, depth, f.window, Width(f.lowest), flags)
			}
		}
	}
	slices.SortFunc(picture.Rects, func(a, b Rect) int {
		switch {
		case a.Lane != b.Lane:
			return a.Lane - b.Lane
		case a.Depth != b.Depth:
			return a.Depth - b.Depth
		case a.Start < b.Start:
			return -1
		case a.Start > b.Start:
			return 1
		}
		return 0
	})
	return picture
}
