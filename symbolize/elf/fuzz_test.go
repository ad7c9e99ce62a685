package elf

import (
	"bytes"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
)

// FuzzELF: no file makes the parser panic, and what it returns stays inside
// the file and is not bigger than it.
func FuzzELF(f *testing.F) {
	for _, name := range []string{"tiny.so", "tiny-stripped.so"} {
		f.Add(testelf.Tiny(f, name))
		f.Add(sectionless(testelf.Tiny(f, name)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := New(bytes.NewReader(data))
		if err != nil {
			return
		}
		limit := 4*len(data) + 4<<20
		size := 0
		for _, s := range e.FunctionsWithPrefixes([]string{"", "_ZN2at4_ops", "ex"}) {
			size += len(s.Name)
			if !e.IsCode(s.Address) {
				t.Fatalf("function outside the code: %+v", s)
			}
		}
		if size += len(e.ObjectsWithPrefix("s")); size > limit {
			t.Fatalf("%d bytes of names from a file of %d", size, len(data))
		}
		if s, ok := e.Lookup("exported"); ok && s.Name != "exported" {
			t.Fatalf("Lookup: %+v", s)
		}
		if n := len(e.FunctionStarts()); n > len(data) {
			t.Fatalf("%d function starts in a file of %d bytes", n, len(data))
		}
		for _, address := range []uint64{0, 0x350, 0x3bf, ^uint64(0)} {
			if offset, ok := e.FileOffset(address); ok {
				if back, ok := e.VirtualAddress(offset); !ok && back == address {
					t.Fatalf("offset %#x of address %#x has no address", offset, address)
				}
			}
			if b := e.CodeAt(address, 1<<40); len(b) > len(data) {
				t.Fatalf("%d bytes of code in a file of %d", len(b), len(data))
			}
			e.NoReturn(address)
			e.Extent(address)
			checkName(t, e, address)
		}
		e.SoName()
		e.IsStatic()
		e.Section(".text")
		e.FirstCode()
	})
}

// checkName: a symbol that covers an address does, and a name is never longer
// than the file.
func checkName(t *testing.T, e *File, address uint64) {
	if s, ok := e.IndexFunctions().Covering(address); ok && (address < s.Address || address-s.Address >= s.Size || s.Name == "") {
		t.Fatalf("%#x is in %+v", address, s)
	}
}

// FuzzPLT: a stub decoder never panics and only accepts what is long enough to
// be a stub.
func FuzzPLT(f *testing.F) {
	f.Add(uint64(0x1000), []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x10, 0, 0, 0})
	f.Add(uint64(0x1000), []byte{0x4c, 0x8b, 0x1d, 0x10, 0, 0, 0, 0xe8, 0, 0, 0, 0})
	f.Add(uint64(0x10000), []byte{0x70, 0, 0, 0xf0, 0x11, 0xde, 0x47, 0xf9, 0x10, 0xe2, 0x3e, 0x91, 0x20, 0x02, 0x1f, 0xd6})
	f.Fuzz(func(t *testing.T, address uint64, code []byte) {
		if _, ok := decodeStubX86(address, code); ok && len(code) < 6 {
			t.Fatalf("a stub of %d bytes", len(code))
		}
		if slot, ok := decodeStubARM64(address, code); ok && (len(code) < 12 || slot%8 != 0) {
			t.Fatalf("slot %#x from %d bytes", slot, len(code))
		}
	})
}

// FuzzEhFrameHdr: damaged tables neither panic nor give an extent that does
// not hold the address asked for.
func FuzzEhFrameHdr(f *testing.F) {
	e := parse(f, testelf.Tiny(f, "tiny.so"))
	header, headerAddress, _ := e.Section(".eh_frame_hdr")
	frames, framesAddress, _ := e.Section(".eh_frame")
	f.Add(header, headerAddress, frames, framesAddress, uint64(0x3bf))
	f.Add([]byte{}, uint64(0), frames, framesAddress, uint64(0x3bf))
	f.Fuzz(func(t *testing.T, header []byte, headerAddress uint64, frames []byte, framesAddress, address uint64) {
		u := unwindIndex{frames: frames, framesAddress: framesAddress}
		u.parseHeader(header, headerAddress, func(uint64) []byte { return nil })
		if len(u.table) == 0 {
			u.scan()
		}
		if u.len() > len(header)/8+len(frames)/4 {
			t.Fatalf("%d entries", u.len())
		}
		if i := u.find(address); i >= 0 {
			if x := u.extent(i); x.end < x.start {
				t.Fatalf("extent %+v", x)
			}
		}
	})
}
