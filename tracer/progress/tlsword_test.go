package progress

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// The code of at::sequence_number::peek, as two builds have it: a word of its own
// pair (torch 1.13, general dynamic) and one of a pair for the whole library (torch
// 2.15, local dynamic).
var (
	peekOfItsOwn = []byte{0x48, 0x83, 0xec, 0x08, 0x66, 0x48, 0x8d, 0x3d, 0x5c, 0x26, 0x4b, 0x06, 0x66, 0x66, 0x48,
		0xe8, 0x7c, 0xee, 0xa9, 0xff, 0x48, 0x8b, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3}
	peekInABlock = []byte{0x48, 0x83, 0xec, 0x08, 0x48, 0x8d, 0x3d, 0x1d, 0x45, 0x56, 0x13,
		0xe8, 0xf0, 0xcc, 0x68, 0xff, 0x48, 0x8b, 0x80, 0xd0, 0x01, 0x00, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3}
)

func TestTheWordOfAThreadIsFoundInTheCodeThatReturnsIt(t *testing.T) {
	for name, c := range map[string]struct {
		address uint64
		code    []byte
		want    tlsWord
		ok      bool
	}{
		"general dynamic":    {0xd90460, peekOfItsOwn, tlsWord{pair: 0x7242ac8}, true},
		"local dynamic":      {0x1958070, peekInABlock, tlsWord{pair: 0x14ebc598, displacement: 0x1d0}, true},
		"a short one":        {0x1000, peekInABlock[:22], tlsWord{}, false},
		"another call":       {0x1000, append([]byte{0x48, 0x8d, 0x3d, 0, 0, 0, 0, 0xe9}, peekInABlock...), tlsWord{}, false},
		"an initial-exec":    {0x1000, []byte{0x48, 0x8b, 0x05, 0, 0, 0, 0, 0x64, 0x48, 0x8b, 0x00, 0xc3}, tlsWord{}, false},
		"nothing":            {0x1000, nil, tlsWord{}, false},
		"not a load from it": {0x1000, append(append([]byte{}, peekInABlock[:16]...), 0x48, 0x8b, 0x83, 1, 0, 0, 0, 0xc3), tlsWord{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			word, ok := tlsWordOf(site.Function{Arch: site.AMD64, Address: c.address, Code: c.code})
			if ok != c.ok || ok && word != c.want {
				t.Errorf("%#v, %t; want %#v, %t", word, ok, c.want, c.ok)
			}
		})
	}
}

func FuzzTLSWordOf(f *testing.F) {
	f.Add(peekOfItsOwn)
	f.Add(peekInABlock)
	f.Fuzz(func(t *testing.T, code []byte) {
		tlsWordOf(site.Function{Arch: site.AMD64, Address: 0x1000, Code: code})
	})
}

// words is the memory of a process, as far as it is mapped.
type words map[uint64]uint64

func (w words) ReadAt(b []byte, at int64) (int, error) {
	v, ok := w[uint64(at)]
	if !ok {
		return 0, errors.New("not mapped")
	}
	binary.LittleEndian.PutUint64(b, v)
	return 8, nil
}

func TestTheAddressOfAThreadsWord(t *testing.T) {
	const bias, pointer, vector = 0x7f0000000000, 0x7f1000, 0x5000
	word := tlsWord{pair: 0x100, displacement: 8}
	with := func(more words) words {
		memory := words{bias + 0x100: 3, bias + 0x108: 0x20, pointer + 8: vector, vector - 16: 20, vector + 3*16: 0x9000}
		for at, v := range more {
			memory[at] = v
		}
		return memory
	}
	for name, c := range map[string]struct {
		memory words
		want   uint64
		fails  bool
	}{
		"in its block":                {with(nil), 0x9000 + 0x20 + 8, false},
		"the block is not used yet":   {with(words{vector + 3*16: dtvUnallocated}), 0, false},
		"the vector is too short":     {with(words{vector - 16: 2}), 0, false},
		"no such block":               {with(words{bias + 0x100: 1 << 40}), 0, true},
		"not yet relocated":           {with(words{bias + 0x100: 0}), 0, true},
		"a thread pointer of nothing": {words{bias + 0x100: 3, bias + 0x108: 0}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := word.address(c.memory, bias, pointer)
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("%#x, %v; want %#x, failing: %t", got, err, c.want, c.fails)
			}
		})
	}
}
