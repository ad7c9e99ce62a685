// Package pool is a model of PyTorch's caching allocator for CUDA: what it would
// hold from the driver if it served some requests. It owns the allocator's
// constants and rules, not what asks.
//
// The rules are those of c10/cuda/CUDACachingAllocator.cpp as released with
// PyTorch 2.x (the constants have been the same since 1.13), for one stream and
// a driver that never refuses: so nothing that is cached is given back. Segments
// are laid out one behind the other, as far apart as it takes.
package pool

import "slices"

// The allocator's constants, by their names there.
const (
	MinBlockSize  = 512      // kMinBlockSize: sizes are rounded up to it
	SmallSize     = 1 << 20  // kSmallSize: the largest request of the small pool
	SmallBuffer   = 2 << 20  // kSmallBuffer: a segment of the small pool
	LargeBuffer   = 20 << 20 // kLargeBuffer: a segment for requests below MinLargeAlloc
	MinLargeAlloc = 10 << 20 // kMinLargeAlloc: from here on a request has a segment of its own
	RoundLarge    = 2 << 20  // kRoundLarge: of which the size is a multiple
)

// Request is one allocation or free, in the order in which they come.
type Request struct {
	Block int // which block: each is allocated once and freed at most once
	Bytes int64
	Free  bool
}

// Result is what the pool came to.
type Result struct {
	Reserved     int64 // held from the driver at the end, and at most: nothing is given back
	Allocated    int64 // peak of rounded live bytes
	Segments     int   // calls of the driver's allocator
	Soft, Hard   int64 // free bytes at the end: in segments that are free altogether, and the rest
	Pinning      []int // blocks that keep segments with free bytes from being given back, by position
	ReservedLive int64 // reserved when the live bytes were at their peak
}

// Options of Simulate.
type Options struct {
	// Expandable models expandable_segments:True: one segment a pool, that grows.
	Expandable bool
}

// chunk is a stretch of a segment, in use or free.
type chunk struct {
	segment       int
	address, size int64
	block         int // -1 if it is free
	before, after *chunk
	small         bool
}

// pool is the allocator's state.
type pool struct {
	Options
	free      [2][]entry // large and small, by size and address
	inUse     []*chunk   // by block
	spare     []*chunk   // that were merged into others: millions come and go
	last      [2]*chunk  // expandable: the end of the pool's segment
	result    Result
	segments  []*chunk // first chunk of each
	allocated int64
	next      int64
}

// entry is a free chunk, with what it is looked for by.
type entry struct {
	size, address int64
	*chunk
}

// Simulate serves requests.
func Simulate(requests []Request, options Options) Result {
	blocks := 0
	for _, r := range requests {
		blocks = max(blocks, r.Block+1)
	}
	p := &pool{Options: options, inUse: make([]*chunk, blocks)}
	for _, r := range requests {
		if r.Free {
			p.release(r.Block)
		} else if r.Bytes > 0 {
			p.serve(r)
		}
	}
	p.fragmentation()
	return p.result
}

// Round is what a request takes of a segment.
func Round(bytes int64) int64 {
	return max(MinBlockSize, (bytes+MinBlockSize-1)/MinBlockSize*MinBlockSize)
}

// segmentSize is what the allocator asks the driver for.
func segmentSize(size int64) int64 {
	switch {
	case size <= SmallSize:
		return SmallBuffer
	case size < MinLargeAlloc:
		return LargeBuffer
	}
	return (size + RoundLarge - 1) / RoundLarge * RoundLarge
}

func (p *pool) serve(r Request) {
	size := Round(r.Bytes)
	small := size <= SmallSize
	c := p.fitting(size, small)
	if c == nil {
		c = p.grow(size, small)
	}
	rest := c.size - size
	if p.splits(rest, small) {
		tail := p.chunk()
		*tail = chunk{segment: c.segment, address: c.address + size, size: rest, block: -1, before: c, after: c.after, small: small}
		if c.after != nil {
			c.after.before = tail
		} else if p.Expandable {
			p.last[index(small)] = tail
		}
		c.after, c.size = tail, size
		p.putFree(tail)
	}
	c.block = r.Block
	p.inUse[r.Block] = c
	p.allocated += c.size
	if p.allocated > p.result.Allocated {
		p.result.Allocated, p.result.ReservedLive = p.allocated, p.result.Reserved
	}
}

// splits: the small pool, and expandable segments, keep every remainder apart;
// the large pool those above SmallSize.
func (p *pool) splits(rest int64, small bool) bool {
	if small || p.Expandable {
		return rest >= MinBlockSize
	}
	return rest > SmallSize
}

func index(small bool) int {
	if small {
		return 1
	}
	return 0
}

// chunk is one to be filled in.
func (p *pool) chunk() *chunk {
	if n := len(p.spare); n > 0 {
		c := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return c
	}
	return new(chunk)
}

// position is that of the first free chunk which is not before a size and an address.
func position(list []entry, size, address int64) int {
	from, to := 0, len(list)
	for from < to {
		middle := int(uint(from+to) / 2)
		if e := &list[middle]; e.size < size || e.size == size && e.address < address {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}

// fitting takes the smallest free chunk that is large enough, the lowest on ties.
func (p *pool) fitting(size int64, small bool) *chunk {
	list := &p.free[index(small)]
	at := position(*list, size, -1)
	if at == len(*list) {
		return nil
	}
	c := (*list)[at].chunk
	*list = slices.Delete(*list, at, at+1)
	return c
}

func (p *pool) putFree(c *chunk) {
	list := &p.free[index(c.small)]
	*list = slices.Insert(*list, position(*list, c.size, c.address), entry{c.size, c.address, c})
}

func (p *pool) takeFree(c *chunk) {
	list := &p.free[index(c.small)]
	at := position(*list, c.size, c.address)
	*list = slices.Delete(*list, at, at+1)
}

// grow asks the driver.
func (p *pool) grow(size int64, small bool) *chunk {
	p.result.Segments++
	if p.Expandable {
		return p.expand(size, small)
	}
	c := &chunk{segment: len(p.segments), address: p.next, size: segmentSize(size), block: -1, small: small}
	p.segments = append(p.segments, c)
	p.next += c.size
	p.result.Reserved += c.size
	return c
}

// expand maps as many pages behind the segment's end as it takes, together with
// what is free there.
func (p *pool) expand(size int64, small bool) *chunk {
	page := int64(LargeBuffer)
	if small {
		page = SmallBuffer
	}
	end := p.last[index(small)]
	if end != nil && end.block < 0 {
		p.takeFree(end)
		more := (size - end.size + page - 1) / page * page
		end.size += more
		p.result.Reserved += more
		return end
	}
	c := &chunk{segment: index(small), size: (size + page - 1) / page * page, block: -1, before: end, small: small}
	if end == nil {
		c.address = int64(index(small)) << 50 // room for as much as anyone asks
		p.segments = append(p.segments, c)
	} else {
		c.address, end.after = end.address+end.size, c
	}
	p.last[index(small)] = c
	p.result.Reserved += c.size
	return c
}

// release frees a block and merges its chunk with free neighbours.
func (p *pool) release(block int) {
	c := p.inUse[block]
	if c == nil {
		return
	}
	p.inUse[block] = nil
	p.allocated -= c.size
	c.block = -1
	if b := c.before; b != nil && b.block < 0 {
		p.takeFree(b)
		b.size, b.after = b.size+c.size, c.after
		if c.after != nil {
			c.after.before = b
		}
		p.moveEnd(c, b)
		p.spare = append(p.spare, c)
		c = b
	}
	if a := c.after; a != nil && a.block < 0 {
		p.takeFree(a)
		c.size, c.after = c.size+a.size, a.after
		if a.after != nil {
			a.after.before = c
		}
		p.moveEnd(a, c)
		p.spare = append(p.spare, a)
	}
	p.putFree(c)
}

// moveEnd notes that the end of an expandable segment is another chunk.
func (p *pool) moveEnd(from, to *chunk) {
	if p.Expandable && p.last[index(from.small)] == from {
		p.last[index(from.small)] = to
	}
}

// fragmentation tells the free bytes that could be given back from those that
// blocks pin.
func (p *pool) fragmentation() {
	for _, first := range p.segments {
		var free int64
		var pins []int
		for c := first; c != nil; c = c.after {
			if c.block < 0 {
				free += c.size
			} else {
				pins = append(pins, c.block)
			}
		}
		if len(pins) == 0 {
			p.result.Soft += free
			continue
		}
		p.result.Hard += free
		if free > 0 {
			p.result.Pinning = append(p.result.Pinning, pins...)
		}
	}
	slices.Sort(p.result.Pinning)
}
