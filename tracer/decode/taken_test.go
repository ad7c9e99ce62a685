package decode

import (
	"bytes"
	"testing"
	"unsafe"
)

func TestTakenRecordsAreWhatWasAddedAndAligned(t *testing.T) {
	var taken takenRecords
	for range 2 {
		taken.clear()
		var want [][]byte
		for n := 1; n < 40; n += 3 {
			raw := bytes.Repeat([]byte{byte(n)}, n)
			want = append(want, bytes.Clone(raw))
			taken.add(raw)
			clear(raw) // the ring is written on
		}
		i := 0
		for raw := range taken.all() {
			if !bytes.Equal(raw, want[i]) || uintptr(unsafe.Pointer(&raw[0]))%8 != 0 {
				t.Errorf("record %d: %v, want %v", i, raw, want[i])
			}
			i++
		}
		if i != len(want) {
			t.Errorf("%d records of %d", i, len(want))
		}
	}
	for !taken.full() {
		taken.add(make([]byte, 4096))
	}
	if n := len(taken.bytes); n > takenBytes+4096 {
		t.Errorf("%d bytes were taken before it was full", n)
	}
}
