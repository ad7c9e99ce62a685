package merge

import (
	"cmp"
	"math"
	"slices"
)

// call is one call of the host, of a recording or of a trace.
type call struct {
	id              int64
	start, duration int64 // duration is negative where it is not known
	name            string
}

// sequence are the calls of one name on one thread, by their start.
type sequence []call

// thread are the calls of a thread by name.
type thread map[string]sequence

// pair is a call that is in both.
type pair struct{ recorded, traced call }

func (p pair) offset() int64 { return p.traced.start - p.recorded.start }

// matched pairs two sequences in order: partners begin within tolerance of each other, once the trace's clock is moved
// by offset. Each call has one partner at the most.
func matched(recorded, traced sequence, offset, tolerance int64) (pairs []pair) {
	apart := func(i, j int) int64 { return traced[j].start - recorded[i].start - offset }
	for i, j := 0, 0; i < len(recorded) && j < len(traced); {
		switch d := apart(i, j); {
		case d < -tolerance:
			j++
		case d > tolerance:
			i++
		// The next one is nearer, and has no nearer partner itself.
		case i+1 < len(recorded) && abs(apart(i+1, j)) < abs(d) && (j+1 == len(traced) || abs(apart(i+1, j+1)) >= abs(apart(i+1, j))):
			i++
		case j+1 < len(traced) && abs(apart(i, j+1)) < abs(d) && (i+1 == len(recorded) || abs(apart(i+1, j+1)) >= abs(apart(i, j+1))):
			j++
		default:
			pairs = append(pairs, pair{recorded[i], traced[j]})
			i++
			j++
		}
	}
	return pairs
}

func abs(n int64) int64 { return max(n, -n) }

const (
	// near is how far apart clocks that count from the epoch by the same host's clock are, farthest how far others.
	near, farthest = 5_000_000, 2_000_000_000
	// bin is the resolution of the vote, somewhat more than the starts of a call differ in.
	bin = 20_000
	// mostVotes bounds the vote; rare names come first, which have few wrong pairs.
	mostVotes = 4 << 20
	// coarse is the tolerance of the first pairing, around the vote; least and most bound that of the last.
	coarse, least, most = 200_000, 20_000, 1_000_000
)

// vote finds how much the trace's clock is ahead, at most so far: the difference that most pairs of a name have. Loops
// make other differences frequent, but never so sharp, as their steps differ in length.
func vote(recorded, traced map[int32]thread, far int64) (offset int64, ok bool) {
	type candidates struct{ recorded, traced sequence }
	var all []candidates
	for tid, names := range traced {
		for name, calls := range names {
			if of := recorded[tid][name]; len(of) > 0 {
				all = append(all, candidates{of, calls})
			}
		}
	}
	slices.SortFunc(all, func(a, b candidates) int {
		return cmp.Or(
			cmp.Compare(len(a.recorded)*len(a.traced), len(b.recorded)*len(b.traced)), cmp.Compare(a.traced[0].name, b.traced[0].name),
			cmp.Compare(a.traced[0].start, b.traced[0].start))
	})
	votes, bins := 0, map[int64]int{}
	for _, c := range all {
		if votes > 0 && votes+len(c.recorded)*len(c.traced) > mostVotes {
			break
		}
		for _, t := range c.traced {
			for _, r := range c.recorded {
				if d := t.start - r.start; abs(d) <= far {
					bins[floorDiv(d, bin)]++
				}
			}
		}
		votes += len(c.recorded) * len(c.traced)
	}
	best, count := int64(0), 0
	for b := range bins {
		n := bins[b] + bins[b+1]
		if n > count || n == count && abs(b) < abs(best) || n == count && abs(b) == abs(best) && b < best {
			best, count = b, n
		}
	}
	return (best + 1) * bin, count > 0
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// pairing is what both have, with the clocks put together.
type pairing struct {
	pairs          []pair
	offset, lo, hi int64 // of the trace's clock: median, 5th and 95th percentile
	longer         int64
}

// pairThreads pairs all calls of threads that have the same number in both, with clocks as near to each other as may be.
// Where most calls that can have a partner find none, they are not the same calls. Nor are they if the two meet in a
// corner alone, for the end of one loop looks like the beginning of another: near clocks show what was recorded in the
// trace's time, and far ones take a tenth of the trace.
func pairThreads(recorded, traced map[int32]thread) (p pairing, ok bool) {
	p, ok = pairWithin(recorded, traced, near)
	if ok && 2*len(p.pairs) >= pairable(recorded, traced, p.offset) && 2*pairable(recorded, traced, 0) >= len(p.pairs) {
		return p, true
	}
	all := 0
	for _, names := range traced {
		all += names.calls()
	}
	p, ok = pairWithin(recorded, traced, farthest)
	return p, ok && 2*len(p.pairs) >= pairable(recorded, traced, p.offset) && 10*len(p.pairs) >= all
}

// pairable is how many calls can have a partner: of names that both have on a thread, at a time of which both have calls.
func pairable(recorded, traced map[int32]thread, offset int64) int {
	ours, theirs := 0, 0
	for tid, names := range traced {
		begin, end := names.extent()
		first, last := recorded[tid].extent()
		for name, calls := range names {
			of := recorded[tid][name]
			if len(of) > 0 {
				ours += of.between(begin-offset, end-offset)
				theirs += calls.between(first+offset, last+offset)
			}
		}
	}
	return min(ours, theirs)
}

// extent is from when to when calls of a thread begin.
func (t thread) extent() (first, last int64) {
	first = math.MaxInt64
	for _, calls := range t {
		first, last = min(first, calls[0].start), max(last, calls[len(calls)-1].start)
	}
	return first, last
}

func (s sequence) between(first, last int64) (n int) {
	for _, c := range s {
		if c.start >= first && c.start <= last {
			n++
		}
	}
	return n
}

func pairWithin(recorded, traced map[int32]thread, far int64) (p pairing, ok bool) {
	offset, ok := vote(recorded, traced, far)
	if !ok {
		return p, false
	}
	for _, tolerance := range []int64{coarse, 0} {
		if tolerance == 0 {
			tolerance = min(max(4*(p.hi-p.lo), least), most)
		}
		p.pairs = p.pairs[:0]
		for tid, names := range traced {
			for name, calls := range names {
				p.pairs = append(p.pairs, matched(recorded[tid][name], calls, offset, tolerance)...)
			}
		}
		if len(p.pairs) == 0 {
			return p, false
		}
		offsets := make([]int64, len(p.pairs))
		for i, pair := range p.pairs {
			offsets[i] = pair.offset()
		}
		p.offset, p.lo, p.hi = percentile(offsets, 50), percentile(offsets, 5), percentile(offsets, 95)
		offset = p.offset
	}
	var longer []int64
	for _, pair := range p.pairs {
		if pair.recorded.duration >= 0 && pair.traced.duration >= 0 {
			longer = append(longer, pair.recorded.duration-pair.traced.duration)
		}
	}
	if len(longer) > 0 {
		p.longer = percentile(longer, 50)
	}
	return p, true
}

// percentile sorts values.
func percentile(values []int64, percent int) int64 {
	slices.Sort(values)
	return values[(len(values)-1)*percent/100]
}

// renumbered gives the threads of a trace the numbers that the recording has for them. A process in a pid namespace of
// its own writes other numbers: its main thread is the process there, too, and the others are those that call the same.
func renumbered(recorded, traced map[int32]thread, pid, tracedPID int32) (renumber map[int32]int32) {
	renumber = map[int32]int32{}
	if pid == tracedPID {
		for tid := range traced {
			if recorded[tid] != nil {
				renumber[tid] = tid
			}
		}
		return renumber
	}
	taken := map[int32]bool{}
	if traced[tracedPID] != nil && recorded[pid] != nil {
		renumber[tracedPID], taken[pid] = pid, true
	}
	type likeness struct {
		traced, recorded int32
		common           int
	}
	var all []likeness
	for t, names := range traced {
		for r, others := range recorded {
			if n := common(names, others); n > 0 && 2*n >= names.calls() {
				all = append(all, likeness{t, r, n})
			}
		}
	}
	slices.SortFunc(all, func(a, b likeness) int {
		return cmp.Or(-cmp.Compare(a.common, b.common), cmp.Compare(a.traced, b.traced), cmp.Compare(a.recorded, b.recorded))
	})
	for _, l := range all {
		if _, known := renumber[l.traced]; !known && !taken[l.recorded] {
			renumber[l.traced], taken[l.recorded] = l.recorded, true
		}
	}
	return renumber
}

func common(a, b thread) (n int) {
	for name, calls := range a {
		n += min(len(calls), len(b[name]))
	}
	return n
}

func (t thread) calls() (n int) {
	for _, calls := range t {
		n += len(calls)
	}
	return n
}
