// Package mlir reads the name of a program that JAX hands to a compiler.
//
// The package is no part of the public API: it may change with any version.
package mlir

import (
	"bytes"
	"strings"
)

// maxModuleName is longer than any that a person reads.
const maxModuleName = 1 << 14

// jaxModules are how JAX begins the names of the modules that it compiles.
var jaxModules = []string{"jit_", "pjit_", "pmap_", "xmap_"}

// ModuleName is the name of a module of MLIR, as JAX hands it to a compiler: in
// bytecode or as text. In bytecode it is one of the module's strings, and told
// from the others by how JAX names modules; "" where that is not one string.
//
// https://mlir.llvm.org/docs/BytecodeFormat: magic, version, producer, then
// sections; the strings' section has their number, their lengths, the last
// first, and their bytes with a NUL behind each.
func ModuleName(program []byte) string {
	if rest, ok := bytes.CutPrefix(program, []byte("ML\xefR")); ok {
		return bytecodeName(rest)
	}
	if _, rest, ok := bytes.Cut(program, []byte("module @")); ok {
		end := bytes.IndexFunc(rest, func(r rune) bool {
			return !(r == '_' || r == '.' || r == '$' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z')
		})
		if end > 0 && end < maxModuleName {
			return string(rest[:end])
		}
	}
	return ""
}

func bytecodeName(rest []byte) string {
	r := bytecode{rest: rest}
	r.varint() // version
	if end := bytes.IndexByte(r.rest, 0); end < 0 {
		return ""
	} else {
		r.rest = r.rest[end+1:] // producer
	}
	for len(r.rest) > 0 && !r.bad {
		id := r.bytes(1)
		length := r.varint()
		if r.bad || id[0]&0x80 != 0 {
			return "" // an aligned section: the strings are none
		}
		section := r.bytes(length)
		if id[0] == 0 {
			return moduleString(section)
		}
	}
	return ""
}

// moduleString picks the module's name out of the strings' section.
func moduleString(section []byte) (name string) {
	r := bytecode{rest: section}
	count := r.varint()
	if r.bad || count > uint64(len(section)) {
		return ""
	}
	for range count {
		r.varint()
	}
	for s := range strings.SplitSeq(string(r.rest), "\x00") {
		for _, prefix := range jaxModules {
			if strings.HasPrefix(s, prefix) {
				if name != "" && name != s {
					return ""
				}
				name = s
			}
		}
	}
	return name
}

// bytecode reads the primitives of the format.
type bytecode struct {
	rest []byte
	bad  bool
}

func (r *bytecode) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.bad = true
		return make([]byte, 1)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// varint is a number of up to eight bytes behind its first, whose trailing zero
// bits say how many.
func (r *bytecode) varint() (v uint64) {
	first := r.bytes(1)[0]
	more := uint64(0)
	for ; more < 8 && first>>more&1 == 0; more++ {
	}
	if r.bad {
		return 0
	}
	if more == 8 {
		for i, b := range r.bytes(8) {
			v |= uint64(b) << (8 * i)
		}
		return v
	}
	v = uint64(first)
	for i, b := range r.bytes(more) {
		v |= uint64(b) << (8 * (i + 1))
	}
	return v >> (more + 1)
}
