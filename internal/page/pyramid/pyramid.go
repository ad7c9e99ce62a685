// Package pyramid is the level of detail of the timeline: what a window of a recording looks like at a given width,
// without reading all of it.
//
// Level l has bins of 1,024 ns · 4^l. At a level, calls at least as long as a bin are drawn as themselves; shorter ones
// add to a cell of their lane, depth and bin: busy time, count, the name with the most time. Nothing is dropped, at any
// level: XProf leaves out events shorter than a pixel, and a second of them looks like idleness.
//
// Levels are kept in memory from the finest one whose cells and long calls together are a quarter of all calls. Finer
// ones are computed from the files when a window asks for them, which is short then.
package pyramid

import (
	"math"
	"sync"
)

// Levels is how many there are; of the coarsest, a bin is 52 days.
const Levels = 22

const (
	finestBin  = 1024 // ns, of level 0
	maxDepth   = 64   // calls deeper than that share one row
	mostTime   = 1 << 52
	fewSpans   = 1 << 17 // so many rows are kept whatever the recording's size
	keptShare  = 4       // one in so many
	noDuration = -1
)

// Width is that of a level's bins, ns.
func Width(level int) int64 { return finestBin << (2 * level) }

// Flags of what a rectangle shows.
const (
	Unfinished = 1 << iota // a call whose end was not seen
	Bound                  // a call whose duration is an upper bound
	Error                  // a call that threw or failed
	Cell                   // several calls, or parts of calls
	Deeper                 // calls of all depths from 64 on
)

// Span is a call that is drawn as itself.
type Span struct {
	Start, Duration int64 // from the pyramid's base; Duration is -1 if its end was not seen
	Name            uint32
	Flags           uint8
}

// cell is what short calls of a bin add up to.
type cell struct {
	bin   uint32
	name  uint32 // the one with the most time
	busy  int64
	count uint32 // calls that begin in the bin
	share uint8  // of busy that the name has at least, of 255
	flags uint8
}

// Key names a lane: a thread, or with Device a stream of a device.
type Key struct {
	Session  string
	PID, TID int32
	Device   bool
	DeviceID int64
	Stream   int64
}

// Lane is a row of the timeline, with one row of calls for each depth.
type Lane struct {
	Key
	Count int64 // calls
	Busy  int64 // at depth 0, ns
	First int64
	Last  int64

	rows []*row
	open []int64 // when the calls that are open end, outermost first
}

// Depth is how many rows the lane has.
func (l *Lane) Depth() int { return len(l.rows) }

// Name is what a call is called, and the layer that it belongs to.
type Name struct{ Name, Layer string }

// Pyramid answers windows of one dataset. It can be asked while it is built.
type Pyramid struct {
	mu     sync.RWMutex
	base   int64 // of all times, ns since the Unix epoch
	total  int64 // rows of table span, by the footers
	limit  int64 // of cells and long calls in memory
	built  int64
	done   bool
	lanes  []*Lane
	names  []Name
	lowest int // level
	kept   int64
	depths []uint8 // of each row, in order of time
	blocks []block
	every  int   // rows of a block
	outer  int64 // rows with times that are not drawn
	until  int64 // end of the last call
}

// block is where to begin reading: the first of the rows with that time is row number ordinal.
type block struct {
	ns      int64
	ordinal int
}

const blockRows = 4096

// Progress is how far a pyramid is built.
type Progress struct {
	Rows, Total int64
	Done        bool
	OutOfRange  int64 // calls that are not drawn, since they begin more than 52 days from the others
	UntilNS     int64 // end of the last call, from the base
	Lowest      int   // finest level that is kept
	Kept        int64 // cells and long calls in memory
}

// Progress returns how far it is built.
func (p *Pyramid) Progress() Progress {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return Progress{Rows: p.built, Total: p.total, Done: p.done, OutOfRange: p.outer, UntilNS: p.until, Lowest: p.lowest, Kept: p.kept}
}

// Base is the time that all others count from, ns since the Unix epoch.
func (p *Pyramid) Base() int64 { return p.base }

// Lanes are those found so far, in the order in which they were.
func (p *Pyramid) Lanes() []Lane {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := make([]Lane, len(p.lanes))
	for i, l := range p.lanes {
		all[i] = Lane{Key: l.Key, Count: l.Count, Busy: l.Busy, First: l.First, Last: l.Last, rows: l.rows}
	}
	return all
}

// NameOf is the name with that number.
func (p *Pyramid) NameOf(number uint32) Name {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if int(number) >= len(p.names) {
		return Name{}
	}
	return p.names[number]
}

// New is a pyramid of a recording that begins at base and has so many calls within a range of time.
func New(base, total, rangeNS int64) *Pyramid {
	p := &Pyramid{base: min(base, math.MaxInt64-mostTime), total: total, limit: max(total/keptShare, fewSpans), every: blockRows}
	for p.lowest < Levels-1 && rangeNS/Width(p.lowest) >= math.MaxUint32-1 {
		p.lowest++ // a bin's number has 32 bits
	}
	return p
}

// Number gives the lanes of an earlier state of the recording the numbers that they had, before Build.
func (p *Pyramid) Number(before *Pyramid) {
	for _, l := range before.Lanes() {
		p.lanes = append(p.lanes, &Lane{Key: l.Key})
	}
}

// levelOf is the finest kept level at which a call of that duration is part of a cell.
func (p *Pyramid) levelOf(duration int64) int {
	level := p.lowest
	for level < Levels && Width(level) <= duration {
		level++
	}
	return level
}
