package diff

import (
	"math/rand/v2"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
)

// noisyRows is a recording of 100 steps of 10 ms: a loader that varies by half of its 3 ms
// from spell to spell, an operator of 4 ms that hardly varies, longer by slower, and one of
// 1 ms that varies by a third in spells of ten steps.
func noisyRows(random *rand.Rand, slower float64) *Side {
	s := &Side{What: "a step", Checks: &lint.Result{Percent: 100}, PerStep: map[Key]float64{}}
	loader, steady, jumpy := Key{"phase", "loading"}, Key{"operator", "aten::mm"}, Key{"operator", "aten::sort"}
	spell, jump := 0.0, 0.0
	const n = 100
	for i := range n {
		if i%10 == 0 {
			spell, jump = 1.5*random.NormFloat64(), 0.33*random.NormFloat64()
		}
		each := map[Key]float64{loader: max(0, 3+spell), steady: 4*(1+slower) + 0.05*random.NormFloat64(), jumpy: max(0, 1+jump)}
		period := 2.0
		for k, ms := range each {
			period += ms
			s.PerStep[k] += ms / n
			s.inWindow(k, windowOf(i, n), n, ms)
		}
		s.Periods = append(s.Periods, period)
	}
	return s
}

// TestRowsAreJudgedByTheirOwnNoise: what hardly varies is seen to move below the step's
// noise, and what varies is not said to have moved in a step that hardly does.
func TestRowsAreJudgedByTheirOwnNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 13))
	const tries = 200
	found, alarms := 0, map[string]int{}
	for range tries {
		for _, row := range Compare(noisyRows(random, 0), noisyRows(random, 0.08), 3).Rows {
			if row.Key == "aten::mm" && row.Significant && row.After > row.Before {
				found++
			}
		}
		for _, row := range Compare(noisyRows(random, 0), noisyRows(random, 0), 3).Rows {
			if row.Significant {
				alarms[row.Key]++
			}
		}
	}
	t.Logf("8 %% more of a steady operator: found in %d of %d; alarms %v", found, tries, alarms)
	if found < 95*tries/100 {
		t.Errorf("found %d of %d times", found, tries)
	}
	for key, n := range alarms {
		if n > 10*tries/100 {
			t.Errorf("%s is said to have moved in %d of %d pairs of the same job", key, n, tries)
		}
	}
}

// TestTheWindowsOfARowHaveItsMean, however the steps divide.
func TestTheWindowsOfARowHaveItsMean(t *testing.T) {
	for n := range 64 {
		if windows(n) == 0 {
			continue
		}
		s := &Side{}
		for i := range n {
			s.inWindow(Key{"phase", "forward"}, windowOf(i, n), n, 7)
		}
		for _, v := range s.Windows[Key{"phase", "forward"}] {
			if v < 7-1e-9 || v > 7+1e-9 {
				t.Errorf("%d steps: %v", n, s.Windows)
			}
		}
	}
}

// TestRowsOfSlicesAreOfStepsBetweenThem: probes made them longer as they did the steps.
func TestRowsOfSlicesAreOfStepsBetweenThem(t *testing.T) {
	r := Compare(sliced(t, 2), sliced(t, 7), 3)
	for _, row := range r.Rows {
		if row.Kind == "phase" && (row.Before < 0 || row.Significant) {
			t.Errorf("%+v", row)
		}
	}
	sum := 0.0
	for _, row := range r.Rows {
		if row.Kind == "phase" {
			sum += row.After
		}
	}
	if sum < 9.9 || sum > 10.1 {
		t.Errorf("phases of steps of 10 ms have %.2f ms: %+v", sum, r.Rows)
	}
}
