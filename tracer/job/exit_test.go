package job

import "testing"

// The kernel tells an end as wait(2) does: a core dump's bit beside the signal is none of its number.
func TestAnEndIsACodeOrASignal(t *testing.T) {
	for status, want := range map[int32][2]int32{0: {0, -1}, 1 << 8: {1, -1}, 255 << 8: {255, -1}, 9: {-1, 9}, 11 | 0x80: {-1, 11}} {
		got := [2]int32{-1, -1}
		if code, signal := exit(status); code != nil {
			got[0] = *code
		} else if signal != nil {
			got[1] = *signal
		}
		if got != want {
			t.Errorf("%#x is %v, want %v", status, got, want)
		}
	}
}
