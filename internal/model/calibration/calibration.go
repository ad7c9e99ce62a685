// Package calibration brings two estimates of the same times together: that of spans, which a budget records in slices of
// the run, and that of samples, which cover all of it. The result sums to the time that the clock shows.
package calibration

import "math"

// Row is what is known of the exclusive time of one operator, or of all that is in none. Times are ns.
type Row struct {
	Sampled float64 // samples × what each stands for
	Sliced  float64 // what the rows in slices stand for
	// Variance is that of Sliced; NaN where a single slice or step does not tell it.
	Variance float64
	Seen     float64 // rows in slices, 0 of what slices do not record
	Slices   int     // that have rows of it
}

// Estimate is the time of a row, and its 95 % interval.
type Estimate struct {
	NS, Lo, Hi float64
	// Disagrees: too few slices saw it, or what they say is too far from the samples, which are the estimate alone.
	Disagrees bool
	variance  float64
}

// Variance is that of NS, ns².
func (e *Estimate) Variance() float64 { return e.variance }

// farApart is how many standard deviations the two may differ by.
const farApart = 3

// Calibrate combines the estimates of all rows of a thread, or of several, and closes them to the total, ns. The period
// is what a sample stands for.
func Calibrate(rows []Row, period, total float64) []Estimate {
	all := make([]Estimate, len(rows))
	for i, r := range rows {
		all[i] = r.combine(period)
	}
	closeTo(all, total)
	for i := range all {
		reach := 1.96 * math.Sqrt(all[i].variance)
		all[i].Lo, all[i].Hi = max(0, all[i].NS-reach), min(total, all[i].NS+reach)
	}
	return all
}

// combine weighs the two estimates by how sure each is. A sample either hits a row or does not, so that the variance of
// their number is about their expected number, for which both estimates speak.
func (r Row) combine(period float64) Estimate {
	alone := period * max(r.Sampled, period)
	if r.Seen == 0 {
		return Estimate{NS: r.Sampled, variance: alone}
	}
	if r.Slices < 2 || math.IsNaN(r.Variance) {
		return Estimate{NS: r.Sampled, variance: alone, Disagrees: true}
	}
	sampled := period * max((r.Sampled+r.Sliced)/2, period)
	mean := r.Sliced / r.Seen
	sliced := max(r.Variance, mean*mean, 1)
	if math.Abs(r.Sliced-r.Sampled) > farApart*math.Sqrt(sliced+sampled) {
		return Estimate{NS: r.Sampled, variance: alone, Disagrees: true}
	}
	variance := 1 / (1/sliced + 1/sampled)
	return Estimate{NS: variance * (r.Sliced/sliced + r.Sampled/sampled), variance: variance}
}

// closeTo makes the estimates sum to the total: each takes of the difference as much as it is unsure. What would become
// negative is 0, and the rest takes its part.
func closeTo(all []Estimate, total float64) {
	open := make([]int, len(all))
	for i := range all {
		open[i] = i
	}
	for len(open) > 0 {
		sum, variance := 0.0, 0.0
		for i := range all {
			sum += all[i].NS
		}
		for _, i := range open {
			variance += all[i].variance
		}
		if variance == 0 {
			return
		}
		left, cut := open[:0:0], false
		for _, i := range open {
			if all[i].NS+all[i].variance/variance*(total-sum) < 0 {
				all[i].NS, cut = 0, true
				continue
			}
			left = append(left, i)
		}
		if !cut {
			for _, i := range left {
				all[i].NS += all[i].variance / variance * (total - sum)
			}
			return
		}
		open = left
	}
}
