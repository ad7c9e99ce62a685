package steps

import (
	"cmp"
	"slices"
	"strings"
)

// Range is one that the user put around a part of the loop, or a mark (of no duration) at one.
type Range struct {
	Name       string
	Begin, End int64
}

// family are ranges of one template on a thread, without those within another one.
type family struct {
	template string
	ranges   []Range
	depth    int   // how many other families lie around it
	covered  int64 // sum of durations
	counted  bool  // their numbers grow
	speaks   bool  // their name speaks of a repetition
}

const (
	leastCovered = 0.3 // of the thread's time, of a loop whose name speaks of one
	mostCovered  = 0.5 // of one whose name does not
)

// Marked finds the loop in the ranges of a thread: what their names call a step, else the outermost that repeats. A name
// of the user's is never multiplied. busy is how long the thread was in any call or range, and extent from its first to its
// last one, in ns. Not ok where no range repeats; one range is enough if it is numbered and its name speaks of a step.
func Marked(ranges []Range, busy, extent int64) (l Loop, ok bool) {
	all := families(ranges)
	var best *family
	rank := func(f *family) int {
		share := float64(f.covered) / float64(max(busy, 1))
		extent := float64(f.ranges[len(f.ranges)-1].End-f.ranges[0].Begin) / float64(max(extent, 1))
		switch {
		case f.speaks && f.counted && (len(f.ranges) > 1 && extent >= leastCovered || share >= leastCovered):
			return 4
		case len(f.ranges) < 2 || extent < leastCovered || speaksOf(f.template, larger) && !f.speaks:
			return 0
		case f.speaks && share >= leastCovered:
			return 3
		case share >= mostCovered:
			return 2
		}
		return 1
	}
	for _, f := range all {
		if rank(f) == 0 {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(rank(f), rank(best)), cmp.Compare(best.depth, f.depth), cmp.Compare(f.covered, best.covered)) > 0 {
			best = f
		}
	}
	if best == nil {
		return l, false
	}
	parts := beside(all, best)
	if rank(best) == 1 {
		sum := int64(0)
		for _, f := range parts {
			sum += f.covered
		}
		if float64(sum) < mostCovered*float64(busy) {
			return l, false
		}
	}
	first := opens(parts)
	l = Loop{Anchor: first.ranges[0].Name, Name: best.template, Parts: 1, Fit: 1}
	var times []float64
	for i, r := range first.ranges {
		s := Step{Kind: Train, Method: Annotated, Number: i, Begin: r.Begin, End: r.End, Period: -1, Anchors: string(Scope)}
		if i+1 < len(first.ranges) {
			s.Period = first.ranges[i+1].Begin - r.Begin
			times = append(times, float64(s.Period))
		}
		l.Steps = append(l.Steps, s)
	}
	for _, f := range parts {
		extend(l.Steps, f.ranges)
	}
	if n := len(l.Steps); n > 0 && l.Steps[n-1].End > l.Steps[n-1].Begin && best.covers(l.Steps) {
		l.Steps[n-1].Period = l.Steps[n-1].Duration() // the ranges touch one another
	}
	if len(parts) > 1 && rank(best) < 4 {
		var names []string
		for _, f := range parts {
			names = append(names, f.template)
		}
		l.Name = strings.Join(names, " → ")
	}
	_, l.Irregular = Fold(times)
	Settle(l.Steps)
	return l, true
}

// covers reports whether the steps leave hardly anything between them, so that the last one's period is its own duration.
func (f *family) covers(all []Step) bool {
	var inside, periods int64
	for _, s := range all[:len(all)-1] {
		inside, periods = inside+s.Duration(), periods+s.Period
	}
	return len(all) == 1 || float64(inside) >= 0.9*float64(periods)
}

// families are the ranges by template, with how deep they lie.
func families(ranges []Range) (all []*family) {
	byTemplate := map[string]*family{}
	sorted := slices.Clone(ranges)
	slices.SortStableFunc(sorted, func(a, b Range) int { return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(b.End, a.End)) })
	type opened struct {
		end int64
		of  *family
	}
	var open []opened
	depths := map[*family]int{}
	for _, r := range sorted {
		template := Template(r.Name)
		f := byTemplate[template]
		if f == nil {
			f = &family{template: template, speaks: isStep(r.Name)}
			byTemplate[template] = f
			all = append(all, f)
		}
		for len(open) > 0 && open[len(open)-1].end <= r.Begin {
			open = open[:len(open)-1]
		}
		if slices.ContainsFunc(open, func(o opened) bool { return o.of == f }) {
			continue
		}
		depths[f] += len(open)
		open = append(open, opened{r.End, f})
		f.ranges = append(f.ranges, r)
		f.covered += r.End - r.Begin
	}
	for _, f := range all {
		f.depth = depths[f] / len(f.ranges)
		f.counted = growing(f.ranges)
	}
	return all
}

// growing says whether the numbers in the names grow, but for new beginnings.
func growing(ranges []Range) bool {
	grows, last := 0, int64(0)
	for i, r := range ranges {
		n, ok := Numbered(r.Name)
		if !ok {
			return false
		}
		if i > 0 && n > last {
			grows++
		}
		last = n
	}
	return len(ranges) == 1 || 2*grows >= len(ranges)-1
}

// beside are the families that come as often as one, at the same depth and in turn with it: parts of its step, in order.
func beside(all []*family, of *family) (parts []*family) {
	for _, f := range all {
		n, m := len(f.ranges), len(of.ranges)
		if f == of || f.depth == of.depth && n >= 2 && n >= m-1 && n <= m+1 && alternate(f.ranges, of.ranges) {
			parts = append(parts, f)
		}
	}
	slices.SortFunc(parts, func(a, b *family) int { return cmp.Compare(a.ranges[0].Begin, b.ranges[0].Begin) })
	return parts
}

// alternate says whether between two of one there is one of the other, and none lies in another.
func alternate(a, b []Range) bool {
	if a[0].Begin > b[0].Begin {
		a, b = b, a
	}
	for i := range b {
		if i >= len(a) || a[i].End > b[i].Begin || i+1 < len(a) && b[i].End > a[i+1].Begin {
			return false
		}
	}
	return true
}

// larger are words of what holds many steps.
var larger = map[string]bool{"epoch": true, "trial": true, "fold": true}

// openers are words of what an iteration begins with.
var openers = map[string]bool{
	"schedule": true, "scheduling": true, "scheduler": true, "recv": true, "receive": true, "get": true, "poll": true, "fetch": true,
	"load": true, "prepare": true, "next": true, "preprocess": true,
}

// opens is the part that a step begins with.
func opens(parts []*family) *family {
	for _, f := range parts {
		if speaksOf(f.template, openers) {
			return f
		}
	}
	return parts[0]
}

// extend has each step end with the last range that begins in it.
func extend(all []Step, ranges []Range) {
	i := 0
	for _, r := range ranges {
		for i+1 < len(all) && all[i+1].Begin <= r.Begin {
			i++
		}
		if r.Begin >= all[i].Begin {
			all[i].End = max(all[i].End, r.End)
		}
	}
}
