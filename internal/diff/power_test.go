package diff

import (
	"math/rand/v2"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/lint"
	"github.com/ebpfprof/ebpfprof/internal/verdict"
)

// machine is what makes recordings of one job differ.
type machine struct {
	step    float64 // sd of a step, as a share
	run     float64 // sd of a recording as a whole
	spell   float64 // how much longer steps are in one spell of forty that comes by chance
	drift   float64 // how much slower the machine gets from recording to recording
	slices  float64 // how much longer a step in a slice is; a share of them that chance chooses
	steps   int
	repeats int
}

// pair is two sides of it, recorded by turns; slower is by how much the operator of the
// second makes its steps longer. The operator is a twentieth of the step.
func (m machine) pair(random *rand.Rand, slower float64) (before, after *Side) {
	var sides [2][]*Side
	for n := range max(m.repeats, 1) {
		for turn := range 2 {
			side := (turn + n) % 2 // the two sides of a pair in an order that changes, as internal/pairs records them
			longer := 0.0
			if side == 1 {
				longer = slower
			}
			speed := (1 + m.run*random.NormFloat64()) * (1 + m.drift*float64(2*n+turn))
			s := &Side{What: "a step", Checks: &lint.Result{Percent: 100}, BeginNS: int64(2*n+turn+1) * 1e9, Sliced: m.slices > 0,
				PerStep: map[Key]float64{{"operator", "aten::erf"}: 10 * (0.05 + longer) * speed, {"operator", "aten::mm"}: 9.5 * speed}}
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
