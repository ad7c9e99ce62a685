package inference_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/inference"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const us = int64(1000)

func rateOf(t *testing.T, j *scripted.Job) *inference.Rate {
	t.Helper()
	db, err := dataset.Open(scripted.Write(t, j))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	threads, err := timeline.Steps(t.Context(), db)
	if err != nil || len(threads) != 1 {
		t.Fatalf("%d threads, %v", len(threads), err)
	}
	r, err := inference.Of(t.Context(), db, threads[0])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestShapesTellTokensAndPhases: requests of batch 3, of 11 positions, then 19 steps of one position each.
func TestShapesTellTokensAndPhases(t *testing.T) {
	j := scripted.New()
	op := func(name string, took int64, dims string) {
		s := j.Op(name, took)
		if dims != "" {
			s.Detail = &event.Detail{Shape: &event.Shape{Dims: dims, Source: "imported"}}
		}
	}
	for range 5 {
		for token := range 20 {
			positions, took := 1, 100*us
			if token == 0 {
				positions, took = 11, 1000*us
			}
			op("aten::embedding", 10*us, fmt.Sprintf("[[256, 64], [3, %d]]", positions))
			for range 2 {
				op("aten::linear", took, "")
				op("aten::scaled_dot_product_attention", took,
					fmt.Sprintf("[[3, 4, %d, 16], [3, 4, %d, 16], [3, 4, %d, 16]]", positions, 11+token, 11+token))
			}
			op("aten::softmax", 10*us, "")
			op("aten::multinomial", 20*us, "[[3, 256], [], [], []]")
			j.Wait(60 * us)
		}
	}
	r := rateOf(t, j)
	if r == nil || r.Unit != "decoding step" || r.Prefill != 5 || r.Decode != 95 || *r.Tokens != 300 || *r.Requests != 15 ||
		*r.PromptTokens != 165 {
		t.Fatalf("%+v", r)
	}
	if r.Batch == nil || r.Batch.Mean != 3 || r.Assumed {
		t.Errorf("%+v", r.Batch)
	}
	// A decoding step is 10 + 4·100 + 10 + 20 + 60 µs, a prefill one 4,040 µs without the pause after it.
	if math.Abs(*r.TokenMS-0.5) > 1e-9 || math.Abs(*r.FirstTokenMS-4.04) > 1e-9 {
		t.Errorf("%f ms a token, %f ms to the first", *r.TokenMS, *r.FirstTokenMS)
	}
	if want := *r.TokensPerS - 300/(r.Seconds+0.1); math.Abs(r.MillisecondCosts-want) > 1e-6 {
		t.Errorf("a millisecond costs %f, want %f", r.MillisecondCosts, want)
	}
}

// TestRangesOfEnginesTellPhases where there are no shapes, in the words of more than one engine.
func TestRangesOfEnginesTellPhases(t *testing.T) {
	for _, words := range [][2]string{
		{"execute_context_2(512)_generation_1(1)", "execute_context_0(0)_generation_3(3)"},
		{"forward [PREFILL bs=3]", "forward [DECODE bs=3]"},
		{"extend batch=3", "decoding batch=3"},
	} {
		j := scripted.New()
		for i := range 40 {
			name := words[1]
			if i%10 == 0 {
				name = words[0]
			}
			j.Call("scope", "", name, 50*us, func() { j.Op("aten::linear", 100*us); j.Op("aten::relu", 10*us) })
			j.Wait(10 * us)
		}
		r := rateOf(t, j)
		if r == nil || r.Prefill != 4 || r.Decode != 36 || r.Batch == nil || r.Batch.Mean != 3 || *r.Tokens != 120 {
			t.Errorf("%v: %+v", words, r)
		}
	}
}

// TestAnEncoderHasNoTokens: its attention computes many positions, too, and nothing chooses a token.
func TestAnEncoderHasNoTokens(t *testing.T) {
	j := scripted.New()
	dims := "[[2, 4, 64, 16], [2, 4, 64, 16], [2, 4, 64, 16]]"
	for range 30 {
		j.Op("aten::embedding", 10*us)
		j.Op("aten::scaled_dot_product_attention", 100*us).Detail = &event.Detail{Shape: &event.Shape{Dims: dims, Source: "imported"}}
		j.Op("aten::linear", 10*us)
		j.Wait(10 * us)
	}
	r := rateOf(t, j)
	if r == nil || r.Steps != 30 || r.Tokens != nil || r.Prefill != 0 || r.FirstTokenMS != nil {
		t.Errorf("%+v", r)
	}
}

// decodes makes slices of 20 decoding steps of 2 ms; 80 steps of 1 ms lie behind each, and are not recorded.
func decodes(t *testing.T, unit string) *inference.Rate {
	t.Helper()
	j := scripted.New()
	for range 6 {
		j.Slice(20, 100, func() {
			for range 20 {
				j.Op("aten::embedding", 100*us)
				j.Op("aten::linear", 1000*us)
				j.Op("aten::softmax", 100*us)
				j.Op("aten::multinomial", 100*us).Detail = &event.Detail{Shape: &event.Shape{Dims: "[[4, 256], [], [], []]", Source: "imported"}}
				j.Wait(700 * us)
			}
		})
		j.Pause(80_000*us, unit)
	}
	return rateOf(t, j)
}

// TestARateIsThatOfTheStepsBetweenSlices where an operator was counted there: probes do not make the job as slow as they
// make the steps that are recorded.
func TestARateIsThatOfTheStepsBetweenSlices(t *testing.T) {
	r := decodes(t, event.UnitCalls)
	if r == nil || !r.Counted || r.AtLeast {
		t.Fatalf("%+v", r)
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 0.02*want {
			t.Errorf("%s: %f, want %f", what, got, want)
		}
	}
	near("steps", r.Represented, 600)
	near("seconds", r.Seconds, 0.72)
	near("tokens", *r.Tokens, 2400)
	near("tokens/s", *r.TokensPerS, 2400/0.72)
	near("ms a token", *r.TokenMS, 1.2)
	near("ms a step in slices", r.InSlicesMS, 2)
}

// TestARateOfStepsInSlicesAloneIsABound: nothing says how many steps were between the slices.
func TestARateOfStepsInSlicesAloneIsABound(t *testing.T) {
	r := decodes(t, event.UnitTime)
	if r == nil || r.Counted || !r.AtLeast || *r.TokensPerS > 2100 || *r.TokensPerS < 1900 {
		t.Fatalf("%+v", r)
	}
	if text := r.Sentences()[0]; !strings.HasPrefix(text, "at least ") {
		t.Error(text)
	}
}
