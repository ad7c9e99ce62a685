package pjrt

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Entry is the one function that every plugin exports.
const Entry = "GetPjrtApi"

const (
	// maxFunctions and maxDepth bound how far GetPjrtApi is followed into what it
	// calls and jumps to: XLA's is a jump to another function whose first half
	// makes extensions, each behind a guard.
	maxFunctions = 64
	maxDepth     = 3
	// maxCode is how much of one function is read, bytes.
	maxCode = 4096
)

// candidate is an address of the file at which the table may lie, or, if
// pointer is set, the address of a word that may point to it.
type candidate struct {
	address uint64
	pointer bool
}

// reference is what one instruction says about addresses.
type reference struct {
	candidate
	data   bool // names data
	branch bool // leads to other code
}

// candidates lists what the code of GetPjrtApi names, the nearest first. It is
// liberal: what is no table does not survive being read as one.
func candidates(e *elf.File, entry uint64) []candidate {
	decode := decodeX86
	if e.Machine() == elf.MachineARM64 {
		decode = decodeARM64
	}
	var found []candidate
	seen := map[uint64]bool{entry: true}
	level := []uint64{entry}
	for depth := 0; depth <= maxDepth && len(level) > 0; depth++ {
		var next []uint64
		for _, function := range level {
			for _, r := range decode(function, body(e, function)) {
				switch {
				case r.branch && len(seen) < maxFunctions && !seen[r.address] && e.IsCode(r.address):
					seen[r.address] = true
					next = append(next, r.address)
				case r.data && !e.IsCode(r.address) && !slices.Contains(found, r.candidate):
					found = append(found, r.candidate)
				}
			}
		}
		level = next
	}
	return found
}

// body is the code of a function, as its frame description bounds it.
func body(e *elf.File, address uint64) []byte {
	size := uint64(maxCode)
	if start, end, ok := e.Extent(address); ok && start == address {
		size = min(size, end-start)
	}
	return e.CodeAt(address, size)
}
