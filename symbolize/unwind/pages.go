package unwind

import (
	"crypto/sha256"
	"fmt"
	"sort"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Sizes of the image, equal to those of bpf/unwind_maps.h.
const (
	LeafBytes   = 4096
	leafRows    = LeafBytes / 4
	leafPages   = LeafBytes / 8
	minPageBits = 8
	maxPageBits = 15 // with rowReach an address within the page takes 16
	maxLeaves   = 1 << 16
	maxPages    = 1 << 19 // 32 GiB of code; an index of 4 MiB
)

// Table is the compiled form of a file: an image that goes into the kernel's
// maps as it is, but for the numbers of its rules. The image is a run of leaves
// of LeafBytes. The first hold the pages, 8 bytes each (leaf u32, first row u16,
// rows u16); then come their rows, 4 bytes each (address from rowReach before the
// page on u16, number of a sequence or rule u16), and the sequences, eight cells
// of 4 bytes each (address from the row's on u16, rule u16). Addresses are the
// file's, before the loader's bias.
type Table struct {
	Machine   elf.Machine
	Base      uint64 // the address at which page 0 begins
	PageBits  uint8
	Pages     int
	Rows      int // changes of the rule, as the file has them
	Sequences int
	Rules     []Rule // Rules[0] is None
	Leaves    []byte
	Skipped   int // descriptions that could not be read

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

// SequenceLeaf is the first leaf that holds sequences; behind the last where
// there are none.
func (t *Table) SequenceLeaf() int {
	return len(t.Leaves)/LeafBytes - (t.Sequences+leafSequences-1)/leafSequences
}

// Renumber writes a leaf of the image with other numbers for the table's rules.
func (t *Table) Renumber(leaf int, to []byte, numbers []uint16) {
	from := t.Leaves[leaf*LeafBytes : (leaf+1)*LeafBytes]
	switch {
	case leaf < t.IndexLeaves():
		copy(to, from)
	case leaf < t.SequenceLeaf():
		for at := 0; at < LeafBytes; at += 4 {
			row := le.Uint32(from[at:])
			if code := row >> 16; code&oneRule != 0 {
				row = row&0xffff | uint32(numbers[code&^oneRule]|oneRule)<<16
			}
			le.PutUint32(to[at:], row)
		}
	default:
		for at := 0; at < LeafBytes; at += 4 {
			c := le.Uint32(from[at:])
			le.PutUint32(to[at:], c&0xffff|uint32(numbers[c>>16])<<16)
		}
	}
}

// Lookup returns the rule for an address; its kind is None where the file says
// nothing. It searches the image as the kernel does.
func (t *Table) Lookup(address uint64) Rule {
	i := t.Image()
	number, ok := i.RuleNumber(address, func(leaf int) []byte { return t.Leaves[leaf*LeafBytes : (leaf+1)*LeafBytes] })
	if !ok {
		return Rule{}
	}
	return t.Rules[number]
}

// Image is what is to be known of a table's image to search it, wherever its leaves are.
type Image struct {
	Machine      elf.Machine
	Base         uint64
	PageBits     uint8
	Pages        int
	SequenceLeaf int
}

// Image describes the table's.
func (t *Table) Image() Image {
	return Image{Machine: t.Machine, Base: t.Base, PageBits: t.PageBits, Pages: t.Pages, SequenceLeaf: t.SequenceLeaf()}
}

// RuleNumber is the number of the rule for an address, as the image has it, false where
// the file says nothing. leaf gives one leaf, of LeafBytes.
func (i *Image) RuleNumber(address uint64, leaf func(number int) []byte) (rule uint16, ok bool) {
	number := (address - i.Base) >> i.PageBits
	if address < i.Base || number >= uint64(i.Pages) {
		return 0, false
	}
	page := leaf(int(number / leafPages))[number%leafPages*8:]
	at, first, count := le.Uint32(page), int(le.Uint16(page[4:])), int(le.Uint16(page[6:]))
	if count == 0 {
		return 0, false
	}
	rows := leaf(int(at))[first*4:]
	offset := uint16((address&(1<<i.PageBits-1) + rowReach) >> pcShift(i.Machine))
	row := sort.Search(count, func(k int) bool { return le.Uint16(rows[k*4:]) > offset }) - 1
	code := le.Uint16(rows[row*4+2:])
	if code&oneRule != 0 {
		return code &^ oneRule, true
	}
	cells := leaf(i.SequenceLeaf + int(code)/leafSequences)[int(code)%leafSequences*sequenceBytes:][:sequenceBytes]
	offset -= le.Uint16(rows[row*4:])
	cell := sort.Search(sequenceCells, func(k int) bool { return le.Uint16(cells[k*4:]) > offset }) - 1
	return le.Uint16(cells[cell*4+2:]), true
}

// Digest tells tables apart: equal tables have equal ones, and no others.
type Digest [sha256.Size]byte

// Digest hashes all that a walk reads of the table.
func (t *Table) Digest() Digest {
	sum := sha256.New()
	fmt.Fprintln(sum, t.Machine, t.Base, t.PageBits, t.Pages, t.Sequences, len(t.Rules))
	sum.Write(unsafe.Slice((*byte)(unsafe.Pointer(&t.Rules[0])), len(t.Rules)*ruleBytes))
	sum.Write(t.Leaves)
	return Digest(sum.Sum(nil))
}

func (t *Table) sequence(number uint16) []byte {
	at := t.SequenceLeaf()*LeafBytes + int(number)*sequenceBytes
	return t.Leaves[at : at+sequenceBytes]
}

// layout is one way to cut runs into pages.
type layout struct {
	bits   uint
	base   uint64
	pages  int
	leaves int // of rows
	ok     bool
}

func (l layout) total() int { return (l.pages+leafPages-1)/leafPages + l.leaves }

// layOut writes the image.
func (t *Table) layOut(rows []row) error {
	shift := pcShift(t.Machine)
	runs, sequences := cut(rows, shift)
	best := bestLayout(runs, shift)
	sequenceLeaves := (len(sequences) + leafSequences - 1) / leafSequences
	if !best.ok || best.total()+sequenceLeaves >= maxLeaves {
		return ErrTooLarge
	}
	t.Base, t.PageBits, t.Pages, t.Rows, t.Sequences = best.base, uint8(best.bits), best.pages, len(rows), len(sequences)
	t.Leaves = make([]byte, (best.total()+sequenceLeaves)*LeafBytes)
	index := t.IndexLeaves()
	eachPage(runs, best, func(number int, p pageRuns) {
		page := t.Leaves[number*8:]
		le.PutUint32(page, uint32(index+p.leaf))
		le.PutUint16(page[4:], uint16(p.row))
		le.PutUint16(page[6:], uint16(p.count()))
		at := t.Leaves[(index+p.leaf)*LeafBytes+p.row*4:]
		start := best.base + uint64(number)<<best.bits
		for i := range p.count() {
			r := p.at(i, start)
			le.PutUint16(at[i*4:], uint16((r.address+rowReach-start)>>shift))
			le.PutUint16(at[i*4+2:], r.code)
		}
	})
	for i := range sequences {
		sequences[i].put(t.sequence(uint16(i)))
	}
	return nil
}

// layoutSlack is which part of the smallest image a better one may be larger.
const layoutSlack = 32

// bestLayout chooses the size of pages: the smallest with which the image is not
// much larger than it could be. In small pages a search touches less memory.
func bestLayout(runs []run, shift uint) layout {
	var possible []layout
	least := maxLeaves
	for bits := uint(minPageBits); bits <= maxPageBits+shift; bits++ {
		l := layout{bits: bits, base: runs[0].address &^ (1<<bits - 1)}
		span := (runs[len(runs)-1].address - l.base) >> bits
		if span >= maxPages {
			continue
		}
		l.pages = int(span) + 1
		l.ok = eachPage(runs, l, func(_ int, p pageRuns) { l.leaves = max(l.leaves, p.leaf+1) })
		if l.ok && l.total() < maxLeaves {
			possible, least = append(possible, l), min(least, l.total())
		}
	}
	for _, l := range possible {
		if l.total() <= least+least/layoutSlack+1 {
			return l
		}
	}
	return layout{}
}

// pageRuns are the rows of one page and where they go.
type pageRuns struct {
	carried   bool // the page begins inside a run of a page before
	before    run
	runs      []run
	leaf, row int
}

func (p *pageRuns) count() int {
	if p.carried {
		return len(p.runs) + 1
	}
	return len(p.runs)
}

func (p *pageRuns) at(i int, start uint64) run {
	if !p.carried {
		return p.runs[i]
	}
	if i > 0 {
		return p.runs[i-1]
	}
	if p.before.last <= start {
		return run{address: start, code: p.before.rule | oneRule}
	}
	return p.before // it began less than rowReach ago
}

// eachPage cuts runs into pages and puts these into leaves, in order, never one
// page into two. Pages of which nothing is described are left out. It reports
// whether every page fits into a leaf.
func eachPage(runs []run, l layout, yield func(int, pageRuns)) bool {
	leaf, used, before := 0, 0, run{}
	for number := 0; number < l.pages; number++ {
		start := l.base + uint64(number)<<l.bits
		n := 0
		for n < len(runs) && (runs[n].address-l.base)>>l.bits == uint64(number) {
			n++
		}
		if n == 0 && before.rule == 0 && before.last <= start {
			if len(runs) == 0 {
				break
			}
			number = int((runs[0].address-l.base)>>l.bits) - 1
			continue
		}
		p := pageRuns{runs: runs[:n], before: before, carried: n == 0 || runs[0].address != start}
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
			before = runs[n-1]
			runs = runs[n:]
		}
	}
	return true
}
