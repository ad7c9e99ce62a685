package pattern

import "math"

// histogram of durations: four classes to a doubling, from 1 ns to 19 hours.
type histogram struct {
	classes    [184]uint32
	count, sum int64
	longest    int64
}

func (h *histogram) add(ns int64) {
	ns = max(ns, 1)
	h.classes[min(int(4*math.Log2(float64(ns))), len(h.classes)-1)]++
	h.count++
	h.sum += ns
	h.longest = max(h.longest, ns)
}

func (h *histogram) mean() int64 {
	if h.count == 0 {
		return 0
	}
	return h.sum / h.count
}

// quantile is the upper end of the class that has it, 0 of nothing.
func (h *histogram) quantile(q float64) int64 {
	rank, seen := int64(math.Ceil(q*float64(h.count))), int64(0)
	for i, n := range h.classes {
		if seen += int64(n); seen >= rank && n > 0 {
			return min(int64(math.Exp2(float64(i+1)/4)), h.longest)
		}
	}
	return 0
}
