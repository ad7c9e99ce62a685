package unwind

import (
	"sort"

	"github.com/ebpfprof/ebpfprof/symbolize"
)

// Sizes of the image, equal to those of bpf/unwind_maps.h.
const (
	LeafBytes   = 4096
	leafRows    = LeafBytes / 4
	leafPages   = LeafBytes / 8
	minPageBits = 8
	maxLeaves   = 1 << 16
	maxPages    = 1 << 19 // 32 GiB of code; an index of 4 MiB
)

// Table is the compiled form of a file: an image that goes into the kernel's
// maps as it is, but for the numbers of its rules. The image is a run of leaves
// of LeafBytes. The first hold the pages, 8 bytes each (leaf u32, first row u16,
// rows u16); the others their rows, 4 bytes each (address within the page u16,
// rule u16). Addresses are the file's, before the loader's bias.
type Table struct {
	Machine  symbolize.Machine
	Base     uint64 // the address at which page 0 begins
	PageBits uint8
	Pages    int
	Rows     int
	Rules    []Rule // Rules[0] is None
	Leaves   []byte
	Skipped  int // descriptions that could not be read

	release func() error
}

// Close releases the memory of a table that came from a cache.
func (t *Table) Close() error {
	if t.release == nil {
		return nil
	}
	release := t.release
	t.release, t.Leaves = nil, nil
	return release()
}

// IndexLeaves is how many leaves hold pages.
func (t *Table) IndexLeaves() int { return (t.Pages + leafPages - 1) / leafPages }

// Lookup returns the rule for an address; its kind is None where the file says
// nothing. It searches the image as the kernel does.
func (t *Table) Lookup(address uint64) Rule {
	number := (address - t.Base) >> t.PageBits
	if address < t.Base || number >= uint64(t.Pages) {
		return Rule{}
	}
	page := t.Leaves[number*8:]
	leaf, first, count := le.Uint32(page), int(le.Uint16(page[4:])), int(le.Uint16(page[6:]))
	if count == 0 {
		return Rule{}
	}
	rows := t.Leaves[int(leaf)*LeafBytes+first*4:]
	offset := uint16(address & (1<<t.PageBits - 1) >> pcShift(t.Machine))
	i := sort.Search(count, func(i int) bool { return le.Uint16(rows[i*4:]) > offset }) - 1
	return t.Rules[le.Uint16(rows[i*4+2:])]
}

// layout is one way to cut rows into pages.
type layout struct {
	bits   uint
	base   uint64
	pages  int
	leaves int // of rows
	ok     bool
}

func (l layout) total() int { return (l.pages+leafPages-1)/leafPages + l.leaves }

// layOut writes the image, with the size of pages that makes it smallest.
func (t *Table) layOut(rows []row) error {
	shift := pcShift(t.Machine)
	best := layout{}
	for bits := uint(minPageBits); bits <= 16+shift; bits++ {
		l := layout{bits: bits, base: rows[0].address &^ (1<<bits - 1)}
		span := (rows[len(rows)-1].address - l.base) >> bits
		if span >= maxPages {
			continue
		}
		l.pages = int(span) + 1
		l.ok = eachPage(rows, l, func(_ int, p pageRows) { l.leaves = max(l.leaves, p.leaf+1) })
		if l.ok && l.total() < maxLeaves && (!best.ok || l.total() < best.total()) {
			best = l
		}
	}
	if !best.ok {
		return ErrTooLarge
	}
	t.Base, t.PageBits, t.Pages = best.base, uint8(best.bits), best.pages
	t.Leaves = make([]byte, best.total()*LeafBytes)
	index := t.IndexLeaves()
	eachPage(rows, best, func(number int, p pageRows) {
		page := t.Leaves[number*8:]
		le.PutUint32(page, uint32(index+p.leaf))
		le.PutUint16(page[4:], uint16(p.row))
		le.PutUint16(page[6:], uint16(p.count()))
		at := t.Leaves[(index+p.leaf)*LeafBytes+p.row*4:]
		start := best.base + uint64(number)<<best.bits
		for i := range p.count() {
			r := p.at(i, start)
			le.PutUint16(at[i*4:], uint16((r.address-start)>>shift))
			le.PutUint16(at[i*4+2:], r.rule)
		}
		t.Rows += p.count()
	})
	return nil
}

// pageRows are the rows of one page and where they go.
type pageRows struct {
	carried   bool // the page begins inside a row of a page before
	rule      uint16
	rows      []row
	leaf, row int
}

func (p *pageRows) count() int {
	if p.carried {
		return len(p.rows) + 1
	}
	return len(p.rows)
}

func (p *pageRows) at(i int, start uint64) row {
	if !p.carried {
		return p.rows[i]
	}
	if i == 0 {
		return row{start, p.rule}
	}
	return p.rows[i-1]
}

// eachPage cuts rows into pages and puts these into leaves, in order, never one
// page into two. Pages of which nothing is described are left out. It reports
// whether every page fits into a leaf.
func eachPage(rows []row, l layout, yield func(int, pageRows)) bool {
	leaf, used, rule := 0, 0, uint16(0)
	for number := 0; number < l.pages; number++ {
		start := l.base + uint64(number)<<l.bits
		n := 0
		for n < len(rows) && (rows[n].address-l.base)>>l.bits == uint64(number) {
			n++
		}
		if n == 0 && rule == 0 {
			if len(rows) == 0 {
				break
			}
			number = int((rows[0].address-l.base)>>l.bits) - 1
			continue
		}
		p := pageRows{rows: rows[:n], rule: rule, carried: n == 0 || rows[0].address != start}
		if p.count() > leafRows {
			return false
		}
		if used+p.count() > leafRows {
			leaf, used = leaf+1, 0
		}
		p.leaf, p.row = leaf, used
		used += p.count()
		yield(number, p)
		if n > 0 {
			rule = rows[n-1].rule
			rows = rows[n:]
		}
	}
	return true
}
