package numbers

import (
	"fmt"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// OverRepeats are the numbers of several runs of one benchmark together. With two runs or more the interval is that of
// the runs' values by Student's t, since what differs from run to run is more than what differs within one.
func OverRepeats(runs [][]Number) []Number {
	switch len(runs) {
	case 0:
		return nil
	case 1:
		return runs[0]
	}
	var all []Number
	for _, first := range inOrder(runs) {
		var values []float64
		why := first.Why
		for _, run := range runs {
			n, ok := Find(run, first.Name)
			switch {
			case ok && n.Value != nil:
				values = append(values, *n.Value)
			case ok && n.Why != "":
				why = n.Why
			}
		}
		n := Number{Name: first.Name, Unit: first.Unit, From: "runs", Of: len(values)}
		if len(values) == 0 {
			n.From, n.Why = "", why
			all = append(all, n)
			continue
		}
		n.Value = new(steps.Mean(values))
		if len(values) < len(runs) {
			n.Why = fmt.Sprintf("of %d of %d runs; not of the others: %s", len(values), len(runs), why)
		}
		if len(values) > 1 {
			lo, hi := steps.Interval(values)
			if lo < 0 && slices.Min(values) >= 0 && n.Name != LossChange {
				lo = 0 // a time, a rate or a share is never negative
			}
			n = n.within(lo, hi)
		}
		all = append(all, n)
	}
	return all
}

// inOrder has each name once, as the first run that knows it has it.
func inOrder(runs [][]Number) (names []Number) {
	seen := map[string]bool{}
	for _, run := range runs {
		for _, n := range run {
			if !seen[n.Name] {
				seen[n.Name] = true
				names = append(names, n)
			}
		}
	}
	return names
}

// Spread is the standard deviation of a number over runs, in percent of its mean; not ok with fewer than two.
func Spread(runs [][]Number, name string) (percent float64, ok bool) {
	var values []float64
	for _, run := range runs {
		if v := value(run, name); v != nil {
			values = append(values, *v)
		}
	}
	mean := steps.Mean(values)
	if len(values) < 2 || mean == 0 {
		return 0, false
	}
	return 100 * math.Sqrt(steps.Variance(values)) / math.Abs(mean), true
}
