package cpython

import (
	"testing"
)

func FuzzLineTable(f *testing.F) {
	f.Add(8, 1, []byte{0, 1, 6, 2, 255, 0, 4, 0x80})
	f.Add(10, 7, []byte{4, 0, 8, 0x80, 2, 1, 0, 3})
	f.Add(12, 1, []byte{0x80, 0, 0xf0, 0x41, 2, 3, 0xd8, 0x80 | 13<<3, 0x7f, 0x7f})
	f.Fuzz(func(t *testing.T, minor, first int, table []byte) {
		lines := NewLineTable(minor, first, table)
		end := 0
		lines.ranges(func(r lineRange) bool {
			if r.start < 0 || r.end < r.start || r.start < end {
				t.Fatalf("the range [%d, %d) after one that ends at %d", r.start, r.end, end)
			}
			end = r.end
			return true
		})
		for _, unit := range []int{-1, 0, 1, len(table), 1 << 30} {
			lines.Line(unit)
		}
	})
}

func FuzzDebugOffsets(f *testing.F) {
	f.Add(debugBytes(0x030d00f0, debugFields313, plausible))
	f.Add(debugBytes(0x030e00f0, debugFields314, plausible))
	f.Fuzz(func(t *testing.T, b []byte) {
		debug, err := ParseDebugOffsets(b)
		if err != nil {
			return
		}
		table := Lookup(debug.Version)
		if table == nil {
			return // 3.13t
		}
		o := debug.Apply(table.Offsets)
		if o.CodeStart < 0 || o.UnicodeASCII < 0 || o.StateFrames < 0 {
			t.Fatalf("negative offsets: %+v", o)
		}
	})
}
