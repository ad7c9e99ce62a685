package elf

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
)

const (
	symbolSize = 24

	symbolObject   = 1
	symbolFunction = 2
	symbolIndirect = 10

	// maxSymbolName is longer than the names of real libraries (10,157 characters
	// in Triton's); it keeps a damaged string table from being one endless name.
	maxSymbolName = 1 << 14
)

// Symbol is one defined symbol.
type Symbol struct {
	Name    string // mangled, without the version ("@@GLIBC_2.34")
	Address uint64 // virtual address in the file
	Size    uint64 // bytes, 0 where the compiler gave none (assembly)
	// Prefix is the index of the longest prefix that matched, in the slice
	// given to FunctionsWithPrefixes; 0 elsewhere.
	Prefix int
	// Indirect marks a GNU indirect function: Address is the resolver that
	// picks the implementation, not the implementation.
	Indirect bool
}

// symbolTable is .dynsym or .symtab, as it lies in the file.
type symbolTable struct {
	entries []byte
	strings []byte
}

// name is the NUL-terminated string at an offset, without a symbol version.
func (t symbolTable) name(offset uint32) string {
	return string(t.nameBytes(offset))
}

func (t symbolTable) nameBytes(offset uint32) []byte {
	if uint64(offset) >= uint64(len(t.strings)) {
		return nil
	}
	b := t.strings[offset:]
	end := bytes.IndexByte(b[:min(len(b), maxSymbolName)], 0)
	if end < 0 {
		return nil
	}
	b = b[:end]
	if at := bytes.IndexByte(b, '@'); at > 0 {
		b = b[:at]
	}
	return b
}

// names reports whether an entry has a name, with or without a version, without a
// look at more of it than that: many entries may share one endless name.
func (t symbolTable) names(entry []byte, name string) bool {
	at := uint64(le.Uint32(entry))
	end := at + uint64(len(name))
	if end >= uint64(len(t.strings)) || len(name) == 0 || t.strings[at] != name[0] || string(t.strings[at:end]) != name {
		return false
	}
	return t.strings[end] == 0 || t.strings[end] == '@'
}

func (t symbolTable) entry(index uint64) []byte {
	if index >= uint64(len(t.entries)/symbolSize) {
		return nil
	}
	return t.entries[index*symbolSize : (index+1)*symbolSize]
}

func (e *File) findSymbolTables() {
	for i := range e.sections {
		s := &e.sections[i]
		var table *symbolTable
		switch s.kind {
		case sectionDynsym:
			table = &e.dynsym
		case sectionSymtab:
			table = &e.symtab
		default:
			continue
		}
		if uint64(s.link) < uint64(len(e.sections)) {
			str := &e.sections[s.link]
			*table = symbolTable{entries: e.slice(s.offset, s.size), strings: e.slice(str.offset, str.size)}
		}
	}
	if d := &e.dynamic; len(e.dynsym.entries) == 0 && d.symbols != 0 {
		e.dynsym = symbolTable{
			entries: e.CodeAt(d.symbols, e.dynamicSymbolCount()*symbolSize),
			strings: e.CodeAt(d.strings, d.stringsSize),
		}
	}
}

// HasSymbolTable reports a file that was not stripped: .symtab has all its
// functions, .dynsym only those that it exports.
func (e *File) HasSymbolTable() bool { return len(e.symtab.entries) > 0 }

// kinds is a set of symbol types, one bit each.
type kinds uint16

const (
	functionKinds kinds = 1<<symbolFunction | 1<<symbolIndirect
	objectKinds   kinds = 1 << symbolObject
)

// FunctionsWithPrefixes returns the functions defined in .dynsym and .symtab
// whose mangled name begins with one of the prefixes, sorted by address, then
// name; each address and name once. It reads each table once, however many
// prefixes there are.
func (e *File) FunctionsWithPrefixes(prefixes []string) []Symbol {
	found := e.match(newPrefixTree(prefixes), functionKinds)
	return slices.DeleteFunc(found, func(s Symbol) bool { return !e.IsCode(s.Address) })
}

// ExportedFunctions is FunctionsWithPrefixes on .dynsym alone: all that other
// libraries can call, in a fraction of the time where .symtab is large (a
// wheel's libtorch has 90 MB of it).
func (e *File) ExportedFunctions(prefixes []string) []Symbol {
	found := e.dynsym.match(newPrefixTree(prefixes), symbolFilter{kinds: functionKinds})
	return slices.DeleteFunc(sortSymbols(found), func(s Symbol) bool { return !e.IsCode(s.Address) })
}

// ObjectsWithPrefix returns the data symbols whose mangled name begins with
// prefix (vtables: "_ZTV"), sorted by address, then name.
func (e *File) ObjectsWithPrefix(prefix string) []Symbol {
	return e.match(newPrefixTree([]string{prefix}), objectKinds)
}

func (e *File) match(tree *prefixTree, wanted kinds) []Symbol {
	e.populateSymbols()
	local := e.exportsAreInDynsym()
	tables := []symbolTable{e.dynsym}
	tables = append(tables, e.symtab.split()...)
	found, faults := make([][]Symbol, len(tables)), make([]error, len(tables))
	var scans sync.WaitGroup
	for i := range tables {
		scans.Go(func() {
			faults[i] = Guard(func() {
				found[i] = tables[i].match(tree, symbolFilter{kinds: wanted, local: local && i > 0})
			})
		})
	}
	scans.Wait()
	if err := errors.Join(faults...); err != nil {
		panic(ErrTruncated) // for the caller's Guard, as if there were no goroutines
	}
	return sortSymbols(slices.Concat(found...))
}

// exportsAreInDynsym: a linker makes every symbol of a library local that it
// does not export, so the global ones in .symtab are those of .dynsym once more.
func (e *File) exportsAreInDynsym() bool {
	return e.fileType == TypeSharedObject && e.interpreter == "" && len(e.dynsym.entries) > 0
}

func sortSymbols(found []Symbol) []Symbol {
	slices.SortFunc(found, func(a, b Symbol) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), strings.Compare(a.Name, b.Name), cmp.Compare(b.Size, a.Size))
	})
	return slices.CompactFunc(found, func(a, b Symbol) bool { return a.Address == b.Address && a.Name == b.Name })
}

// split cuts a big table into parts for as many goroutines. Their number is not that of the
// CPUs: each part has limits of its own, and what is found must not depend on the machine.
func (t symbolTable) split() []symbolTable {
	const small, parts = 50_000 * symbolSize, 4
	if len(t.entries) < small {
		return []symbolTable{t}
	}
	size := (len(t.entries)/symbolSize/parts + 1) * symbolSize
	var tables []symbolTable
	for part := range slices.Chunk(t.entries, size) {
		tables = append(tables, symbolTable{entries: part, strings: t.strings})
	}
	return tables
}

type symbolFilter struct {
	kinds kinds
	local bool // local symbols only
}

func (t symbolTable) match(tree *prefixTree, filter symbolFilter) []Symbol {
	// Names share tails at most, so together they are hardly longer than the
	// string table; a damaged table could make them quadratic.
	budget := min(2*len(t.strings)+1<<20, maxMatchedBytes)
	var found []Symbol
	for b := t.entries; len(b) >= symbolSize; b = b[symbolSize:] {
		entry := b[:symbolSize:symbolSize]
		info := entry[4]
		if filter.kinds>>(info&15)&1 == 0 || filter.local && info>>4 != 0 || le.Uint16(entry[6:]) == 0 {
			continue
		}
		nameOffset := le.Uint32(entry)
		if uint64(nameOffset) >= uint64(len(t.strings)) {
			continue
		}
		prefix := tree.match(t.strings[nameOffset:])
		if prefix < 0 {
			continue
		}
		name := t.nameBytes(nameOffset)
		if name == nil {
			budget -= maxSymbolName // that is how far it was looked for its end
		}
		if budget -= len(name) + 1; budget < 0 || len(found) >= maxMatches {
			break
		}
		if address := le.Uint64(entry[8:]); address != 0 && len(name) > 0 {
			found = append(found, Symbol{
				Name: string(name), Address: address, Size: le.Uint64(entry[16:]),
				Prefix: prefix, Indirect: info&15 == symbolIndirect,
			})
		}
	}
	return found
}

// Lookup finds a defined function or data object by its mangled name: through
// the hash table of .dynsym, else by reading the tables.
func (e *File) Lookup(name string) (Symbol, bool) {
	if s, ok := e.lookupDynamic(name); ok {
		return s, true
	}
	for _, t := range []symbolTable{e.dynsym, e.symtab} {
		if s, ok := t.find(name); ok {
			return s, true
		}
	}
	return Symbol{}, false
}

// find reads a table for a defined function or data object.
func (t symbolTable) find(name string) (Symbol, bool) {
	for b := t.entries; len(b) >= symbolSize; b = b[symbolSize:] {
		if t.names(b, name) {
			if s, ok := t.defined(b[:symbolSize]); ok {
				return s, true
			}
		}
	}
	return Symbol{}, false
}

// Export finds a function or data object that the file exports. Unlike Lookup
// it is quick to say that there is none.
func (e *File) Export(name string) (Symbol, bool) {
	if e.dynamic.gnuHash != 0 {
		return e.lookupDynamic(name)
	}
	return e.dynsym.find(name)
}

// Exports reports whether the file exports a function or object, or, if it is a
// program, has one: what is linked into a program need not be exported. The
// answer is kept: a large program's symbols take long to read.
func (e *File) Exports(name string) bool {
	if known, ok := e.exports.Load(name); ok {
		return known.(bool)
	}
	_, ok := e.Export(name)
	if !ok && e.interpreter != "" {
		_, ok = e.Lookup(name)
	}
	e.exports.Store(name, ok)
	return ok
}

func (e *File) lookupDynamic(name string) (found Symbol, ok bool) {
	if e.dynamic.gnuHash == 0 {
		return Symbol{}, false
	}
	hash, valid := parseGNUHash(e.CodeAt(e.dynamic.gnuHash, maxHashBytes))
	if !valid {
		return Symbol{}, false
	}
	hash.lookup(name, func(index uint64) bool {
		if entry := e.dynsym.entry(index); entry != nil && e.dynsym.names(entry, name) {
			found, ok = e.dynsym.defined(entry)
		}
		return ok
	})
	return found, ok
}

// defined decodes an entry that is a defined function or object.
func (t symbolTable) defined(entry []byte) (Symbol, bool) {
	if len(entry) < symbolSize || (functionKinds|objectKinds)>>(entry[4]&15)&1 == 0 || le.Uint16(entry[6:]) == 0 {
		return Symbol{}, false
	}
	return Symbol{
		Name: t.name(le.Uint32(entry)), Address: le.Uint64(entry[8:]), Size: le.Uint64(entry[16:]),
		Indirect: entry[4]&15 == symbolIndirect,
	}, true
}
