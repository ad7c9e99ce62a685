package main

import (
	"math"
	"testing"
)

func TestAnEstimateIsRightIfNearOrItsIntervalHoldsTheTruth(t *testing.T) {
	for _, c := range []struct {
		e     estimate
		right bool
	}{
		{estimate{100, 100, 100}, true},
		{estimate{104, 104, 104}, true},
		{estimate{106, 106, 106}, false},
		{estimate{150, 90, 210}, true},
		{estimate{0, 0, 0}, false},
		{estimate{150, math.Inf(-1), math.Inf(1)}, true},
	} {
		if got := c.e.right(100); got != c.right {
			t.Errorf("%v of 100 calls: right is %v, want %v", c.e, got, c.right)
		}
	}
}

// TestWhatFallsShortIsSaid: an operator that no run sees, and an interval that says nothing.
func TestWhatFallsShortIsSaid(t *testing.T) {
	truth := map[string]estimate{"aten::add": {100, 100, 100}, "aten::mul": {50, 50, 50}}
	c := cell{steps: 60, budget: "5%", right: map[string]int{}}
	for range 20 {
		if wrong := c.add(truth, map[string]estimate{"aten::add": {100, 40, 160}}); len(wrong) != 2 {
			t.Fatalf("wrong: %v, want one that is wrong and one too wide", wrong)
		}
	}
	right, least := c.rights()
	if right != 20 || least != "aten::mul" || c.right[least] != 0 {
		t.Errorf("%d right, least often %s in %d runs, want 20, aten::mul in none", right, least, c.right[least])
	}
	if err := judge([]cell{c}, 20); err == nil {
		t.Error("nothing falls short")
	}
	good := cell{steps: 60, budget: "5%", right: map[string]int{}}
	good.add(truth, truth)
	if err := judge([]cell{good}, 1); err != nil {
		t.Errorf("estimates that are the truth: %v", err)
	}
}
