// Package reference has the rules by which ReFrame holds a number against its reference, so that a suite means the
// same to both: thresholds are fractions of the reference, turned around below zero, and absolute at zero.
package reference

import (
	"fmt"
	"math"
)

// Reference is what a number should be. A threshold that is nil bounds nothing.
type Reference struct {
	Value        float64
	Lower, Upper *float64
	Unit         string // "" is the number's own
	// Expected is why the number is expected to miss it; "" where it is not.
	Expected string
}

// Result is what holding a number against a reference gives.
type Result string

// The results, in ReFrame's words.
const (
	Pass  Result = "pass"
	Fail  Result = "fail"
	XFail Result = "xfail" // missed, as expected
	XPass Result = "xpass" // met, though it was expected to miss
)

// Bounds are the least and the most that meet the reference. The lower threshold lies in [-1, 0] of a positive
// reference and below 0 of others; the upper one is not negative, and at most 1 of a negative reference.
func (r Reference) Bounds() (lower, upper float64, err error) {
	least, most := math.Inf(-1), math.Inf(1)
	if r.Value > 0 {
		least = -1
	}
	if r.Value < 0 {
		most = 1
	}
	if l := r.Lower; l != nil && !(*l >= least && *l <= 0) {
		return 0, 0, fmt.Errorf("the lower threshold %v of reference %v is not between %v and 0", *l, r.Value, least)
	}
	if u := r.Upper; u != nil && !(*u >= 0 && *u <= most) {
		return 0, 0, fmt.Errorf("the upper threshold %v of reference %v is not between 0 and %v", *u, r.Value, most)
	}
	return r.bound(r.Lower, -1), r.bound(r.Upper, 1), nil
}

// bound is one of them; without a threshold it is infinite.
func (r Reference) bound(threshold *float64, side int) float64 {
	switch {
	case threshold == nil:
		return math.Inf(side)
	case r.Value == 0:
		return *threshold
	case r.Value < 0:
		return r.Value * (1 - *threshold)
	}
	return r.Value * (1 + *threshold)
}

// Check holds a value against the reference. What is no number meets none.
func (r Reference) Check(value float64) (Result, error) {
	lower, upper, err := r.Bounds()
	if err != nil {
		return Fail, err
	}
	met := value >= lower && value <= upper
	switch {
	case met && r.Expected != "":
		return XPass, nil
	case met:
		return Pass, nil
	case r.Expected != "":
		return XFail, nil
	}
	return Fail, nil
}

// Certain says whether all of an interval gives the result that the value gives.
func (r Reference) Certain(value, lo, hi float64) bool {
	of, _ := r.Check(value)
	for _, end := range []float64{lo, hi} {
		if result, _ := r.Check(end); result != of {
			return false
		}
	}
	return true
}

// Worst is what several numbers give together: a miss before an unexpected pass before an expected miss.
func Worst(results []Result) Result {
	worst := Pass
	rank := map[Result]int{Pass: 0, XFail: 1, XPass: 2, Fail: 3}
	for _, r := range results {
		if rank[r] > rank[worst] {
			worst = r
		}
	}
	return worst
}

// Difference is by how many percent of the right value the left one is more, rounded to hundredths as ReFrame does it.
func Difference(left, right float64) float64 {
	return round(100 * (left - right) / right)
}

// round is to two decimals, halves to the even neighbour.
func round(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	return math.RoundToEven(x*100) / 100
}
