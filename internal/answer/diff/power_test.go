package diff

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
)

// machine is what makes recordings of one job differ.
type machine struct {
	step    float64 // sd of a step, as a share
	run     float64 // sd of a recording as a whole
	spell   float64 // how much longer steps are in one spell of forty that comes by chance
	drift   float64 // how much slower the machine gets from recording to recording
	slices  float64 // how much longer a step in a slice is; a share of them that chance chooses
	others  int     // operators beside the one that is made slower; 0 is one
	apart   float64 // sd of how much slower than the others each of them is in a recording
	steps   int
	repeats int
}

// pair is two sides of it, recorded by turns; slower is by how much the operator of the
// second makes its steps longer. The operator is a twentieth of the step.
func (m machine) pair(random *rand.Rand, slower float64) (before, after *Side) {
	var sides [2][]*Side
	for n := range max(m.repeats, 1) {
		for turn := range 2 {
			side := (turn + n) % 2 // the two sides of a pair in an order that changes, as internal/dev/pairs records them
			longer := 0.0
			if side == 1 {
				longer = slower
			}
			speed := (1 + m.run*random.NormFloat64()) * (1 + m.drift*float64(2*n+turn))
			s := &Side{What: "a step", Checks: &lint.Result{Percent: 100}, BeginNS: int64(2*n+turn+1) * 1e9, Sliced: m.slices > 0,
				PerStep: map[Key]float64{{"operator", "aten::erf"}: 10 * (0.05 + longer) * speed}}
			for k := range max(m.others, 1) {
				ms := 9.5 / float64(max(m.others, 1)) * (1 + m.apart*random.NormFloat64())
				s.PerStep[Key{"operator", fmt.Sprintf("aten::mm%d", k)}] = ms * speed
			}
			spell, share := random.IntN(4*m.steps), 0.1+0.4*random.Float64()
			for i := range m.steps {
				ms := 10 * (1 + longer + m.step*random.NormFloat64()) * speed
				if i >= spell && i < spell+40 {
					ms *= 1 + m.spell
				}
				sliced := m.slices > 0 && random.Float64() < share
				if sliced {
					ms *= 1 + m.slices
				}
				if s.Periods = append(s.Periods, ms); m.slices > 0 && !sliced {
					s.Between = append(s.Between, ms)
				}
			}
			sides[side] = append(sides[side], s)
		}
	}
	return Join(sides[0][0], sides[0][1:]...), Join(sides[1][0], sides[1][1:]...)
}

// rates are how many of a hundred pairs of the same job are called different, and of how
// many of which one is longer by three percent that is said, with the operator's name.
func (m machine) rates(seed uint64) (alarms, found int) {
	const tries = 400
	random := rand.New(rand.NewPCG(seed, 3))
	for range tries {
		if v := m.compared(random, 0).Verdict; v == verdict.Regression || v == verdict.Improvement {
			alarms++
		}
		r := m.compared(random, 0.03)
		if r.Verdict == verdict.Regression && named(r.Rows[0]) && r.Rows[0].Key == "aten::erf" {
			found++
		}
	}
	return 100 * alarms / tries, 100 * found / tries
}

// TestAlarmsAreRareAndThreePercentAreFound, by simulation: on machines of which each is
// bad in one way, and on one that nothing is wrong with.
func TestAlarmsAreRareAndThreePercentAreFound(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine machine
		alarms  int // at most, of a hundred
		atLeast int // of a hundred that are found
	}{
		{"quiet, 300 steps", machine{step: 0.03, run: 0.002, steps: 300}, 0, 95},
		{"steps that vary", machine{step: 0.15, run: 0.005, steps: 300}, 4, 35},
		{"recordings that differ", machine{step: 0.03, run: 0.01, steps: 300}, 20, 60},
		{"recordings that differ by more", machine{step: 0.03, run: 0.03, others: 12, apart: 0.02, steps: 300}, 10, 20},
		{"quiet, twelve operators", machine{step: 0.03, run: 0.002, others: 12, apart: 0.005, steps: 300}, 0, 95},
		{"another process for a while", machine{step: 0.03, run: 0.005, spell: 0.5, steps: 300}, 3, 45},
		{"slices of different shares", machine{step: 0.03, run: 0.005, slices: 0.3, steps: 300}, 3, 80},
		{"three of each", machine{step: 0.03, run: 0.01, steps: 100, repeats: 3}, 6, 45},
		{"ten of each", machine{step: 0.03, run: 0.01, steps: 100, repeats: 10}, 6, 95},
		{"ten pairs while it gets slower", machine{step: 0.03, run: 0.005, drift: 0.005, steps: 100, repeats: 10}, 6, 95},
	} {
		alarms, found := c.machine.rates(11)
		t.Logf("%-32s %2d %% false alarms, %3d %% found", c.name, alarms, found)
		if alarms > c.alarms || found < c.atLeast {
			t.Errorf("%s: %d %% false alarms, at most %d; %d %% found, at least %d", c.name, alarms, c.alarms, found, c.atLeast)
		}
	}
}

// TestWhatChangesAllOperatorsAlikeIsTheMachine, if it is no more than machines differ by: not
// what makes one of them longer, were it half of the step, nor what halves them all.
func TestWhatChangesAllOperatorsAlikeIsTheMachine(t *testing.T) {
	side := func(scale func(k int) float64) *Side {
		s := &Side{What: "a step", Checks: &lint.Result{Percent: 100}, PerStep: map[Key]float64{}}
		step := 0.0
		for k := range 8 {
			ms := 1.0
			if k == 0 {
				ms = 7
			}
			s.PerStep[Key{"operator", fmt.Sprintf("aten::op%d", k)}] = ms * scale(k)
			step += ms * scale(k)
		}
		for range 100 {
			s.Periods = append(s.Periods, step)
		}
		return s
	}
	same := side(func(int) float64 { return 1 })
	for name, c := range map[string]struct {
		scale func(k int) float64
		want  verdict.Verdict
	}{
		"all by 6 %":         {func(int) float64 { return 1.06 }, verdict.Inconclusive},
		"all but one by 6 %": {func(k int) float64 { return 1.06 - 0.06*float64(k/7) }, verdict.Inconclusive},
		"half of the step":   {func(k int) float64 { return 1 + 0.12*float64((7-k)/7) }, verdict.Regression},
		"twice as fast":      {func(int) float64 { return 0.5 }, verdict.Improvement},
	} {
		r := Compare(same, side(c.scale), 3)
		if r.Verdict != c.want {
			t.Errorf("%s: %s %.1f %%", name, r.Sentence, r.NoisePercent)
		}
	}
}

func (m machine) compared(random *rand.Rand, slower float64) *Result {
	before, after := m.pair(random, slower)
	return Compare(before, after, 1)
}

// TestPairsAreThoseRecordedByTurns, given in the order of time; anything else is two
// samples.
func TestPairsAreThoseRecordedByTurns(t *testing.T) {
	side := func(begins ...int64) *Side {
		var all []*Side
		for _, begin := range begins {
			all = append(all, &Side{What: "a step", BeginNS: begin, Periods: []float64{1}})
		}
		return Join(all[0], all[1:]...)
	}
	odd, even := []int64{1, 4, 5, 8, 9, 12, 13, 16}, []int64{2, 3, 6, 7, 10, 11, 14, 15}
	first, then := []int64{1, 2, 3, 4, 5, 6, 7, 8}, []int64{9, 10, 11, 12, 13, 14, 15, 16}
	swapped := []int64{2, 3, 6, 7, 10, 11, 15, 14}
	for _, c := range []struct {
		name          string
		before, after []int64
		want          bool
	}{
		{"by turns", odd, even, true}, {"one side after the other", first, then, false}, {"in another order", odd, swapped, false},
		{"few", odd[:4], even[:4], false}, {"uneven", odd, even[:7], false}, {"when is not known", odd, make([]int64, 8), false},
	} {
		if got := interleaved(side(c.before...), side(c.after...)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
