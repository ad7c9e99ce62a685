package pyramid

import (
	"context"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// scanned are the columns that are read, in the order of their numbers below.
var scanned = []string{"ts_ns", "duration_ns", "session_id", "pid", "tid", "layer", "name", "span_id", "device_id", "stream", "status",
	"end_method"}

const (
	colTime = iota
	colDuration
	colSession
	colPID
	colTID
	colLayer
	colName
	colID
	colDevice
	colStream
	colStatus
	colEnd
)

// outerFirst puts, of calls that begin together, the longer one first: it is around the other. It leaves no two rows
// undecided, so that rows have the same order whenever they are read.
func outerFirst(b *dataset.Batch, i, k int) bool {
	for _, c := range []struct {
		column int
		sign   int64
	}{{colDuration, -1}, {colPID, 1}, {colTID, 1}, {colID, 1}} {
		if x, y := c.sign*b.Columns[c.column][i], c.sign*b.Columns[c.column][k]; x != y {
			return x < y
		}
	}
	return b.Text(b.Columns[colSession][i]) < b.Text(b.Columns[colSession][k])
}

// Build reads all calls of a dataset, once.
func (p *Pyramid) Build(ctx context.Context, db *dataset.DB) error {
	b := &builder{p: p, adder: adder{lowest: p.lowest, top: Levels - 1}}
	b.reader.reset()
	err := db.Scan(ctx, dataset.Scan{Table: "span", Columns: scanned, Before: outerFirst}, func(batch *dataset.Batch) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		b.batch(batch)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading calls for the timeline: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lanes {
		for _, r := range l.rows {
			b.adder.finish(r)
			r.clip()
		}
		l.open = nil
	}
	p.depths = append([]uint8(nil), p.depths...)
	p.kept = b.kept()
	p.done = true
	return nil
}

// builder is the state of one pass over the rows.
type builder struct {
	p      *Pyramid
	adder  adder
	reader reader
	long   int64
}

func (b *builder) kept() int64 { return b.long + b.adder.kept }

// batch adds rows; the pyramid is locked.
func (b *builder) batch(batch *dataset.Batch) {
	p := b.p
	b.reader.begin(batch)
	times := batch.Columns[colTime]
	for i := range batch.Rows {
		if ordinal := len(p.depths); len(p.blocks) == 0 || ordinal-p.blocks[len(p.blocks)-1].ordinal >= p.every && times[i] != b.reader.lastNS {
			p.blocks = append(p.blocks, block{times[i], ordinal})
		}
		b.reader.lastNS = times[i]
		span, ok := b.reader.span(p.base, i)
		if !ok {
			p.outer++
			p.depths = append(p.depths, 0)
			continue
		}
		lane := b.lane(i)
		span.Name = b.name(i)
		p.depths = append(p.depths, b.add(lane, span))
	}
	p.built += int64(batch.Rows)
	for b.kept() > p.limit && p.lowest < Levels-1 {
		b.drop()
	}
	p.kept = b.kept()
}

// add puts a call into its lane and returns its depth.
func (b *builder) add(lane *Lane, s Span) uint8 {
	end := s.Start + max(s.Duration, 0)
	for len(lane.open) > 0 && lane.open[len(lane.open)-1] <= s.Start {
		lane.open = lane.open[:len(lane.open)-1]
	}
	depth := len(lane.open)
	if s.Duration > 0 {
		lane.open = append(lane.open, end)
	}
	lane.Count++
	if lane.Count == 1 {
		lane.First = s.Start
	}
	lane.Last = max(lane.Last, end)
	b.p.until = max(b.p.until, end)
	if depth == 0 {
		lane.Busy += max(s.Duration, 0)
	}
	depth = min(depth, maxDepth)
	for len(lane.rows) <= depth {
		lane.rows = append(lane.rows, &row{})
	}
	r := lane.rows[depth]
	b.adder.advance(r, s.Start)
	if s.Duration < 0 || s.Duration >= Width(b.p.lowest) {
		r.long = append(r.long, s)
		b.long++
	}
	if level := b.p.levelOf(s.Duration); s.Duration >= 0 && level < Levels {
		b.adder.short(r, level, s)
	}
	return uint8(depth)
}

// drop gives up the finest kept level.
func (b *builder) drop() {
	p := b.p
	width := Width(p.lowest + 1)
	for _, lane := range p.lanes {
		for _, r := range lane.rows {
			if l := r.levels[p.lowest]; l != nil {
				for l.cur != nil { // into the next level
					b.adder.closeFirst(r, p.lowest)
				}
				b.adder.kept -= int64(len(l.cells))
				r.levels[p.lowest] = nil
			}
			before := len(r.long)
			r.long = slices.Clip(slices.DeleteFunc(r.long, func(s Span) bool { return s.Duration >= 0 && s.Duration < width }))
			b.long -= int64(before - len(r.long))
		}
	}
	p.lowest++
	b.adder.lowest = p.lowest
}

// lane finds the lane of a row, or makes it.
func (b *builder) lane(i int) *Lane {
	key := b.reader.key(i)
	if b.reader.lane != nil && key == b.reader.laneKey {
		return b.reader.lane
	}
	lane := b.reader.lanes[key]
	if lane == nil {
		full := key.full(b.reader.batch)
		for _, l := range b.p.lanes { // of a text that got another number
			if l.Key == full {
				lane = l
			}
		}
		if lane == nil {
			lane = &Lane{Key: full}
			b.p.lanes = append(b.p.lanes, lane)
		}
		b.reader.lanes[key] = lane
	}
	b.reader.lane, b.reader.laneKey = lane, key
	return lane
}

// name numbers the name of a row.
func (b *builder) name(i int) uint32 {
	key := [2]int64{b.reader.batch.Columns[colLayer][i], b.reader.batch.Columns[colName][i]}
	n, known := b.reader.names[key]
	if !known {
		name := Name{b.reader.batch.Text(key[1]), b.reader.batch.Text(key[0])}
		n, known = b.reader.numbers[name]
		if !known {
			n = uint32(len(b.p.names))
			b.p.names = append(b.p.names, name)
			b.reader.numbers[name] = n
		}
		b.reader.names[key] = n
	}
	return n
}
