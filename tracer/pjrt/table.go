package pjrt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Errors of Read, for errors.Is.
var (
	// ErrNoPlugin: the library does not export GetPjrtApi.
	ErrNoPlugin = errors.New("the library does not export " + Entry)
	// ErrNotBuilt: nothing that GetPjrtApi names is a table, yet. Most plugins
	// make theirs when it is first called.
	ErrNotBuilt = errors.New("the plugin has not made its function table yet")
	// ErrVersion: a table of a major version whose layout is not known.
	ErrVersion = errors.New("a PJRT plugin of an unknown major version")
)

// Table is the function table of one plugin.
type Table struct {
	Address      uint64 // in the process
	Major, Minor int
	Functions    []Function // in the order of the table, those that the plugin has
	Newer        int        // functions behind the last one whose name is known
	// Outside are functions that lie in another library: of a plugin that wraps
	// another one.
	Outside []string
	// Shared are functions that are one and the same: what a plugin does not
	// implement may all lead to one refusal. A probe could not tell them apart.
	Shared []string
}

// Function is one function of the table.
type Function struct {
	Name    string
	Address uint64 // virtual address in the plugin's file
}

// Process is the process that has the plugin loaded.
type Process struct {
	Memory io.ReaderAt               // at the process's addresses
	Bias   uint64                    // what the loader added to the plugin's addresses
	Code   func(address uint64) bool // whether any file is mapped executable there
}

const (
	// headerSize: struct_size, extension_start, and the version: its own
	// struct_size, extension_start, and two ints.
	headerSize  = 40
	versionSize = 24
	// fewestFunctions is less than the oldest plugin has that is of use.
	fewestFunctions = 32
	mostFunctions   = 1024
)

// Find returns the function that names the table, ErrNoPlugin if there is none.
func Find(e *elf.File) (elf.Symbol, error) {
	s, ok := e.Export(Entry)
	if !ok || s.Indirect || !e.IsCode(s.Address) {
		return elf.Symbol{}, ErrNoPlugin
	}
	return s, nil
}

// Read finds a plugin's table in the memory of a process. It returns ErrNoPlugin,
// ErrNotBuilt or ErrVersion.
func Read(e *elf.File, p Process) (*Table, error) {
	entry, err := Find(e)
	if err != nil {
		return nil, err
	}
	result := ErrNotBuilt
	for _, c := range candidates(e, entry.Address) {
		address := p.Bias + c.address
		if c.pointer {
			var word [8]byte
			if _, err := p.Memory.ReadAt(word[:], int64(address)); err != nil {
				continue
			}
			address = binary.LittleEndian.Uint64(word[:])
		}
		table, err := p.read(e, address)
		if err == nil {
			return table, nil
		}
		if errors.Is(err, ErrVersion) {
			result = err
		}
	}
	return nil, result
}

// read reads a table, twice, since it may be about to be made.
func (p Process) read(e *elf.File, address uint64) (*Table, error) {
	first, err := p.bytes(address)
	if err != nil {
		return nil, err
	}
	table, err := parse(first, func(entry uint64) place {
		switch {
		case e.IsCode(entry - p.Bias):
			return inside
		case p.Code(entry):
			return outside
		}
		return nowhere
	})
	if err != nil {
		return nil, err
	}
	if second, err := p.bytes(address); err != nil || !bytes.Equal(first, second) {
		return nil, ErrNotBuilt
	}
	table.Address = address
	for i := range table.Functions {
		table.Functions[i].Address -= p.Bias
	}
	return table, nil
}

// bytes is the table as it stands, as long as it says it is.
func (p Process) bytes(address uint64) ([]byte, error) {
	if address == 0 || address%8 != 0 || int64(address) < 0 {
		return nil, ErrNotBuilt
	}
	var size [8]byte
	if _, err := p.Memory.ReadAt(size[:], int64(address)); err != nil {
		return nil, ErrNotBuilt
	}
	n := binary.LittleEndian.Uint64(size[:])
	if n%8 != 0 || n < headerSize+8*fewestFunctions || n > headerSize+8*mostFunctions {
		return nil, ErrNotBuilt
	}
	b := make([]byte, n)
	if _, err := p.Memory.ReadAt(b, int64(address)); err != nil {
		return nil, ErrNotBuilt
	}
	return b, nil
}

// place says where a function pointer leads.
type place int

const (
	nowhere place = iota
	inside
	outside
)

// required are functions without which nothing can be run: where they are not
// there, the table is not a whole one.
var required = map[string]bool{"PJRT_Error_Destroy": true, "PJRT_Client_Create": true, "PJRT_LoadedExecutable_Execute": true}

// parse reads a table. Every function pointer of it must be null or lead to code.
func parse(b []byte, locate func(uint64) place) (*Table, error) {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	if len(b) < headerSize+8*fewestFunctions || word(0) != uint64(len(b)) || word(16) != versionSize {
		return nil, ErrNotBuilt
	}
	t := &Table{Major: int(int32(word(32))), Minor: int(int32(word(32) >> 32))}
	if t.Minor < 0 || t.Minor > 1<<20 || t.Major < 0 || t.Major > 1<<10 {
		return nil, ErrNotBuilt
	}
	whole, uses := 0, map[uint64]int{}
	for at := headerSize; at+8 <= len(b); at += 8 {
		uses[word(at)]++
	}
	for i, at := 0, headerSize; at+8 <= len(b); i, at = i+1, at+8 {
		pointer := word(at)
		if pointer == 0 {
			continue // not implemented
		}
		where := locate(pointer)
		if where == nowhere {
			return nil, ErrNotBuilt
		}
		if i >= len(fields) {
			t.Newer++
			continue
		}
		switch {
		case where == outside:
			t.Outside = append(t.Outside, fields[i])
		case uses[pointer] > 1:
			t.Shared = append(t.Shared, fields[i])
		default:
			t.Functions = append(t.Functions, Function{fields[i], pointer})
		}
		if required[fields[i]] {
			whole++
		}
	}
	if t.Major != 0 {
		return nil, fmt.Errorf("%w: %d.%d, and only 0 is known", ErrVersion, t.Major, t.Minor)
	}
	if whole != len(required) {
		return nil, ErrNotBuilt
	}
	return t, nil
}
