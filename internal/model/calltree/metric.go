package calltree

import "math"

// Metric is what is known of a set of values: enough to merge two of them.
// Spread is by Welford's method; a value that stands for w others counts w times.
type Metric struct {
	Count, Sum, Min, Max, Mean, M2 float64

	seen []seen // in slices, in order of time; nil where every row is there
}

// Add takes a value that stands for weight values like it.
func (m *Metric) Add(value, weight float64) {
	if weight <= 0 {
		return
	}
	m.Merge(Metric{Count: weight, Sum: value * weight, Min: value, Max: value, Mean: value})
}

// Merge adds the values of another set. The order of merges does not matter.
func (m *Metric) Merge(o Metric) {
	if len(o.seen) > 0 {
		m.seen = joined(m.seen, o.seen)
	}
	switch {
	case o.Count == 0:
		return
	case m.Count == 0:
		o.seen = m.seen
		*m = o
		return
	}
	n := m.Count + o.Count
	d := o.Mean - m.Mean
	m.M2 += o.M2 + d*d*m.Count*o.Count/n
	m.Mean += d * o.Count / n
	m.Count, m.Sum = n, m.Sum+o.Sum
	m.Min, m.Max = min(m.Min, o.Min), max(m.Max, o.Max)
}

// Stddev is the sample's standard deviation, 0 below two values.
func (m *Metric) Stddev() float64 {
	if m.Count < 2 {
		return 0
	}
	return math.Sqrt(m.M2 / (m.Count - 1))
}
