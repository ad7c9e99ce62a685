package progress

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Where in its step a process was between two marks follows from the time that has passed,
// and a slice itself moves that: putting its probes in stands before it, taking them out
// behind it, and its calls take longer. What it saw between two passes of the same mark is
// a whole step, whatever that did to the time in between.

// Windows are the whole steps within two times, one after the other. Those that begin and
// end at no mark go from one place of a step to about the same of the next, and have calls at
// their edges once too often or too seldom; they are taken where there are not two of the
// others, by which to tell how steps differ.
func (t *Timeline) Windows(on, off int64) [][2]int64 {
	const enough = 2
	marked, placed := Marked(t, on, off), placed(t, on, off)
	if len(marked) >= min(len(placed), enough) {
		return marked
	}
	return placed
}

// Marked are the whole steps within two times that begin and end at a mark, the same for
// all: the one of which there are most.
func Marked(t *Timeline, on, off int64) (best [][2]int64) {
	first, marks := t.firstLap(on), 0
	for i := first; i < len(t.laps) && t.laps[i].from < off; i++ {
		marks = max(marks, len(t.laps[i].marks))
	}
	for place := range marks + 1 {
		if windows := fromMark(t, place, first, on, off); len(windows) > len(best) {
			best = windows
		}
	}
	return best
}

// fromMark are those from a mark to the next of the same: 0 is the beginning, where the
// backward pass begins.
func fromMark(t *Timeline, place, first int, on, off int64) (windows [][2]int64) {
	for i := first; i+1 < len(t.laps) && t.laps[i].from < off; i++ {
		l, next := &t.laps[i], &t.laps[i+1]
		if !l.whole() || !began(t, l.begin) || next.from != l.end || place > 0 && (len(l.marks) != len(next.marks) || !next.whole()) {
			continue
		}
		begin, _ := l.mark(place)
		end, is := next.mark(place)
		if !is || begin < on || end > off {
			continue
		}
		windows = append(windows, [2]int64{begin, end})
	}
	return windows
}

// began reports whether a backward pass was seen to begin at a time.
func began(t *Timeline, at int64) bool {
	_, did := slices.BinarySearch(t.begins, at)
	return did
}

// mark is when a lap came by a mark, 0 its beginning, and whether it has that one.
func (l *lap) mark(place int) (at int64, is bool) {
	switch {
	case place == 0:
		return l.begin, true
	case place <= len(l.marks):
		return l.marks[place-1], true
	}
	return 0, false
}

// placed are the whole steps from one place of a step to the same of the next.
func placed(t *Timeline, on, off int64) (windows [][2]int64) {
	begin := int64(-1)
	var at position
	for i := t.firstLap(on); i < len(t.laps) && t.laps[i].from < off; i++ {
		l := &t.laps[i]
		if begin >= 0 {
			if there, was := l.time(at); was && there <= off {
				windows = append(windows, [2]int64{begin, there})
				begin = there
				continue
			}
		}
		switch {
		case begin < 0 && l.from <= on && l.whole():
			begin, at = on, l.position(on)
		case l.whole():
			begin, at = l.begin, l.position(l.begin)
		default:
			begin = -1
		}
	}
	return windows
}

// WindowOf is in which of the windows a time lies, from 1; 0 in none.
func WindowOf(windows [][2]int64, at int64) int32 {
	i := sort.Search(len(windows), func(i int) bool { return windows[i][1] > at })
	if i < len(windows) && windows[i][0] <= at {
		return int32(i + 1)
	}
	return 0
}

// Began is when the first step did, or the part of it that is known of; the end of all time
// where there is none.
func (t *Timeline) Began() int64 {
	if len(t.laps) == 0 {
		return math.MaxInt64
	}
	return t.laps[0].from
}

// Covers reports whether the process came by each place of a step between two times: what
// saw as much as a whole step may have seen one part of it twice and another never.
func Covers(t *Timeline, on, off int64) bool {
	if len(Marked(t, on, off)) > 0 {
		return true
	}
	marks := 0
	for i := range t.laps {
		marks = max(marks, len(t.laps[i].marks))
	}
	var seen [][2]float64
	for i := t.firstLap(on); i < len(t.laps) && t.laps[i].from < off; i++ {
		l := &t.laps[i]
		seen = append(seen, [2]float64{l.place(max(on, l.from), marks), l.place(min(off, l.to), marks)})
	}
	slices.SortFunc(seen, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	const unsure = 0.02 // of what lies between two marks
	upTo := 0.0
	for _, s := range seen {
		if s[0] > upTo+unsure {
			return false
		}
		upTo = max(upTo, s[1])
	}
	return upTo >= float64(marks+1)-unsure
}

// place is the position of a lap at a time as a number, from 0 to how many parts so many
// marks cut a step into.
func (l *lap) place(at int64, marks int) float64 {
	if at >= l.end {
		return float64(marks + 1)
	}
	p := l.position(at)
	if p.marks != marks {
		return p.whole * float64(marks+1)
	}
	return float64(p.behind) + p.share
}
