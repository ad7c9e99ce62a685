package steps

import "math"

const (
	mostWindows  = 10
	stepsAWindow = 5
)

// EnoughForNoise is of how many steps Noise can tell.
const EnoughForNoise = 2 * stepsAWindow

// Noise is how far the mean of the periods may be off by chance, in their unit:
// t·sd/√K of the means of K = min(10, N/5) equal windows. Not ok where there are
// not two windows.
func Noise(periods []float64) (floor float64, ok bool) {
	k := min(mostWindows, len(periods)/stepsAWindow)
	if k < 2 {
		return 0, false
	}
	means := make([]float64, k)
	for i := range means {
		means[i] = Mean(periods[i*len(periods)/k : (i+1)*len(periods)/k])
	}
	m, square := Mean(means), 0.0
	for _, v := range means {
		square += (v - m) * (v - m)
	}
	return student[k-1] * math.Sqrt(square/float64(k-1)) / math.Sqrt(float64(k)), true
}

// student is the two-sided 95 % quantile of Student's t by degrees of freedom (R:
// qt(0.975, 1:9)).
var student = [mostWindows]float64{0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}

// Mean is 0 of nothing.
func Mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(len(x), 1))
}
