package decode

import "iter"

// takenBytes is about how much is taken out of the ring of samples before it is decoded.
const takenBytes = 1 << 20

// takenRecords are records, copied out of a ring. The zero value is empty.
type takenRecords struct {
	bytes []byte
	ends  []int // of each record
}

func (t *takenRecords) clear()     { t.bytes, t.ends = t.bytes[:0], t.ends[:0] }
func (t *takenRecords) full() bool { return len(t.bytes) >= takenBytes }

// add copies a record to where it is aligned as in the ring.
func (t *takenRecords) add(raw []byte) {
	t.bytes = append(t.bytes, raw...)
	t.ends = append(t.ends, len(t.bytes))
	if rest := len(t.bytes) % 8; rest > 0 {
		t.bytes = append(t.bytes, make([]byte, 8-rest)...)
	}
}

// all yields the records in the order in which they were added.
func (t *takenRecords) all() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		begin := 0
		for _, end := range t.ends {
			if !yield(t.bytes[begin:end]) {
				return
			}
			begin = (end + 7) / 8 * 8
		}
	}
}
