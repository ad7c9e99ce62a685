package elf

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
)

// unwindIndex finds the frame description that covers an address: the binary
// search table of .eh_frame_hdr as it lies in the file, or, where there is
// none, the same made from .eh_frame.
type unwindIndex struct {
	frames        []byte // .eh_frame
	framesAddress uint64
	table         []byte // pairs of int32: function start, description; from base
	base          uint64
	scanned       []extent // instead of table
}

type extent struct{ start, end uint64 }

const (
	encodingOmit     = 0xff
	encodingDataRel4 = 0x3b // DW_EH_PE_datarel | DW_EH_PE_sdata4: what every linker writes
)

// FunctionStarts returns the sorted start addresses of all frame descriptions:
// every function a compiler made, also in stripped files; and, on their own,
// the split-off cold halves of functions and the linkage table.
func (e *File) FunctionStarts() []uint64 {
	u := e.unwindTable()
	starts := make([]uint64, 0, u.len())
	for i := range u.len() {
		starts = append(starts, u.start(i))
	}
	if !slices.IsSorted(starts) {
		slices.Sort(starts)
	}
	return slices.Compact(starts)
}

// IsFunctionStart reports whether a frame description begins at the address.
func (e *File) IsFunctionStart(address uint64) bool {
	u := e.unwindTable()
	i := u.find(address)
	return i >= 0 && u.start(i) == address
}

// Extent returns the bounds [start, end) of the frame description that covers
// the address: the function, or its cold half where the compiler split it.
func (e *File) Extent(address uint64) (start, end uint64, ok bool) {
	u := e.unwindTable()
	i := u.find(address)
	if i < 0 {
		return 0, 0, false
	}
	x := u.extent(i)
	if address < x.start || address >= x.end {
		return 0, 0, false
	}
	return x.start, x.end, true
}

// UnwindFrames returns the contents of .eh_frame and its address, also of files
// without section headers; not ok where there is none. The slice lies in the
// mapped file, as CodeAt's.
func (e *File) UnwindFrames() (contents []byte, address uint64, ok bool) {
	e.framesOnce.Do(e.findFrames)
	return e.unwind.frames, e.unwind.framesAddress, len(e.unwind.frames) > 0
}

// findFrames finds the descriptions and the table that leads to them.
func (e *File) findFrames() {
	u := &e.unwind
	h := e.ehFrameHeader
	if e.emptied(".eh_frame") || e.emptied(".eh_frame_hdr") {
		return
	}
	header := e.slice(h.offset, h.size)
	if h.size == 0 {
		header, h.address, _ = e.Section(".eh_frame_hdr")
	}
	if contents, address, ok := e.Section(".eh_frame"); ok {
		u.frames, u.framesAddress = contents, address
	}
	u.parseHeader(header, h.address, func(address uint64) []byte { return e.CodeAt(address, ^uint64(0)) })
}

func (e *File) unwindTable() *unwindIndex {
	e.framesOnce.Do(e.findFrames)
	e.unwindOnce.Do(func() {
		if u := &e.unwind; len(u.table) == 0 {
			u.scan()
		}
	})
	return &e.unwind
}

// parseHeader reads .eh_frame_hdr, found at address; contents gives the file's
// bytes from an address on.
func (u *unwindIndex) parseHeader(header []byte, address uint64, contents func(uint64) []byte) {
	if len(header) < 4 || header[0] != 1 {
		return
	}
	r := encodedReader{data: header, at: 4, address: address, base: address}
	frames, ok := r.read(header[1])
	if !ok {
		return
	}
	if u.frames == nil {
		u.frames, u.framesAddress = contents(frames), frames
	}
	if header[2] == encodingOmit || header[3] != encodingDataRel4 {
		return
	}
	count, ok := r.read(header[2])
	if !ok {
		return
	}
	table := header[r.at:]
	u.base = address
	u.table = table[:min(count, uint64(len(table)/8))*8]
}

func (u *unwindIndex) len() int {
	if u.scanned != nil {
		return len(u.scanned)
	}
	return len(u.table) / 8
}

func (u *unwindIndex) start(i int) uint64 {
	if u.scanned != nil {
		return u.scanned[i].start
	}
	return u.base + uint64(int64(int32(le.Uint32(u.table[i*8:]))))
}

// find returns the last entry that starts at or below the address, -1 if none.
func (u *unwindIndex) find(address uint64) int {
	return sort.Search(u.len(), func(i int) bool { return u.start(i) > address }) - 1
}

func (u *unwindIndex) extent(i int) extent {
	if u.scanned != nil {
		return u.scanned[i]
	}
	description := u.base + uint64(int64(int32(le.Uint32(u.table[i*8+4:]))))
	if at := description - u.framesAddress; description >= u.framesAddress && at < uint64(len(u.frames)) {
		if x, ok := u.description(int(at)); ok {
			return x
		}
	}
	return extent{}
}

// scan makes the index from .eh_frame itself.
func (u *unwindIndex) scan() {
	u.scanned = []extent{}
	for at := 0; at+4 <= len(u.frames); {
		_, next, ok := u.record(at)
		if !ok {
			break
		}
		if x, ok := u.description(at); ok && x.end > x.start {
			u.scanned = append(u.scanned, x)
		}
		at = next
	}
	slices.SortFunc(u.scanned, func(a, b extent) int { return cmp.Compare(a.start, b.start) })
}

// record bounds the record of .eh_frame at an offset. A zero length ends one
// object file's records; more may follow.
func (u *unwindIndex) record(at int) (body, end int, ok bool) {
	if at < 0 || at+4 > len(u.frames) {
		return 0, 0, false
	}
	length, body := uint64(le.Uint32(u.frames[at:])), at+4
	if length == 0xffffffff {
		if body+8 > len(u.frames) {
			return 0, 0, false
		}
		length, body = le.Uint64(u.frames[body:]), body+8
	}
	if length > uint64(len(u.frames)-body) {
		return 0, 0, false
	}
	return body, body + int(length), true
}

// description decodes the frame description at an offset; not ok for the
// common records between them.
func (u *unwindIndex) description(at int) (extent, bool) {
	body, end, ok := u.record(at)
	if !ok || end-body < 4 {
		return extent{}, false
	}
	back := le.Uint32(u.frames[body:])
	if back == 0 || uint64(back) > uint64(body) {
		return extent{}, false
	}
	encoding, ok := u.addressEncoding(body - int(back))
	if !ok {
		return extent{}, false
	}
	r := encodedReader{data: u.frames[:end], at: body + 4, address: u.framesAddress}
	start, ok := r.read(encoding)
	if !ok {
		return extent{}, false
	}
	size, ok := r.read(encoding & 0x0f)
	if !ok || start+size < start {
		return extent{}, false
	}
	return extent{start, start + size}, true
}

// addressEncoding reads how the descriptions of the common record at an offset
// write addresses: the R of its augmentation.
func (u *unwindIndex) addressEncoding(at int) (byte, bool) {
	body, end, ok := u.record(at)
	if !ok || end-body < 6 || le.Uint32(u.frames[body:]) != 0 {
		return 0, false
	}
	b := u.frames[body+5 : end]
	zero := bytes.IndexByte(b, 0)
	if zero < 0 || zero > 16 {
		return 0, false
	}
	augmentation := string(b[:zero])
	if augmentation == "" {
		return 0, true // DW_EH_PE_absptr
	}
	if augmentation[0] != 'z' {
		return 0, false
	}
	r := encodedReader{data: b, at: zero + 1}
	for range 4 { // code and data alignment, return register, augmentation length
		if _, ok := r.leb(); !ok {
			return 0, false
		}
	}
	for _, c := range augmentation[1:] {
		switch c {
		case 'S', 'B', 'G':
		case 'L', 'R':
			if r.at >= len(b) {
				return 0, false
			}
			if c == 'R' {
				return b[r.at], true
			}
			r.at++
		case 'P':
			if r.at >= len(b) {
				return 0, false
			}
			encoding := b[r.at]
			r.at++
			if _, ok := r.read(encoding & 0x0f); !ok {
				return 0, false
			}
		default:
			return 0, false
		}
	}
	return 0, true
}

// encodedReader reads the pointers of the Linux Standard Base's exception
// frames (DW_EH_PE_*).
type encodedReader struct {
	data    []byte
	at      int
	address uint64 // of data[0]
	base    uint64 // what data-relative pointers count from
}

func (r *encodedReader) read(encoding byte) (uint64, bool) {
	var value, origin uint64
	switch encoding & 0x70 {
	case 0x00:
	case 0x10:
		origin = r.address + uint64(r.at)
	case 0x30:
		origin = r.base
	default:
		return 0, false
	}
	if encoding&0x80 != 0 || r.at > len(r.data) {
		return 0, false
	}
	b, size := r.data[r.at:], 0
	switch encoding & 0x0f {
	case 0x00, 0x04, 0x0c:
		size = 8
	case 0x02, 0x0a:
		size = 2
	case 0x03, 0x0b:
		size = 4
	case 0x01: // uleb128
		value, ok := r.leb()
		return origin + value, ok
	default:
		return 0, false
	}
	if len(b) < size {
		return 0, false
	}
	switch encoding & 0x0f {
	case 0x02:
		value = uint64(le.Uint16(b))
	case 0x0a:
		value = uint64(int64(int16(le.Uint16(b))))
	case 0x03:
		value = uint64(le.Uint32(b))
	case 0x0b:
		value = uint64(int64(int32(le.Uint32(b))))
	default:
		value = le.Uint64(b)
	}
	r.at += size
	return origin + value, true
}

// leb reads a LEB128 number; the sign of a signed one is not extended.
func (r *encodedReader) leb() (value uint64, ok bool) {
	for shift := uint(0); r.at < len(r.data) && shift < 70; shift += 7 {
		c := r.data[r.at]
		r.at++
		value |= uint64(c&0x7f) << shift
		if c&0x80 == 0 {
			return value, true
		}
	}
	return 0, false
}
