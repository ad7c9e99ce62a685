package amount

import "testing"

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1002003: "1,002,003", 12_345_678: "12.3 M"} {
		if got := Count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 20: "3.0 MiB", 5 << 29: "2.50 GiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
