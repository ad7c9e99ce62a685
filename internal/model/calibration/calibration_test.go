package calibration

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/model/calltree"
)

// op is an operator of a simulated job: how long a call takes, ms, how many there are in a step, and in one step of how many.
type op struct {
	name      string
	ms        float64
	calls     int
	each      int     // in every step: 1
	noise     float64 // relative, of each call
	wandering float64 // relative, of all calls of a step: like those of the steps before
}

var job = []op{
	{"small", 0.02, 40, 1, 0.3, 0.1},
	{"medium", 0.4, 6, 1, 0.1, 0.1},
	{"large", 6, 1, 1, 0.05, 0.15},
	{"rare and long", 45, 1, 40, 0.1, 0},
	{"rarer", 8, 1, 90, 0.2, 0},
	{"host", 0, 0, 1, 0, 0}, // what is in no operator: 2 ms a step, never in slices
}

const (
	simulatedSteps = 1500
	periodMS       = 10.0
	memory         = 0.9 // of a step for the one before: some ten steps long
)

// steps are the times of each operator in each step, ms, and how many calls they are of.
func simulated(rng *rand.Rand) (times [][]float64, calls [][]int) {
	wander := make([]float64, len(job))
	for range simulatedSteps {
		row, n := make([]float64, len(job)), make([]int, len(job))
		for i, o := range job {
			if o.calls == 0 {
				row[i] = 2 * math.Exp(0.1*rng.NormFloat64())
				continue
			}
			wander[i] = memory*wander[i] + math.Sqrt(1-memory*memory)*rng.NormFloat64()
			if o.each > 1 && rng.IntN(o.each) != 0 {
				continue
			}
			for range o.calls {
				row[i] += o.ms * max(0.1, 1+o.noise*rng.NormFloat64()) * math.Exp(o.wandering*wander[i])
				n[i]++
			}
		}
		times, calls = append(times, row), append(calls, n)
	}
	return times, calls
}

// sampledOf counts periodic samples. The calls of a step interleave: a sample falls into an operator with the probability of
// its part of the step, and samples of one long call come in a row.
func sampledOf(rng *rand.Rand, times [][]float64) []float64 {
	found := make([]float64, len(job))
	next, at := periodMS*rng.Float64(), 0.0
	for _, row := range times {
		// Pieces of the step, long calls whole, in a random order.
		order := rng.Perm(len(job))
		for _, i := range order {
			for at+row[i] > next {
				found[i] += periodMS
				next += periodMS
			}
			at += row[i]
		}
	}
	return found
}

// slicedOf are estimates from slices of n steps, so many of them that the budget's part of the steps is recorded, as the
// reports compute them.
func slicedOf(rng *rand.Rand, times [][]float64, calls [][]int, budget float64) []Row {
	const n = 3
	m := max(2, int(budget*simulatedSteps/n))
	each := simulatedSteps / m
	var slices []*calltree.Slice
	sums := make([]calltree.Sum, len(job))
	for j := range m {
		begin := j*each + rng.IntN(each-n+1)
		slice := &calltree.Slice{Begin: int64(begin), Recorded: n, Saw: n, Represented: float64(simulatedSteps) / float64(m), Steps: n,
			OfSteps: true}
		slices = append(slices, slice)
		for k := begin; k < begin+n; k++ {
			for i := range job {
				for range calls[k][i] {
					sums[i].Add(slice, int32(k-begin+1), times[k][i]/float64(calls[k][i]), slice.Represented/n)
				}
			}
		}
	}
	all := calltree.NewSlices(slices)
	rows := make([]Row, len(job))
	for i := range sums {
		variance, in := all.Variance(&sums[i])
		rows[i] = Row{Sliced: sums[i].Value, Variance: variance, Seen: sums[i].Rows, Slices: in}
	}
	return rows
}

// TestCalibratedTimesHoldTheTruth of simulated jobs with rare long calls and steps that resemble those before them, at
// budgets of 1 and 5 %: the error averages out below 2 %, and the intervals of short calls hold 90 to 98 % of the truths.
func TestCalibratedTimesHoldTheTruth(t *testing.T) {
	for _, budget := range []float64{0.01, 0.05} {
		rng := rand.New(rand.NewPCG(7, uint64(budget*100)))
		const jobs = 300
		bias, held := make([]float64, len(job)), make([]float64, len(job))
		uncalibrated := make([]float64, len(job))
		for range jobs {
			times, calls := simulated(rng)
			truth, total := make([]float64, len(job)), 0.0
			for _, row := range times {
				for i := range row {
					truth[i] += row[i]
					total += row[i]
				}
			}
			rows := slicedOf(rng, times, calls, budget)
			for i, s := range sampledOf(rng, times) {
				rows[i].Sampled = s
			}
			for i, e := range Calibrate(rows, periodMS, total) {
				bias[i] += (e.NS - truth[i]) / truth[i] / jobs
				uncalibrated[i] += math.Abs(rows[i].Sliced-truth[i])/truth[i]/jobs - math.Abs(e.NS-truth[i])/truth[i]/jobs
				if e.Lo <= truth[i] && truth[i] <= e.Hi {
					held[i] += 1.0 / jobs
				}
			}
		}
		mean, short := 0.0, 0.0
		for i, o := range job {
			t.Logf("budget %.0f %%, %-14s bias %+.2f %%, held %.1f %%, mean error %.1f points less than by slices alone", 100*budget, o.name,
				100*bias[i], 100*held[i], 100*uncalibrated[i])
			if math.Abs(bias[i]) > 0.02 || held[i] < 0.87 { // what intervals from five slices hold by themselves
				t.Errorf("budget %.0f %%, %s: a bias of %.1f %%, intervals hold %.1f %%", 100*budget, o.name, 100*bias[i], 100*held[i])
			}
			// Several samples of one long call are surer than the number of samples says: those intervals hold more.
			if o.ms < periodMS/2 {
				mean, short = mean+held[i], short+1
			}
		}
		if mean/short < 0.90 || mean/short > 0.98 {
			t.Errorf("budget %.0f %%: intervals of short calls hold %.1f %%", 100*budget, 100*mean/short)
		}
	}
}

// TestCalibratedTimesSumToTheTotal, however far apart the estimates are: none is negative, and none exceeds the total.
func TestCalibratedTimesSumToTheTotal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		rows := make([]Row, 1+rng.IntN(12))
		for i := range rows {
			rows[i] = Row{Sampled: 1e9 * rng.ExpFloat64(), Sliced: 1e9 * rng.ExpFloat64(), Variance: 1e16 * rng.ExpFloat64(),
				Seen: float64(rng.IntN(50)), Slices: rng.IntN(6)}
		}
		rows[0].Sliced *= float64(rng.IntN(2)) // the probes took all that its rows have
		rows[0].Variance *= float64(rng.IntN(2))
		total, sum := 3e9*rng.ExpFloat64(), 0.0
		for _, e := range Calibrate(rows, 1e7, total) {
			sum += e.NS
			if !(e.NS >= 0) || e.NS > total*(1+1e-9) || e.Lo > e.NS || e.Hi < e.NS-1e-6*total {
				t.Fatalf("%+v of %g", e, total)
			}
		}
		if math.Abs(sum-total) > 1e-6*total {
			t.Fatalf("%+v sum to %g, not %g", rows, sum, total)
		}
	}
}

// TestSlicesThatDisagreeGiveWay to the samples, as do rows that one slice alone has seen.
func TestSlicesThatDisagreeGiveWay(t *testing.T) {
	rows := []Row{
		{Sampled: 4e9, Sliced: 9e9, Variance: 1e16, Seen: 90, Slices: 9},
		{Sampled: 1e9, Sliced: 1.1e9, Variance: 1e14, Seen: 90, Slices: 1},
		{Sampled: 1e9, Sliced: 1.05e9, Variance: 1e15, Seen: 90, Slices: 9},
	}
	all := Calibrate(rows, 1e7, 6.04e9)
	for i, disagrees := range []bool{true, true, false} {
		if all[i].Disagrees != disagrees {
			t.Errorf("row %d: %+v", i, all[i])
		}
	}
	if math.Abs(all[0].NS-4e9) > 1e8 || all[2].NS < 1e9 || all[2].NS > 1.06e9 {
		t.Errorf("%+v", all)
	}
}
