package decode

import "iter"

// takenBytes is about how much is taken out of the ring of samples before it is decoded.
const takenBytes = 1 << 20

// takenMost is about how much is taken at most while those before are decoded.
const takenMost = 16 << 20

// takenRecords are records, copied out of a ring. The zero value is empty.
type takenRecords struct {
	bytes []byte
	ends  []int // of each record
}

func (t *takenRecords) clear() {
	if cap(t.bytes) > 4*takenBytes { // it was more than there usually is
		t.bytes, t.ends = nil, nil
	}
	t.bytes, t.ends = t.bytes[:0], t.ends[:0]
}

// add copies a record to where it is aligned as in the ring.
func (t *takenRecords) add(raw []byte) {
	t.bytes = append(t.bytes, raw...)
	t.ends = append(t.ends, len(t.bytes))
	if rest := len(t.bytes) % 8; rest > 0 {
		t.bytes = append(t.bytes, make([]byte, 8-rest)...)
	}
}

// all yields the records in the order in which they were added, those that are added
// meanwhile too.
func (t *takenRecords) all() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		begin := 0
		for i := 0; i < len(t.ends); i++ {
			end := t.ends[i]
			if !yield(t.bytes[begin:end]) {
				return
			}
			begin = (end + 7) / 8 * 8
		}
	}
}
