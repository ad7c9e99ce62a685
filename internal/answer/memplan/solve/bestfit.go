package solve

import (
	"container/heap"
	"context"
)

// BestFit places blocks as Sekiyama et al. published it: on the lowest offset
// line, the leftmost on ties, the block with the longest lifetime that lies
// within the line's interval; where none does, the line is lifted to its lower
// neighbour and merged. Ties between blocks, which the paper leaves open: larger
// size, earlier start, position.
//
// Lines are kept in a heap and candidates by lifetime and start, so that a trace
// of a real program takes about O(n log² n). It returns nil when ctx ends first.
func BestFit(ctx context.Context, blocks []Block) []int64 {
	offsets := make([]int64, len(blocks))
	leaves := make([]int32, len(blocks))
	for _, group := range components(blocks) {
		if !newSkyline(blocks, group, offsets, leaves).fill(ctx) {
			return nil
		}
	}
	return offsets
}

// line is a stretch of time whose memory is used up to an offset.
type line struct {
	begin, end, offset int64
	before, after      *line
	index              int // in the heap
}

// skyline is the lines of one component and the blocks that are not placed yet.
type skyline struct {
	blocks  []Block
	offsets []int64
	lines   lineHeap
	tree    *candidates
	left    int
}

func newSkyline(blocks []Block, group []int32, offsets []int64, leaves []int32) *skyline {
	s := &skyline{blocks: blocks, offsets: offsets, left: len(group)}
	whole := &line{begin: blocks[group[0]].Lower, end: blocks[group[0]].Upper}
	for _, b := range group {
		whole.end = max(whole.end, blocks[b].Upper)
	}
	heap.Push(&s.lines, whole)
	s.tree = newCandidates(blocks, group, leaves)
	return s
}

// fill places all blocks; it returns false when ctx ends before.
func (s *skyline) fill(ctx context.Context) bool {
	for rounds := 0; s.left > 0; rounds++ {
		if rounds&0xfff == 0 && ctx.Err() != nil {
			return false
		}
		l := s.lines[0]
		if b := s.tree.best(l.begin, l.end); b >= 0 {
			s.place(l, b)
		} else {
			s.lift(l)
		}
	}
	return true
}

// place puts a block onto a line, which it splits into up to three.
func (s *skyline) place(l *line, b int32) {
	block := s.blocks[b]
	s.offsets[b] = l.offset
	s.tree.remove(s.blocks, b)
	s.left--
	atBegin, atEnd := block.Lower == l.begin, block.Upper == l.end
	begin, end, below := l.begin, l.end, l.offset
	l.begin, l.end, l.offset = block.Lower, block.Upper, below+block.Size
	heap.Fix(&s.lines, l.index)
	if !atBegin {
		left := &line{begin: begin, end: block.Lower, offset: below, before: l.before, after: l}
		if l.before != nil {
			l.before.after = left
		}
		l.before = left
		heap.Push(&s.lines, left)
	}
	if !atEnd {
		right := &line{begin: block.Upper, end: end, offset: below, before: l, after: l.after}
		if l.after != nil {
			l.after.before = right
		}
		l.after = right
		heap.Push(&s.lines, right)
	}
	s.merge(l)
}

// lift raises a line to its lower neighbour; at an edge there is one only.
func (s *skyline) lift(l *line) {
	switch {
	case l.before == nil:
		l.offset = l.after.offset
	case l.after == nil:
		l.offset = l.before.offset
	default:
		l.offset = min(l.before.offset, l.after.offset)
	}
	heap.Fix(&s.lines, l.index)
	s.merge(l)
}

// merge joins a line with neighbours of its offset, and puts it into its place.
func (s *skyline) merge(l *line) {
	if b := l.before; b != nil && b.offset == l.offset {
		l.begin, l.before = b.begin, b.before
		if b.before != nil {
			b.before.after = l
		}
		heap.Remove(&s.lines, b.index)
	}
	if a := l.after; a != nil && a.offset == l.offset {
		l.end, l.after = a.end, a.after
		if a.after != nil {
			a.after.before = l
		}
		heap.Remove(&s.lines, a.index)
	}
	heap.Fix(&s.lines, l.index)
}

// lineHeap has the lowest line first, the leftmost on ties.
type lineHeap []*line

func (h lineHeap) Len() int { return len(h) }
func (h lineHeap) Less(i, j int) bool {
	if h[i].offset != h[j].offset {
		return h[i].offset < h[j].offset
	}
	return h[i].begin < h[j].begin
}
func (h lineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *lineHeap) Push(x any) {
	l := x.(*line)
	l.index = len(*h)
	*h = append(*h, l)
}
func (h *lineHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	*h = old[:len(old)-1]
	return l
}
