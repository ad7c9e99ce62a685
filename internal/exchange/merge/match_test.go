package merge

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// made is a loop of steps whose lengths differ, and the same as a trace with another clock that begins and ends elsewhere.
func made(steps int, ahead int64) (recorded, traced map[int32]thread) {
	random := rand.New(rand.NewPCG(1, 2))
	recorded, traced = map[int32]thread{7: {}}, map[int32]thread{7: {}}
	at, id := int64(1e18), int64(0)
	for step := range steps {
		for range 5 {
			for _, name := range []string{"aten::addmm", "aten::relu", "aten::t", "aten::t"} {
				id++
				recorded[7][name] = append(recorded[7][name], call{id, at, 9_000, name})
				if step > steps/4 && step < steps*3/4 {
					traced[7][name] = append(traced[7][name], call{id, at + ahead + random.Int64N(3_000), 6_000, name})
				}
				at += 10_000 + random.Int64N(2_000)
			}
		}
		at += 1_000_000 + random.Int64N(400_000)
	}
	return recorded, traced
}

func TestCallsFindThemselvesWhateverTheClocksSay(t *testing.T) {
	for _, ahead := range []int64{0, 1_900, -300_000, 900_000_000} {
		recorded, traced := made(200, ahead)
		p, ok := pairThreads(recorded, traced)
		if want := traced[7].calls(); !ok || len(p.pairs) != want {
			t.Fatalf("%d ahead: %d pairs, want %d", ahead, len(p.pairs), want)
		}
		for _, pair := range p.pairs {
			if pair.recorded.id != pair.traced.id {
				t.Fatalf("%d ahead: call %d is taken for call %d", ahead, pair.traced.id, pair.recorded.id)
			}
		}
		if d := p.offset - ahead; d < 0 || d > 3_000 || p.lo > p.offset || p.hi < p.offset || p.longer != 3_000 {
			t.Errorf("%d ahead: %d (%d to %d), longer by %d", ahead, p.offset, p.lo, p.hi, p.longer)
		}
	}
}

func TestACallThatIsMissingCostsNoOther(t *testing.T) {
	recorded, traced := made(100, 50_000)
	of := recorded[7]["aten::t"]
	missing := map[int64]bool{}
	var left sequence
	for i, c := range of {
		if i%7 == 3 {
			missing[c.id] = true
			continue
		}
		left = append(left, c)
	}
	recorded[7]["aten::t"] = left
	want := 0
	for _, calls := range traced[7] {
		for _, c := range calls {
			if !missing[c.id] {
				want++
			}
		}
	}
	p, ok := pairThreads(recorded, traced)
	wrong := 0
	for _, pair := range p.pairs {
		if pair.recorded.id != pair.traced.id {
			wrong++
		}
	}
	if !ok || wrong > 0 || len(p.pairs) != want {
		t.Errorf("%d pairs, %d of them wrong, want %d", len(p.pairs), wrong, want)
	}
}

func TestWhatHasNothingInCommonIsNotPaired(t *testing.T) {
	recorded, _ := made(10, 0)
	if p, ok := pairThreads(recorded, map[int32]thread{7: {"aten::mm": {{1, 1e18, 10, "aten::mm"}}}}); ok {
		t.Errorf("%d pairs of different names", len(p.pairs))
	}
	if p, ok := pairThreads(recorded, map[int32]thread{7: {"aten::t": {{1, 2e18, 10, "aten::t"}}}}); ok {
		t.Errorf("%d pairs years apart", len(p.pairs))
	}
	// A loop that was recorded just after the trace looks like it, shifted by some steps.
	recorded, traced := made(200, 0)
	var last int64
	for _, calls := range traced[7] {
		last = max(last, calls[len(calls)-1].start)
	}
	for name, calls := range recorded[7] {
		i, _ := slices.BinarySearchFunc(calls, last, func(c call, at int64) int { return cmp.Compare(c.start, at) })
		recorded[7][name] = calls[min(i+1, len(calls)):]
	}
	if p, ok := pairThreads(recorded, traced); ok {
		t.Errorf("%d pairs of calls at other times", len(p.pairs))
	}
}

func TestThreadsOfAnotherNamespaceAreFound(t *testing.T) {
	a, b := thread{"x": {{}, {}, {}}, "y": {{}}}, thread{"z": {{}, {}}, "x": {{}}}
	got := renumbered(map[int32]thread{900: a, 901: b, 902: {"q": {{}}}}, map[int32]thread{1: a, 5: b, 6: {"none": {{}}}}, 900, 1)
	if len(got) != 2 || got[1] != 900 || got[5] != 901 {
		t.Errorf("%v", got)
	}
}
