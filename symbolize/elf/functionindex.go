package elf

import (
	"bytes"
	"cmp"
	"iter"
	"math"
	"slices"
)

// FunctionIndex says which function begins at an address, and which one covers
// it: 16 bytes a symbol, the names left in the file until they are asked
// about, because a wheel's libtorch has 390,000 of them in 60 MB. It is good
// until the file is closed.
type FunctionIndex struct {
	file    *File
	entries []indexEntry
}

// indexEntry is one symbol: everything else about it is read from the file.
type indexEntry struct {
	address uint64
	size    uint32 // clipped
	symbol  uint32 // index in .dynsym, or in .symtab and then inSymtab is set
}

const (
	inSymtab   = 1 << 31
	entryBytes = 16
)

// IndexFunctions reads both symbol tables once.
func (e *File) IndexFunctions() *FunctionIndex {
	e.populateSymbols()
	x := &FunctionIndex{file: e}
	x.add(e.dynsym, 0, false)
	x.add(e.symtab, inSymtab, e.exportsAreInDynsym())
	slices.SortFunc(x.entries, func(a, b indexEntry) int {
		return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(a.symbol, b.symbol))
	})
	x.entries = slices.Clip(x.entries)
	return x
}

// Bytes is how much memory the index takes.
func (x *FunctionIndex) Bytes() int { return len(x.entries) * entryBytes }

func (x *FunctionIndex) add(t symbolTable, flag uint32, localOnly bool) {
	wanted := func(entry []byte) bool {
		info := entry[4]
		return functionKinds>>(info&15)&1 != 0 && le.Uint16(entry[6:]) != 0 && le.Uint64(entry[8:]) != 0 &&
			!(localOnly && info>>4 != 0)
	}
	count := 0
	for b := t.entries; len(b) >= symbolSize; b = b[symbolSize:] {
		if wanted(b[:symbolSize:symbolSize]) {
			count++
		}
	}
	count = min(count, maxIndexed-len(x.entries))
	x.entries = slices.Grow(x.entries, count)
	for i := uint32(0); i < inSymtab && len(x.entries) < maxIndexed && len(t.entries) >= symbolSize; i, t.entries = i+1,
		t.entries[symbolSize:] {
		if entry := t.entries[:symbolSize:symbolSize]; wanted(entry) {
			size := min(le.Uint64(entry[16:]), math.MaxUint32)
			x.entries = append(x.entries, indexEntry{le.Uint64(entry[8:]), uint32(size), i | flag})
		}
	}
}

// Begins reports whether a function begins at the address. The split-off half
// of one ("f.cold") does not.
func (x *FunctionIndex) Begins(address uint64) bool {
	for _, name := range x.symbols(address) {
		if !bytes.HasSuffix(name, []byte(".cold")) {
			return true
		}
	}
	return false
}

// Name is the mangled name of the function that begins at the address, the
// best known of them where it has several; "" where none does.
func (x *FunctionIndex) Name(address uint64) string {
	name, _ := x.best(address, 0)
	return string(name)
}

// maxOverlaps bounds how many symbols with lower addresses are looked at for
// one that reaches over the address: nested symbols are rare, gaps are not.
const maxOverlaps = 16

// Covering is the function whose symbol covers the address: the address lies
// in [Address, Address+Size). What comes after the end of a symbol is not
// named after it, however near: in a library that exports 600 of its 12,000
// functions that would make up most names. A symbol without a size, as
// assembly has them, covers the frame description that begins where it does.
func (x *FunctionIndex) Covering(address uint64) (Symbol, bool) {
	if !x.file.mapsCode(address) {
		return Symbol{}, false
	}
	i, _ := slices.BinarySearchFunc(x.entries, address, func(p indexEntry, address uint64) int {
		return cmp.Or(cmp.Compare(p.address, address), -1)
	})
	for looked := 0; i > 0 && looked < maxOverlaps; looked++ {
		i--
		p := x.entries[i]
		if d := address - p.address; d < uint64(p.size) || p.size == 0 && x.describes(p.address, address) {
			if name, best := x.best(p.address, d); len(name) > 0 {
				return x.symbol(best, name), true
			}
		}
	}
	return Symbol{}, false
}

// describes reports whether the frame description that begins at start covers
// the address.
func (x *FunctionIndex) describes(start, address uint64) bool {
	from, to, ok := x.file.Extent(address)
	return ok && from == start && address < to
}

func (x *FunctionIndex) symbol(p indexEntry, name []byte) Symbol {
	size := uint64(p.size)
	if _, end, ok := x.file.Extent(p.address); ok && size == 0 {
		size = end - p.address
	}
	entry := x.entry(p)
	return Symbol{Name: string(name), Address: p.address, Size: size, Indirect: len(entry) > 4 && entry[4]&15 == symbolIndirect}
}

// best chooses among the names of one address of which the symbol, when it has
// a size, is larger than past: what other files call it rather than what its
// author did, the fewest leading underscores, the shortest.
func (x *FunctionIndex) best(address, past uint64) (name []byte, place indexEntry) {
	var lowest [4]int
	for p, n := range x.symbols(address) {
		if p.size != 0 && uint64(p.size) <= past || p.size == 0 && past != 0 && !x.describes(address, address+past) {
			continue
		}
		rank := x.rank(p, n)
		if c := slices.Compare(rank[:], lowest[:]); name == nil || c < 0 || c == 0 && bytes.Compare(n, name) < 0 {
			name, place, lowest = n, p, rank
		}
	}
	return name, place
}

func (x *FunctionIndex) rank(p indexEntry, name []byte) [4]int {
	const (
		local  = 0
		global = 1
	)
	binding := 1 // weak, unique
	if entry := x.entry(p); len(entry) > 4 {
		switch entry[4] >> 4 {
		case global:
			binding = 0
		case local:
			binding = 2
		}
	}
	sizeless := 0
	if p.size == 0 {
		sizeless = 1
	}
	bare := bytes.TrimLeft(name, "_")
	return [4]int{sizeless, binding, len(name) - len(bare), len(bare)}
}

// symbols yields the symbols at an address in code, with their names.
func (x *FunctionIndex) symbols(address uint64) iter.Seq2[indexEntry, []byte] {
	return func(yield func(indexEntry, []byte) bool) {
		i, found := slices.BinarySearchFunc(x.entries, address, func(p indexEntry, address uint64) int {
			return cmp.Compare(p.address, address)
		})
		if !found || !x.file.mapsCode(address) {
			return
		}
		for last := i + maxAliases; i < min(last, len(x.entries)) && x.entries[i].address == address; i++ {
			if name := x.name(x.entries[i]); len(name) > 0 && !yield(x.entries[i], name) {
				return
			}
		}
	}
}

func (x *FunctionIndex) table(p indexEntry) symbolTable {
	if p.symbol&inSymtab != 0 {
		return x.file.symtab
	}
	return x.file.dynsym
}

func (x *FunctionIndex) entry(p indexEntry) []byte {
	return x.table(p).entry(uint64(p.symbol &^ inSymtab))
}

func (x *FunctionIndex) name(p indexEntry) []byte {
	entry := x.entry(p)
	if len(entry) < 4 {
		return nil
	}
	return x.table(p).nameBytes(le.Uint32(entry))
}
