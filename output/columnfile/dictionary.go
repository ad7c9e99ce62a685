package columnfile

import (
	"strings"
	"unsafe"
)

// textDictionary gives each distinct text a code, in order of appearance.
//
// Texts of events repeat as the very same string (the name of a Call, a
// constant), so a small cache by address answers nearly always; an entry keeps
// its string alive, therefore the address cannot come to mean another one.
type textDictionary struct {
	texts  []string
	codes  map[string]int32
	recent [256]struct {
		text string
		code int32
	}
}

func (d *textDictionary) reset() {
	if len(d.texts) == 0 {
		return
	}
	clear(d.texts)
	d.texts = d.texts[:0]
	clear(d.codes)
	clear(d.recent[:])
}

func (d *textDictionary) code(text string) int32 {
	address := uintptr(unsafe.Pointer(unsafe.StringData(text)))
	slot := &d.recent[(uint64(address)*0x9e3779b97f4a7c15)>>56]
	if len(text) > 0 && len(slot.text) == len(text) && unsafe.StringData(slot.text) == unsafe.StringData(text) {
		return slot.code
	}
	code, ok := d.codes[text]
	if !ok {
		code = d.add(text)
	}
	slot.text, slot.code = text, code
	return code
}

// add takes a text in. A string of Parquet is UTF-8, and one that is not spoils the
// whole file for a reader: but names of kernels, threads (cut at 15 bytes by the
// kernel), files and commands are what a job makes of them. What is no text in
// them becomes U+FFFD.
func (d *textDictionary) add(text string) int32 {
	if d.codes == nil {
		d.codes = make(map[string]int32)
	}
	valid := strings.ToValidUTF8(text, "\uFFFD")
	code, ok := d.codes[valid]
	if !ok {
		code = int32(len(d.texts))
		d.texts = append(d.texts, valid)
		d.codes[valid] = code
	}
	d.codes[text] = code
	return code
}

// wordDictionary gives each distinct 64-bit word a code, in order of
// appearance: open addressing, at most half full.
type wordDictionary struct {
	words []uint64
	table []int32 // code+1, 0 is empty; a power of two long
	shift uint
}

func (d *wordDictionary) reset() {
	d.words = d.words[:0]
	if len(d.table) > 1<<12 {
		d.table = nil
	}
	if d.table == nil {
		d.resize(8)
		return
	}
	clear(d.table)
}

func (d *wordDictionary) resize(bits uint) {
	d.table = make([]int32, 1<<bits)
	d.shift = 64 - bits
	for i, w := range d.words {
		d.table[d.find(w)] = int32(i) + 1
	}
}

// find returns the slot that holds w, or the empty one where it belongs.
func (d *wordDictionary) find(w uint64) uint64 {
	mask := uint64(len(d.table) - 1)
	slot := (w * 0x9e3779b97f4a7c15) >> d.shift
	for d.table[slot] != 0 && d.words[d.table[slot]-1] != w {
		slot = (slot + 1) & mask
	}
	return slot
}

func (d *wordDictionary) code(w uint64) int32 {
	slot := d.find(w)
	if code := d.table[slot]; code != 0 {
		return code - 1
	}
	d.words = append(d.words, w)
	code := int32(len(d.words))
	d.table[slot] = code
	if 2*len(d.words) > len(d.table) {
		d.resize(64 - d.shift + 2)
	}
	return code - 1
}

// encodeWords fills codes with the code of each word, or says false when the
// words repeat too seldom for a dictionary to be smaller.
func encodeWords[W int64 | float64](d *wordDictionary, codes []int32, values []W, word func(W) uint64) ([]int32, bool) {
	d.reset()
	codes = codes[:0]
	limit := max(len(values)/4, 64)
	var last uint64
	lastCode := int32(-1)
	for _, v := range values {
		w := word(v)
		if w != last || lastCode < 0 {
			last, lastCode = w, d.code(w)
			if len(d.words) > limit {
				return codes, false
			}
		}
		codes = append(codes, lastCode)
	}
	return codes, true
}
