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
		got, ok := enclosing(ours, cupti.Call{StartNS: c.start, EndNS: c.end}, anything)
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

// A thread that is held up between CUPTI's begin of a call and the probe's, or that loads a kernel's module in it, has the
// middle of the call elsewhere: the call is the one of its kind that lies in it.
func TestACallThatIsHeldUpIsTheOneInIt(t *testing.T) {
	of := func(id, start, duration int64, category string) hands {
		h := at(id, start, duration)
		h.category = category
		return h
	}
	ours := []hands{
		of(1, 10_000, 40_000, "module"), of(2, 60_000, 6_000, "launch"), of(3, 100_000, 5_000, "launch"), of(4, 107_000, 5_000, "launch"),
		of(5, 200_000, 9_000, "all_reduce"),
	}
	for _, c := range []struct {
		start, end int64
		kind       cupti.Kind
		want       int64
	}{
		{9_000, 67_000, cupti.Kernel, 2},
		{40_000, 67_000, cupti.Kernel, 2},
		{9_000, 67_000, cupti.Copy, 1},     // no copy is in it: what its middle is in
		{80_000, 150_000, cupti.Kernel, 0}, // two are
		{63_500, 90_000, cupti.Kernel, 0},  // it began before
		{201_000, 208_000, cupti.Kernel, 5},
	} {
		got, ok := ofThread(ours, given{cupti.Call{StartNS: c.start, EndNS: c.end}, c.kind})
		if ok != (c.want != 0) || got.id != c.want {
			t.Errorf("%d to %d is %d, want %d", c.start, c.end, got.id, c.want)
		}
	}
}
