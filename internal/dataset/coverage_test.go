package dataset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// simulateStart is a job whose first steps are recorded one and all, and the first of them does
// next to nothing of what the others do.
func simulateStart(random *rand.Rand, name string, steps int) simulatedJob {
	first := 2 + random.IntN(3)
	job := simulate(random, name, steps-first)
	start := simulatedSlice{n: float64(first), l: float64(first)}
	for k := range first {
		calls := math.Round(8 + 2*random.NormFloat64())
		if k == 0 {
			calls = 0
		}
		start.calls, start.ns = append(start.calls, calls), append(start.ns, callNS)
		job.truth += calls
	}
	job.steps, job.slices = steps, append([]simulatedSlice{start}, job.slices...)
	return job
}

// simulateEvaluations is a job that evaluates a few times between its steps and then ends:
// batches, one a piece of time, and when they are over nothing for some time. A slice sees
// the beginning of each, or begins later; the stretch of one goes to the middle of the pause.
func simulateEvaluations(random *rand.Rand, name string, _ int) simulatedJob {
	job := simulatedJob{name: name}
	var calls []float64
	type bounds struct{ on, off int }
	var cut []bounds
	noise := 3 * random.Float64()
	for range 2 + random.IntN(3) {
		begin := len(calls)
		for range 8 + random.IntN(10) {
			calls = append(calls, max(0, math.Round(16+noise*random.NormFloat64())))
		}
		for range random.IntN(10) {
			calls = append(calls, 0)
		}
		on := begin + 1 + random.IntN(3)
		cut = append(cut, bounds{on, min(len(calls), on+8+random.IntN(4))})
	}
	for _, n := range calls {
		job.truth += n
	}
	from := 0
	for i, c := range cut {
		to := len(calls)
		if i+1 < len(cut) {
			to = (c.off + cut[i+1].on) / 2
		}
		s := simulatedSlice{n: float64(c.off - c.on), l: float64(to - from), calls: calls[c.on:c.off], timed: true}
		for range s.calls {
			s.ns = append(s.ns, callNS)
		}
		job.slices, from = append(job.slices, s), to
	}
	return job
}

// The interval of simulated jobs with noise and drift holds the truth in 87 to 97 % of
// the cases, whatever their length; a little more where slices are many, since the
// larger of two variances counts.
func TestIntervalsHoldTheTruth(t *testing.T) {
	const jobsEach = 500
	for what, simulate := range map[string]func(*rand.Rand, string, int) simulatedJob{"alike": simulate,
		"the first recorded whole": simulateStart, "evaluations": simulateEvaluations} {
		for _, steps := range []int{20, 60, 200, 1000} {
			random := rand.New(rand.NewPCG(uint64(steps), 7))
			var jobs []simulatedJob
			for i := range jobsEach {
				jobs = append(jobs, simulate(random, fmt.Sprintf("op %d", i), steps))
			}
			all := estimates(t, writeSimulated(t, jobs))
			held := 0
			for _, job := range jobs {
				if e := all[job.name]; e.hi.Valid && e.lo <= job.truth && job.truth <= e.hi.Float64 {
					held++
				}
			}
			share := float64(held) / jobsEach
			t.Logf("%d steps, %s: %.1f %% of the intervals hold the truth", steps, what, 100*share)
			if share < 0.87 || share > 0.985 {
				t.Errorf("%d steps, %s: %.1f %% of the intervals hold the truth, want 87 to 98", steps, what, 100*share)
			}
		}
	}
}
