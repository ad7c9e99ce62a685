package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// rareSteps: a few heavy steps hold more than a tenth of the time, and what is in them that is not in the others.
func rareSteps(r *Recording) ([]Explanation, error) {
	k := r.steps
	total := k.meanNS * float64(len(k.all))
	beyond := k.heavyNS - k.medianNS*float64(len(k.heavy))
	if len(k.heavy) < 2 || 3*len(k.heavy) >= len(k.all) || k.heavyNS <= leastShare*total || beyond <= 0 {
		return nil, nil
	}
	// What is in the heavy steps and not in the others, line by line.
	type both struct{ heavy, other float64 }
	lines := map[*Frame]*both{}
	heavyTime, otherTime := 0.0, 0.0
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Heavy {
			heavyTime += row.NS
		} else {
			otherTime += row.NS
		}
		seen := map[*Frame]bool{}
		for _, f := range row.Stack.Users() {
			if seen[f] {
				continue
			}
			seen[f] = true
			if lines[f] == nil {
				lines[f] = &both{}
			}
			if row.Heavy {
				lines[f].heavy += row.NS
			} else {
				lines[f].other += row.NS
			}
		}
	}
	if heavyTime == 0 {
		return nil, nil
	}
	// Of the lines that grow most with a heavy step, the deepest that still has most of the growth.
	growth := func(f *Frame) float64 {
		b := lines[f]
		return b.heavy/float64(len(k.heavy)) - b.other/float64(max(1, len(k.all)-len(k.heavy)))
	}
	all := make([]*Frame, 0, len(lines))
	for f := range lines {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *Frame) int {
		if d := growth(b) - growth(a); d != 0 {
			if d > 0 {
				return 1
			}
			return -1
		}
		return byPlace(a, b)
	})
	var what *Frame
	claims := r.rows(func(row *Row) bool { return row.Heavy })
	if len(all) > 0 {
		most := growth(all[0])
		depth := -1
		for _, f := range all {
			if growth(f) < most/2 {
				break
			}
			if d := r.depthOf(f); d > depth {
				what, depth = f, d
			}
		}
	}
	e := Explanation{claims: claims, Explained: beyond / r.Wall(), title: "rare heavy steps"}
	e.sentence = fmt.Sprintf("%d of %d steps take %s of the time: %s each instead of %s%s.", len(k.heavy), len(k.all),
		percent(k.heavyNS/total),
		milliseconds(k.heavyNS/float64(len(k.heavy))), milliseconds(k.medianNS), r.every())
	if what != nil {
		e.Place = what.place()
		e.Evidence = fmt.Sprintf("What is in them and not in the others is %s.", what.at())
		if called := r.calledIn(what); called != "" {
			e.Evidence = fmt.Sprintf("What is in them and not in the others is %s, in %s.", what.at(), called)
		}
	}
	e.Advice = "Do it less often, make it cheaper, or move it to another thread or process."
	return []Explanation{e}, nil
}

// depthOf is how many user frames lie outside of a line, at most.
func (r *Recording) depthOf(f *Frame) (depth int) {
	for i := range r.Rows {
		if r.Rows[i].Heavy {
			if d := slices.Index(r.Rows[i].Stack.Users(), f); d > depth {
				depth = d
			}
		}
	}
	return depth
}

// calledIn is the Python function that a line calls most of the time in heavy steps, "" if there is none.
func (r *Recording) calledIn(at *Frame) string {
	claims := r.rows(func(row *Row) bool { return row.Heavy && row.Stack.Innermost() == at })
	called := heaviest(r.Rows, claims, func(row *Row) string {
		if f := row.Stack.Called(); f != nil {
			return f.name() + " (" + library(f) + ")"
		}
		return ""
	}, strings.Compare)
	if len(called) > 0 && called[0].ns > r.sum(claims)/2 {
		return called[0].of
	}
	return ""
}

// every says how many steps lie between heavy ones, if that is regular.
func (r *Recording) every() string {
	at := map[int64]int{}
	for i, s := range r.steps.all {
		at[s.Begin] = i
	}
	var distances []float64
	for i := 1; i < len(r.steps.heavy); i++ {
		distances = append(distances, float64(at[r.steps.heavy[i].Begin]-at[r.steps.heavy[i-1].Begin]))
	}
	if len(distances) < 2 {
		return ""
	}
	median := steps.Median(slices.Clone(distances))
	regular := 0
	for _, d := range distances {
		if d >= 0.9*median-1 && d <= 1.1*median+1 {
			regular++
		}
	}
	if regular*10 < len(distances)*7 || median < 2 {
		return ""
	}
	return fmt.Sprintf(", about every %.0f steps", median)
}

func milliseconds(ns float64) string {
	switch {
	case ns >= 1e10:
		return fmt.Sprintf("%.0f s", ns/1e9)
	case ns >= 1e9:
		return fmt.Sprintf("%.1f s", ns/1e9)
	case ns >= 1e7:
		return fmt.Sprintf("%.0f ms", ns/1e6)
	}
	return fmt.Sprintf("%.2g ms", ns/1e6)
}
