package steps

import "math"

const (
	mostWindows  = 10
	stepsAWindow = 4
)

// EnoughForNoise is of how many steps Noise can tell.
const EnoughForNoise = 2 * stepsAWindow

// Noise is how far the mean of the periods may be off by chance, in their unit: t·sd/√K of the
// means of K = min(10, N/4) equal windows, with sd² = Σ (w(i) − w(i−1))² / (2(K−1)) of neighbours
// and t of 2(K−1)²/(3K−4) degrees of freedom. A job that gets faster or slower slowly, as in its
// first seconds, is no noise. Not ok where there are not two windows.
func Noise(periods []float64) (floor float64, ok bool) {
	means := Windows(periods)
	k := len(means)
	if k < 2 {
		return 0, false
	}
	squares := 0.0
	for i := 1; i < k; i++ {
		squares += (means[i] - means[i-1]) * (means[i] - means[i-1])
	}
	freedom := 2 * (k - 1) * (k - 1) / (3*k - 4)
	return Quantile(freedom) * math.Sqrt(squares/float64(2*(k-1))/float64(k)), true
}

// Windows are the means of K = min(10, N/4) equal windows. What lasts for some steps, such
// as another process's work, is in few of them, so that they are as good as independent
// where the steps are not.
func Windows(periods []float64) []float64 {
	means := make([]float64, min(mostWindows, len(periods)/stepsAWindow))
	for i := range means {
		means[i] = Mean(periods[i*len(periods)/len(means) : (i+1)*len(periods)/len(means)])
	}
	return means
}

// student is the two-sided 95 % quantile of Student's t by degrees of freedom (R:
// qt(0.975, 1:9)).
var student = [mostWindows]float64{0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}

// Quantile is that of Student's t for a two-sided interval of 95 %, by degrees of
// freedom: above nine by Cornish and Fisher's expansion, which is right to 0.1 % there.
// Of none it is infinite.
func Quantile(freedom int) float64 {
	switch {
	case freedom < 1:
		return math.Inf(1)
	case freedom < mostWindows:
		return student[freedom]
	}
	const z = 1.959964
	n := float64(freedom)
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n)
}

// Variance is that of a sample; 0 of fewer than two.
func Variance(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	m, square := Mean(x), 0.0
	for _, v := range x {
		square += (v - m) * (v - m)
	}
	return square / float64(len(x)-1)
}

// Interval is that of 95 % around the mean of independent values.
func Interval(x []float64) (low, high float64) {
	m := Mean(x)
	if len(x) < 2 {
		return m, m
	}
	half := Quantile(len(x)-1) * math.Sqrt(Variance(x)/float64(len(x)))
	return m - half, m + half
}

// Mean is 0 of nothing.
func Mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(len(x), 1))
}

// Paired is how far the means of two samples of which each value belongs to one of the
// other differ by chance, in 95 of 100 cases: what both of a pair have in common, such as
// a machine that gets slower, is in none of the differences.
func Paired(a, b []float64) float64 {
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = b[i] - a[i]
	}
	return Quantile(len(a)-1) * math.Sqrt(Variance(differences)/float64(len(a)))
}

// Apart is how far the means of two samples of at least two differ by chance, in 95 of
// 100 cases (Welch's test).
func Apart(a, b []float64) float64 {
	va, vb := Variance(a)/float64(len(a)), Variance(b)/float64(len(b))
	if va+vb == 0 {
		return 0
	}
	freedom := (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	return Quantile(int(math.Floor(freedom))) * math.Sqrt(va+vb)
}
