package progress

import (
	"slices"
	"sort"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What a process did when: its training steps one after the other, and what lies
// between them where it did not train: imports, evaluation, a checkpoint. Those are
// strata of their own, since a step says nothing about them.

const (
	// gapSteps is how much longer than a usual step the time between two backward passes
	// must be for something else to lie between them, in usual steps.
	gapSteps = 1.5
	// LeastStall is how much longer it must be at the least, whatever a step takes: where
	// others have the processor, or the host of a virtual machine has, a thread stands
	// still for some tens of milliseconds in the middle of a step, and that is no phase.
	LeastStall = int64(50 * time.Millisecond)
	// longGap is from how many usual steps on a gap counts though no slice saw any of it.
	longGap = 5
	// timelineSteps is over how many steps around a time what is usual is taken.
	timelineSteps = 64
)

// lap is a training step, from one backward pass to the next, or the part of one that
// lies before or behind a gap.
type lap struct {
	step
	end      int64 // where the next one begins, or would have begun
	from, to int64 // the part of it that there was
}

// whole reports whether there was all of it.
func (l *lap) whole() bool { return l.from <= l.begin && l.to >= l.end }

// Gap is a time without training.
type Gap struct {
	From, To int64
	Phase    string
}

// Timeline is what a process did between two times.
type Timeline struct {
	laps   []lap
	Gaps   []Gap
	begins []int64 // of the backward passes
	Usual  int64   // length of a step; 0 where none is known
	broken []int   // the laps of which there is a part only
}

// newTimeline cuts the time of a process between two moments by its steps and the
// times at which it asked its loader for more.
func newTimeline(all stepTimes, loads []int64, from, to int64) *Timeline {
	t := &Timeline{}
	first, last := max(0, all.after(from)-2), min(len(all), all.after(to)+2)
	steps := all[first:last]
	for _, s := range steps {
		t.begins = append(t.begins, s.begin)
	}
	if len(steps) < 2 {
		t.gap(from, to, loads)
		return t
	}
	var head, tail int64
	around := all[max(0, first-timelineSteps):min(len(all), last+timelineSteps)]
	t.Usual, head, tail = usualStep(around)
	like := around.typical(t.Usual)
	limit := t.Usual + max(int64(gapSteps*float64(t.Usual)), LeastStall)
	t.beforeFirst(steps[0], like, first == 0, from, head, loads)
	for i := range steps {
		s := steps[i]
		if i == len(steps)-1 {
			t.afterLast(s, like, last == len(all), to, limit, head, tail, loads)
			break
		}
		next := steps[i+1].begin
		before, behind, long := s.parted(like, next, t.Usual, head, tail)
		if next-s.begin <= limit || !long {
			t.laps = append(t.laps, lap{s, next, s.begin, next})
			continue
		}
		t.laps = append(t.laps, before)
		t.gap(before.to, behind.from, loads)
		t.laps = append(t.laps, behind)
	}
	for i := range t.laps {
		if !t.laps[i].whole() {
			t.broken = append(t.broken, i)
		}
	}
	return t
}

// usualStep is the median length of steps, and how that is shared between what comes
// before the next backward pass and what comes behind it.
func usualStep(steps stepTimes) (usual, head, tail int64) {
	marks := 0
	for i := range steps {
		marks = max(marks, len(steps[i].marks))
	}
	lengths, tails := make([]int64, 0, len(steps)), make([]int64, 0, len(steps))
	for i := range len(steps) - 1 {
		length := steps[i+1].begin - steps[i].begin
		lengths = append(lengths, length)
		// Once the optimizer's calls are recorded in slices, only the backward pass is known of a step.
		if len(steps[i].marks) == 1 && marks > 1 {
			continue
		}
		if behind := steps[i].lastMark() - steps[i].begin; behind < length {
			tails = append(tails, behind)
		}
	}
	slices.Sort(lengths)
	usual = lengths[len(lengths)/2]
	if len(tails) > 0 {
		slices.Sort(tails)
		tail = min(tails[len(tails)/2], usual)
	}
	if marks <= 1 { // the optimizer's part is not known
		tail += (usual - tail) / 2
	}
	return usual, usual - tail, tail
}

// typical is a step of about the usual length with all the marks that any has.
func (b stepTimes) typical(usual int64) step {
	best, marks := 0, 0
	for i := range len(b) - 1 {
		off := abs(b[i+1].begin - b[i].begin - usual)
		if n := len(b[i].marks); n > marks || n == marks && off < abs(b[best+1].begin-b[best].begin-usual) {
			best, marks = i, n
		}
	}
	return b[best]
}

// lastMark is the end of the last thing in a step that is recorded in each.
func (s *step) lastMark() int64 {
	if n := len(s.marks); n > 0 {
		return s.marks[n-1]
	}
	return s.begin
}

// mostSlower is how much longer than usual a backward pass is believed to be because probes are in
// it; what takes longer than that waited.
const mostSlower = 4

// slower is how many times as long as in one like it a step's backward pass took: in a slice its
// probes lengthen it, and what comes behind it.
func (s *step) slower(like step) float64 {
	if len(s.marks) == 0 || len(like.marks) == 0 || like.marks[0] <= like.begin {
		return 1
	}
	return min(max(1, float64(s.marks[0]-s.begin)/float64(like.marks[0]-like.begin)), mostSlower)
}

// behind is how long a step goes on from the beginning of its backward pass, of which that
// alone is known, if it usually does so for tail.
func (s *step) behind(like step, tail int64) int64 {
	return max(int64(s.slower(like)*float64(tail)), s.lastMark()-s.begin)
}

// stretched is a step like this one at another time, and that many times as long.
func (s step) stretched(begin int64, times float64) step {
	m := step{begin: begin, marks: slices.Clone(s.marks)}
	for i, at := range m.marks {
		m.marks[i] = begin + int64(times*float64(at-s.begin))
	}
	return m
}

// headOf is the part of a step before a backward pass: the end of one like another.
func headOf(like step, next, usual, head int64) lap {
	return lap{like.moved(next - usual - like.begin), next, next - head, next}
}

// beforeFirst is what lies before the first backward pass: the rest of a step that was
// under way, or a forward pass and what came before that.
func (t *Timeline) beforeFirst(s, like step, isFirst bool, from, head int64, loads []int64) {
	switch {
	case !isFirst || from >= s.begin:
	case s.begin-from <= t.Usual+t.Usual/4:
		t.laps = append(t.laps, lap{like.moved(s.begin - t.Usual - like.begin), s.begin, from, s.begin})
	default:
		t.gap(from, s.begin-head, loads)
		t.laps = append(t.laps, headOf(like, s.begin, t.Usual, head))
	}
}

// afterLast is what lies behind the last backward pass.
func (t *Timeline) afterLast(s, like step, isLast bool, to, limit, head, tail int64, loads []int64) {
	if !isLast || to <= s.begin {
		return
	}
	tail = s.behind(like, tail)
	if len(s.marks) < len(like.marks) { // it is not over, or not all of it is known
		s = like.stretched(s.begin, s.slower(like))
	}
	if to-s.begin <= limit {
		t.laps = append(t.laps, lap{s, max(s.begin+t.Usual, to), s.begin, to})
		return
	}
	ended := s.begin + tail
	if len(s.marks) > 1 && s.lastMark() < to {
		ended = s.lastMark()
	}
	t.laps = append(t.laps, lap{s, ended + head, s.begin, ended})
	t.gap(ended, to, loads)
}

func (t *Timeline) gap(from, to int64, loads []int64) {
	if to <= from {
		return
	}
	phase := event.PhaseOther
	if i, _ := slices.BinarySearch(loads, from); i < len(loads) && loads[i] < to {
		phase = event.PhaseEvaluation
	}
	t.Gaps = append(t.Gaps, Gap{from, to, phase})
}

// Fold makes laps of the short gaps for which keep says no: what was in them was not seen.
func (t *Timeline) Fold(keep func(Gap) bool) {
	t.Gaps = slices.DeleteFunc(t.Gaps, func(g Gap) bool {
		return t.Usual > 0 && g.To-g.From < longGap*t.Usual && !keep(g)
	})
}

// LapAt is the lap that a time lies in, -1 outside of training.
func (t *Timeline) LapAt(at int64) int {
	i := sort.Search(len(t.laps), func(i int) bool { return t.laps[i].to > at })
	if i < len(t.laps) && t.laps[i].from <= at {
		return i
	}
	return -1
}

// GapAt is the gap that a time lies in, -1 in training.
func (t *Timeline) GapAt(at int64) int {
	return slices.IndexFunc(t.Gaps, func(g Gap) bool { return g.From <= at && at < g.To })
}

// Count is how many steps it was made of.
func (t *Timeline) Count() int { return len(t.begins) }

// Steps is how many backward passes began between two times.
func (t *Timeline) Steps(from, to int64) int {
	i, _ := slices.BinarySearch(t.begins, from)
	j, _ := slices.BinarySearch(t.begins, max(from, to))
	return j - i
}

// Nearest is the beginning of the step that is nearest to a time, of those between two
// others; the time itself where there is none.
func (t *Timeline) Nearest(at, from, to int64) int64 {
	best := at
	for i, _ := slices.BinarySearch(t.begins, from); i < len(t.begins) && t.begins[i] < to; i++ {
		if best == at || abs(t.begins[i]-at) < abs(best-at) {
			best = t.begins[i]
		}
	}
	return best
}

func abs(n int64) int64 { return max(n, -n) }

// Trained is how many steps lie between two times, parts included.
func (t *Timeline) Trained(from, to int64) (steps float64) {
	for i := t.firstLap(from); i < len(t.laps) && t.laps[i].from < to; i++ {
		l := &t.laps[i]
		steps += float64(max(0, min(to, l.to)-max(from, l.from))) / float64(max(1, l.end-l.begin))
	}
	return steps
}

// firstLap is the first one that ends behind a time.
func (t *Timeline) firstLap(at int64) int {
	return sort.Search(len(t.laps), func(i int) bool { return t.laps[i].to > at })
}

// Spent is how much time of a phase lies between two times, nanoseconds.
func (t *Timeline) Spent(phase string, from, to int64) (ns int64) {
	for _, g := range t.Gaps {
		if g.Phase == phase {
			ns += max(0, min(to, g.To)-max(from, g.From))
		}
	}
	return ns
}

// position is where in its step a lap was at a time.
func (l *lap) position(at int64) position {
	p := position{marks: len(l.marks), whole: share(at, l.begin, l.end)}
	for p.behind < p.marks && l.marks[p.behind] <= at {
		p.behind++
	}
	from, to := l.bounds(p.behind)
	p.share = share(at, from, to)
	return p
}

func (l *lap) bounds(behind int) (from, to int64) {
	from, to = l.begin, l.end
	if behind > 0 {
		from = l.marks[behind-1]
	}
	if behind < len(l.marks) {
		to = l.marks[behind]
	}
	return from, max(from, to)
}

// time is when a lap was at a position, and whether there was that part of it.
func (l *lap) time(p position) (at int64, was bool) {
	from, to, share := l.begin, l.end, p.whole
	if len(l.marks) == p.marks {
		from, to = l.bounds(p.behind)
		share = p.share
	}
	at = from + int64(share*float64(to-from)+0.5)
	return at, l.from <= at && at < l.to
}

// Passes is how often the process came, between two times, past the position in its step
// where it was at a third, in lap own. Only the laps at the ends and those of which
// there is a part have to be looked at: in each of the others it came past once.
func (t *Timeline) Passes(own int, at, from, to int64) (times int) {
	p := t.laps[own].position(at)
	came := func(i int) int {
		if i == own {
			if at >= from && at < to {
				return 1
			}
			return 0
		}
		if there, was := t.laps[i].time(p); was && there >= from && there < to {
			return 1
		}
		return 0
	}
	first := t.firstLap(from)
	last := sort.Search(len(t.laps), func(i int) bool { return t.laps[i].from >= to }) - 1
	if last < first {
		return 0
	}
	times = came(first)
	if last == first {
		return times
	}
	times += came(last) + last - first - 1
	low, _ := slices.BinarySearch(t.broken, first+1)
	for _, i := range t.broken[low:] {
		if i >= last {
			break
		}
		times += came(i) - 1
	}
	return times
}
