package merge

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/exchange/cupti"
)

func at(id, start, duration int64) hands {
	return hands{call: call{id: id, start: start, duration: duration}}
}

// A call of CUPTI's is the innermost recorded one that it lies in; clocks that differ by less than a call do not make it
// its neighbour, and what was not recorded is nobody's.
func TestACallIsTheOneThatItLiesIn(t *testing.T) {
	ours := []hands{at(1, 10_000, 5_000), at(2, 16_000, 3_000), at(3, 30_000, 40_000), at(4, 35_000, 4_000), at(5, 200_000, 1_000)}
	for _, c := range []struct{ start, end, want int64 }{
		{10_300, 14_000, 1},
		{16_300, 18_900, 2},
		{36_000, 38_000, 4},   // in a call of the runtime that is in another
		{50_000, 52_000, 3},   // after the inner one
		{201_200, 202_000, 5}, // the clocks are apart
		{100_000, 101_000, 0},
		{24_000, 25_000, 0},
	} {
		got, ok := enclosing(ours, cupti.Call{StartNS: c.start, EndNS: c.end})
		if ok != (c.want != 0) || got.id != c.want {
			t.Errorf("%d to %d is %d, want %d", c.start, c.end, got.id, c.want)
		}
	}
}

// In a pid namespace a thread's number says nothing: the call is whose alone it can be.
func TestACallOfANumberlessThreadIsFoundByItsTime(t *testing.T) {
	ours := map[int32][]hands{7: {at(1, 10_000, 5_000)}, 8: {at(2, 13_000, 8_000)}}
	for _, c := range []struct{ start, end, want int64 }{{10_500, 11_500, 1}, {17_000, 18_000, 2}, {13_500, 14_500, 0}} {
		got, ok := alone(ours, cupti.Call{StartNS: c.start, EndNS: c.end})
		if ok != (c.want != 0) || got.id != c.want {
			t.Errorf("%d to %d is %d, want %d", c.start, c.end, got.id, c.want)
		}
	}
}
