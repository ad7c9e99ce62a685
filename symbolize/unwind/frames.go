package unwind

import (
	"bytes"
	"encoding/binary"
)

var le = binary.LittleEndian

// reader takes numbers off a slice; at its end it gives zeros and remembers.
type reader struct {
	data []byte
	at   int
	bad  bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.data)-r.at {
		r.bad, r.at = true, len(r.data)
		return nil
	}
	b := r.data[r.at : r.at+n]
	r.at += n
	return b
}

func (r *reader) done() bool { return r.at >= len(r.data) }

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return le.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

func (r *reader) uleb() uint64 {
	value := uint64(0)
	for shift := uint(0); shift < 70; shift += 7 {
		c := r.u8()
		value |= uint64(c&0x7f) << shift
		if c&0x80 == 0 {
			return value
		}
	}
	r.bad = true
	return 0
}

func (r *reader) sleb() int64 {
	value := int64(0)
	for shift := uint(0); shift < 70; {
		c := r.u8()
		value |= int64(c&0x7f) << shift
		shift += 7
		if c&0x80 == 0 {
			if c&0x40 != 0 && shift < 64 {
				value |= -1 << shift
			}
			return value
		}
	}
	r.bad = true
	return 0
}

// pointer reads an address in the encoding DW_EH_PE_*; address is where data[0]
// is mapped. Indirect and data-relative pointers do not occur where addresses
// of code are written.
func (r *reader) pointer(encoding byte, address uint64) uint64 {
	origin := uint64(0)
	switch encoding & 0xf0 {
	case 0x00:
	case 0x10:
		origin = address + uint64(r.at)
	default:
		r.bad = true
		return 0
	}
	switch encoding & 0x0f {
	case 0x00, 0x04, 0x0c:
		return origin + r.u64()
	case 0x01:
		return origin + r.uleb()
	case 0x02:
		return origin + uint64(r.u16())
	case 0x03:
		return origin + uint64(r.u32())
	case 0x09:
		return origin + uint64(r.sleb())
	case 0x0a:
		return origin + uint64(int64(int16(r.u16())))
	case 0x0b:
		return origin + uint64(int64(int32(r.u32())))
	}
	r.bad = true
	return 0
}

// common is a CIE: what the descriptions of many functions share.
type common struct {
	codeAlign    uint64
	dataAlign    int64
	encoding     byte // of addresses
	augmented    bool // descriptions begin with the length of more data
	signal       bool // the kernel builds these frames
	returnColumn uint64
	initial      state
	ok           bool
}

// description is an FDE: one function, or a part of one.
type description struct {
	start, end   uint64
	common       *common
	instructions []byte
}

// frames is an .eh_frame section.
type frames struct {
	data    []byte
	address uint64
	machine machine
	commons map[int]*common
	skipped int // descriptions that can not be read
}

// record bounds the record at an offset. A zero length ends one object file's
// records; more may follow.
func (f *frames) record(at int) (body, end int, ok bool) {
	if len(f.data)-at < 4 {
		return 0, 0, false
	}
	length, body := uint64(le.Uint32(f.data[at:])), at+4
	if length == 0xffffffff {
		if len(f.data)-body < 8 {
			return 0, 0, false
		}
		length, body = le.Uint64(f.data[body:]), body+8
	}
	if length > uint64(len(f.data)-body) {
		return 0, 0, false
	}
	return body, body + int(length), true
}

// each yields every description in the order of the section.
func (f *frames) each(yield func(description)) {
	for at := 0; ; {
		body, end, ok := f.record(at)
		if !ok {
			return
		}
		at = end
		if end-body < 4 || le.Uint32(f.data[body:]) == 0 {
			continue // a terminator, or a CIE
		}
		if d, ok := f.description(body, end); ok {
			yield(d)
		} else {
			f.skipped++
		}
	}
}

func (f *frames) description(body, end int) (description, bool) {
	back := uint64(le.Uint32(f.data[body:]))
	if back > uint64(body) {
		return description{}, false
	}
	c := f.common(body - int(back))
	if !c.ok {
		return description{}, false
	}
	r := reader{data: f.data[:end], at: body + 4}
	start := r.pointer(c.encoding, f.address)
	size := r.pointer(c.encoding&0x0f, 0)
	if c.augmented {
		r.take(int(min(r.uleb(), uint64(len(f.data)))))
	}
	if r.bad || start+size < start {
		return description{}, false
	}
	return description{start, start + size, c, r.data[r.at:]}, true
}

// common reads the CIE at an offset, once.
func (f *frames) common(at int) *common {
	if c, ok := f.commons[at]; ok {
		return c
	}
	c := &common{}
	f.commons[at] = c
	body, end, ok := f.record(at)
	if !ok || end-body < 6 || le.Uint32(f.data[body:]) != 0 {
		return c
	}
	version := f.data[body+4]
	text := f.data[body+5 : end]
	zero := bytes.IndexByte(text, 0)
	if zero < 0 || zero > 16 || version != 1 && version != 3 {
		return c
	}
	r := reader{data: text, at: zero + 1}
	c.codeAlign, c.dataAlign = r.uleb(), r.sleb()
	if version == 1 {
		c.returnColumn = uint64(r.u8())
	} else {
		c.returnColumn = r.uleb()
	}
	if !c.augmentation(string(text[:zero]), &r) || r.bad {
		return c
	}
	m := interpreter{common: c, machine: f.machine, state: f.machine.entry()}
	c.ok = m.run(text[r.at:], 0, ^uint64(0), func(uint64, *state) {})
	c.initial = m.state
	return c
}

// augmentation reads what the letters of the augmentation announce, and leaves
// the reader at the initial instructions.
func (c *common) augmentation(letters string, r *reader) bool {
	if letters == "" {
		return true
	}
	if letters[0] != 'z' {
		return false
	}
	c.augmented = true
	length := r.uleb()
	if r.bad || length > uint64(len(r.data)-r.at) {
		return false
	}
	end := r.at + int(length)
	for _, letter := range letters[1:] {
		switch letter {
		case 'R':
			c.encoding = r.u8()
		case 'P':
			encoding := r.u8()
			r.pointer(encoding&0x0f, 0)
		case 'L':
			r.u8()
		case 'S':
			c.signal = true
		case 'B', 'G': // arm64: signed with the B key; tagged memory
		default:
			return false
		}
	}
	r.at = end
	return true
}
