package steps

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestNumbersArgumentsAndPhasesAreNoPartOfAName(t *testing.T) {
	for _, alike := range [][]string{
		{"step_12", "step_13", "step_1000"},
		{"iteration 12", "iteration 13"},
		{"epoch 0 / batch 3", "epoch 1 / batch 0"},
		{"ProfilerStep#5", "ProfilerStep#6"},
		{"[iter=3]", "[iter=4]"},
		{"Iteration: 7", "Iteration: 8"},
		{"execute_context_1(2048)_generation_3(3)", "execute_context_0(0)_generation_16(16)"},
		{"step[EXTEND bs=2 toks=512]", "step[DECODE bs=16]"},
		{"prefill step 3", "decode step 4"},
		{"engineStep12", "engineStep13"},
		{"[worker] round 0.5", "[worker] round 0.75"},
	} {
		for _, name := range alike[1:] {
			if a, b := Template(alike[0]), Template(name); a != b || a == "" {
				t.Errorf("%q is %q, %q is %q", alike[0], a, name, b)
			}
		}
	}
	for _, differ := range [][2]string{{"runner: forward", "runner: preprocess"}, {"schedule", "sample"}, {"12", ""}} {
		if a, b := Template(differ[0]), Template(differ[1]); a == b {
			t.Errorf("%q and %q are both %q", differ[0], differ[1], a)
		}
	}
}

// TestPartsThatAlternateAreOneStep, with the errors that the method was simulated with.
func TestPartsThatAlternateAreOneStep(t *testing.T) {
	if k, irregular := Fold([]float64{1, 17, 1, 17, 1, 17, 1, 17}); k != 2 || irregular {
		t.Errorf("1 and 17 ms in turn: %d, %t", k, irregular)
	}
	r := rand.New(rand.NewPCG(3, 7))
	made := func(parts, n int, noise float64) (times []float64) {
		for i := range n * parts {
			times = append(times, (1+2*float64(i%parts))*(1+noise*r.NormFloat64()))
		}
		return times
	}
	for parts := 1; parts <= mostParts; parts++ {
		for _, n := range []int{20, 60, 200} {
			if k, irregular := Fold(made(parts, n, 0.03)); k != parts || irregular {
				t.Errorf("%d parts, %d times: %d, irregular %t", parts, n, k, irregular)
			}
		}
	}
	const tries = 500
	missed, found := 0, 0
	for range tries {
		if k, _ := Fold(made(2, 50, 0.3)); k != 2 {
			missed++
		}
		heavy := make([]float64, 100)
		for i := range heavy {
			if heavy[i] = 10 + r.NormFloat64(); r.Float64() < 0.1 {
				heavy[i] = 60
			}
		}
		if k, irregular := Fold(heavy); k > 1 {
			found++
		} else if !irregular {
			t.Error("random heavy steps are regular")
		}
	}
	if missed > tries*40/100 || found > tries*4/100 {
		t.Errorf("under noise of 30 %% a period of 2 is missed in %d of %d; random heavy steps are a period in %d", missed, tries, found)
	}
}

// ranges of several names in turn, each taking its time and idle a gap.
type turn struct {
	name string
	took int64
}

func repeated(n int, gap int64, of func(i int) []turn) (all []Range) {
	now := int64(1000)
	for i := range n {
		for _, part := range of(i) {
			all = append(all, Range{part.name, now, now + part.took})
			now += part.took
		}
		now += gap
	}
	return all
}

func total(ranges []Range) (busy, extent int64) {
	end := int64(0)
	for _, r := range ranges {
		busy += max(0, r.End-max(r.Begin, end))
		end = max(end, r.End)
	}
	return busy, end - ranges[0].Begin
}

func TestRangesOfEnginesAreIterations(t *testing.T) {
	for name, of := range map[string]func(i int) []turn{
		"three parts":        func(i int) []turn { return []turn{{"schedule", 10}, {"forward", 80}, {"sample", 20}} },
		"numbered":           func(i int) []turn { return []turn{{fmt.Sprintf("step_%d", i), 100}} },
		"one with arguments": func(i int) []turn { return []turn{{fmt.Sprintf("run [DECODE bs=%d]", i%7), 100}} },
		"phases": func(i int) []turn {
			if i%10 == 0 {
				return []turn{{fmt.Sprintf("prefill %d tokens", 100+i), 300}}
			}
			return []turn{{"decode 8 tokens", 100}}
		},
		"a scheduler and an execution": func(i int) []turn {
			return []turn{{"Scheduler.next_batch", 5}, {fmt.Sprintf("execute_new_%d_cached_%d", i%2, i), 90}, {"detokenize", 5}}
		},
	} {
		ranges := repeated(40, 10, of)
		busy, extent := total(ranges)
		l, ok := Marked(ranges, busy, extent)
		if !ok || len(l.Steps) != 40 || l.Parts != 1 {
			t.Errorf("%s: %t, %d steps, %+v", name, ok, len(l.Steps), l)
			continue
		}
		if first := ranges[0].Begin; l.Steps[0].Begin != first {
			t.Errorf("%s: the first step begins %d late", name, l.Steps[0].Begin-first)
		}
	}
}

func TestOneNumberedRangeIsEnough(t *testing.T) {
	one := []Range{{"iteration 7", 1000, 2000}}
	if l, ok := Marked(one, 1000, 1000); !ok || len(l.Steps) != 1 || l.Steps[0].Period != 1000 {
		t.Errorf("%+v", l)
	}
	for _, miss := range []string{"setup", "forward", "epoch 0"} {
		if l, ok := Marked([]Range{{miss, 1000, 2000}}, 1000, 1000); ok {
			t.Errorf("one range %q is a loop: %+v", miss, l)
		}
	}
}

func TestTheStepIsNeitherTheEpochNorTheLayer(t *testing.T) {
	var ranges []Range
	now := int64(0)
	for epoch := range 3 {
		begin := now
		for batch := range 10 {
			step := now
			for layer := range 12 {
				ranges = append(ranges, Range{fmt.Sprintf("layer %d", layer), now, now + 10})
				now += 10
			}
			ranges = append(ranges, Range{fmt.Sprintf("batch %d", batch), step, now})
			now += 2
		}
		ranges = append(ranges, Range{fmt.Sprintf("epoch %d", epoch), begin, now})
	}
	busy, extent := now, now
	if l, ok := Marked(ranges, busy, extent); !ok || len(l.Steps) != 30 || l.Name != "batch" {
		t.Errorf("%t, %d steps of %q", ok, len(l.Steps), l.Name)
	}
}

// calls of a decoder: layers of it, then what comes once a token; a request begins with calls of its own.
func decoder(requests, tokens, layers int, last string) (all []Call) {
	now := int64(0)
	call := func(names ...string) {
		for _, name := range names {
			all = append(all, Call{Name: name, Begin: now, End: now + 10})
			now += 12
		}
	}
	for range requests {
		call("aten::randint", "aten::ones", "aten::cumsum")
		for range tokens {
			call("aten::arange", "aten::embedding", "aten::cos")
			for range layers {
				call("aten::layer_norm", "aten::linear", "aten::cat", "aten::scaled_dot_product_attention", "aten::linear", "aten::gelu",
					"aten::linear")
			}
			call("aten::layer_norm", "aten::linear", "aten::softmax", last, "aten::cat")
		}
	}
	return all
}

// TestADecoderRepeatsByItsTokens: neither by its layers, however many there are, nor by its requests.
func TestADecoderRepeatsByItsTokens(t *testing.T) {
	for _, layers := range []int{1, 2, 4, 12, 32, 80} {
		for _, last := range []string{"aten::multinomial", "aten::argmax", "aten::something"} {
			calls := decoder(6, 40, layers, last)
			l, ok := Repeating(calls)
			if !ok {
				t.Errorf("%d layers, %s: nothing repeats", layers, last)
				continue
			}
			n := 0
			for _, s := range l.Steps {
				if s.Kind != Other {
					n++
				}
			}
			if n != 240 || l.Fit < leastFit {
				t.Errorf("%d layers, %s: %d steps of 240, by %s, fit %.2f", layers, last, n, l.Anchor, l.Fit)
			}
			if l.Describe(calls); l.Samples != (last != "aten::something") {
				t.Errorf("%d layers, %s: samples %t", layers, last, l.Samples)
			}
		}
	}
}

func TestWhatDoesNotRepeatIsNoLoop(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"aten::mm", "aten::add", "aten::mul", "aten::copy_", "aten::cat", "aten::sum", "aten::exp", "aten::sort"}
	for range 50 {
		var random, once []Call
		for i := range int64(400) {
			random = append(random, Call{Name: names[r.IntN(len(names))], Begin: 10 * i, End: 10*i + 8})
			once = append(once, Call{Name: fmt.Sprint("op", i), Begin: 10 * i, End: 10*i + 8})
		}
		if l, ok := Repeating(random); ok {
			t.Errorf("random calls repeat by %s, fit %.2f", l.Anchor, l.Fit)
		}
		if _, ok := Repeating(once); ok {
			t.Error("calls that come once repeat")
		}
	}
	var alone []Call
	for i := range int64(100) {
		alone = append(alone, Call{Name: "aten::mm", Begin: 10 * i, End: 10*i + 8})
	}
	if _, ok := Repeating(alone); ok {
		t.Error("a single operator is a loop")
	}
	for i := range alone {
		alone[i].Alone, alone[i].Name = true, "cudaGraphLaunch"
	}
	if l, ok := Repeating(alone); !ok || len(l.Steps) != 100 {
		t.Errorf("launches of a graph: %t, %d steps", ok, len(l.Steps))
	}
}

// TestAlternatingPartsOfALoopWithoutNamesAreOneStep: two models in turn that make the same calls.
func TestAlternatingPartsOfALoopWithoutNamesAreOneStep(t *testing.T) {
	var calls []Call
	now := int64(0)
	for i := range 60 {
		took := int64(100)
		if i%2 == 1 {
			took = 1700
		}
		for _, name := range []string{"aten::linear", "aten::relu", "aten::linear"} {
			calls = append(calls, Call{Name: name, Begin: now, End: now + took})
			now += took
		}
		calls = append(calls, Call{Name: "aten::argsort", Begin: now, End: now + 5})
		now += 5
	}
	if l, ok := Repeating(calls); !ok || l.Parts != 2 || len(l.Steps) != 30 {
		t.Errorf("%t, %d parts, %d steps", ok, l.Parts, len(l.Steps))
	}
}
