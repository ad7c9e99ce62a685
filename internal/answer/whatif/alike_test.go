package whatif

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// One dp_rank by itself, between one of each kind, is what the whole job makes of it, to
// the last bit.
func TestOneOfEachKindStandsForAll(t *testing.T) {
	for name, drop := range map[string]func(o Op) bool{
		"all alike":        func(Op) bool { return false },
		"two lack a batch": func(o Op) bool { return o.DPRank%9 == 4 && o.Step == 1 && o.Seq == 2 && o.Type.compute() },
		"one lacks a step": func(o Op) bool { return o.DPRank == 7 && o.Step == 2 },
		"too many kinds for it": func(o Op) bool {
			return o.Type == BackwardCompute && o.DPRank < 17 && o.Seq == o.DPRank%4 && o.Step == int64(o.DPRank/4)
		},
	} {
		random := rand.New(rand.NewPCG(5, 6))
		trace := cluster(20, 5, 4, func(int, int, int) float64 { return 0.1 + random.Float64() })
		trace.Ops = slices.DeleteFunc(trace.Ops, drop)
		j, err := newJob(trace)
		if err != nil {
			t.Fatal(err)
		}
		same := newAlike(j)
		smaller := 0
		for dp := range 20 {
			part, err := j.around(dp, same)
			if err != nil {
				t.Fatal(err)
			}
			if len(part.ops) < len(j.ops)/2 {
				smaller++
			}
			others := func(o Op) bool { return o.DPRank != dp }
			if got, want := fmt.Sprint(part.replay(others)), fmt.Sprint(j.replay(others)); got != want {
				t.Errorf("%s: dp_rank %d: %s, want %s", name, dp, got, want)
			}
		}
		if kinds := len(same.kinds); smaller != 20 && kinds <= mostAlike || smaller != 0 && kinds > mostAlike {
			t.Errorf("%s: %d kinds, %d dp_ranks by a part of the job", name, kinds, smaller)
		}
	}
}
