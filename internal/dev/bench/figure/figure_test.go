package figure

import (
	"math"
	"testing"
)

func TestARatioLiesInItsInterval(t *testing.T) {
	var with, without []float64
	for i := range 60 {
		noise := 0.02 * math.Sin(float64(i)*7)
		with, without = append(with, 1.03+noise), append(without, 1+noise)
	}
	r := RatioOf(with, without)
	if math.Abs(r.Median-1.03) > 0.002 || r.Low > r.Median || r.High < r.Median || r.Low < 1.02 || r.High > 1.04 {
		t.Errorf("%+v", r)
	}
	if r := RatioOf(nil, without); !math.IsNaN(r.Median) {
		t.Errorf("of nothing: %+v", r)
	}
}
