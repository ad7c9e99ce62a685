package calltree

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Where rows were recorded in slices, what is added up of them is an estimate. How far off it may
// be follows from how much the recorded steps differ: the formulas are those of the view
// operator_estimate (output/operator_estimate.sql), for the sums over a node and all below it. Of
// probes that were put in later that view knows more; here a slice in which a node has no row had
// none of its calls.

// Slice is a row of table slice.
type Slice struct {
	Of          Stratum
	Begin       int64
	Recorded    float64 // n: whole steps recorded
	Saw         float64 // with parts of others
	Represented float64 // l: steps that these stand for
	Steps       int32   // k: whole steps, which rows are numbered by
	OfSteps     bool    // it is counted in steps
	OfTime      bool    // or in time
}

// itself says whether the slice stands for itself: it passed by less than a step.
func (s *Slice) itself() bool { return s.Represented-s.Saw < 1 }

// Stratum are slices that tell of one another: those of a process's group of probes in one phase.
type Stratum struct {
	Session, Group, Phase string
	PID                   int32
}

// Interval is how far off an estimate may be, at 95 %.
type Interval struct {
	Low  float64
	High float64 // NaN where nothing tells it: a single step, or a stretch that no slice saw
}

// seen is what rows of a node have in one step of a slice. Without a slice every row is there.
type seen struct {
	slice         *Slice // nil: of none
	step          int32  // 0: in a step that the slice cut
	sum, weighted float64
	rows, calls   float64 // and how many these are, and stand for
	unknown       bool    // it stands for more, by no slice
}

func (s seen) compare(o seen) int {
	if s.slice != o.slice {
		return cmp.Or(cmp.Compare(s.slice.begin(), o.slice.begin()), cmp.Compare(s.slice.key(), o.slice.key()))
	}
	return cmp.Compare(s.step, o.step)
}

func (s *Slice) begin() int64 {
	if s == nil {
		return math.MinInt64
	}
	return s.Begin
}

// key orders slices that begin at one time.
func (s *Slice) key() string {
	if s == nil {
		return ""
	}
	return s.Of.Session + "\x00" + s.Of.Group + "\x00" + s.Of.Phase + "\x00" + string(rune(s.Of.PID))
}

// note counts a row's value where it was seen.
func (m *Metric) note(s *Slice, step int32, value, weight float64) {
	row := seen{s, step, value, value * weight, 1, weight, s == nil && weight != 1}
	if s == nil { // the first
		if len(m.seen) == 0 || m.seen[0].slice != nil {
			m.seen = slices.Insert(m.seen, 0, seen{})
		}
		m.seen[0].add(row)
		return
	}
	// Rows come nearly in order of time: the step is among the last that have one.
	for i := len(m.seen) - 1; i >= max(0, len(m.seen)-4); i-- {
		if at := &m.seen[i]; at.slice == s && at.step == step {
			at.add(row)
			return
		}
	}
	m.seen = append(m.seen, row)
}

func (s *seen) add(o seen) {
	s.sum, s.weighted, s.unknown = s.sum+o.sum, s.weighted+o.weighted, s.unknown || o.unknown
	s.rows, s.calls = s.rows+o.rows, s.calls+o.calls
}

// joined are both lists as one in order of time, what is of one step added up.
func joined(a, b []seen) []seen {
	if len(b) == 0 {
		return a
	}
	all := append(slices.Clip(a), b...)
	slices.SortStableFunc(all, seen.compare)
	out := all[:1]
	for _, s := range all[1:] {
		if last := &out[len(out)-1]; last.compare(s) == 0 {
			last.add(s)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// Intervals are those of a metric over each node and all below it, of the nodes that have rows
// which stand for more than themselves. Nil where none has, or none is known.
func (n *Node) Intervals(metric string) map[*Node]Interval {
	if n.slices == nil {
		return nil
	}
	intervals := map[*Node]Interval{}
	var walk func(*Node) []seen
	walk = func(at *Node) []seen {
		var rows []seen
		if m := at.Own[metric]; m != nil {
			rows = joined(nil, m.seen)
		}
		for _, c := range at.children {
			rows = joined(rows, walk(c))
		}
		if interval, estimated := n.slices.interval(rows); estimated {
			intervals[at] = interval
		}
		return rows
	}
	walk(n)
	return intervals
}

// Sliced says whether slices tell how far off estimates are.
func (n *Node) Sliced() bool { return n.slices != nil }

// slicing are the slices of a dataset, by stratum in order of time.
type slicing struct {
	strata map[Stratum][]*Slice
	byID   map[rowKey]*Slice
	unseen map[Stratum]bool // some stretch of it has no slice
}

// interval is of what was seen, in order of time. False where every row stands for itself.
func (a *slicing) interval(rows []seen) (i Interval, estimated bool) {
	whole := map[*Slice][]seen{}
	var known, sum, weighted, v, shares float64
	strata := map[Stratum]*stratum{}
	var order []Stratum
	unknown := false
	for _, r := range rows {
		known, weighted, unknown = known+r.sum, weighted+r.weighted, unknown || r.unknown
		if r.slice == nil {
			continue
		}
		estimated = true
		s := strata[r.slice.Of]
		if s == nil {
			s = new(stratum)
			strata[r.slice.Of], order = s, append(order, r.slice.Of)
		}
		s.weighted += r.weighted
		if r.step > 0 {
			whole[r.slice] = append(whole[r.slice], r)
		}
		s.in(r)
	}
	if !estimated && !unknown {
		return i, false
	}
	sliced := 0.0
	for _, of := range order {
		s := strata[of]
		s.measure(a.strata[of], whole)
		sliced, sum = sliced+s.weighted, sum+s.total
		unknown = unknown || a.unseen[of] || math.IsNaN(s.variance)
		v += s.variance
		if s.freedom > 0 {
			shares += s.variance * s.variance / s.freedom
		}
	}
	if unknown {
		return Interval{known, math.NaN()}, true
	}
	// How far the weights are from what the whole steps say; rows of no slice may be part of that, or not.
	half := min(math.Abs(sliced-sum), math.Abs(weighted-sum))
	if v > 0 {
		half += math.Sqrt(v) * quantile(min(shares/(v*v), 1))
	}
	return Interval{max(known, weighted-half), weighted + half}, true
}

// stratum is what a node has in one.
type stratum struct {
	weighted          float64
	slices            map[*Slice]seen
	total             float64 // that the whole steps say
	variance, freedom float64
}

func (s *stratum) in(r seen) {
	if s.slices == nil {
		s.slices = map[*Slice]seen{}
	}
	at := s.slices[r.slice]
	at.add(r)
	s.slices[r.slice] = at
}

// mean is that of a step of the slice. A slice of parts of steps has the one that its weights say.
func (s *stratum) mean(slice *Slice, whole []seen) (mean float64) {
	if slice.Steps <= 0 {
		return s.slices[slice].weighted / slice.Represented
	}
	for _, r := range whole {
		mean += r.sum
	}
	return mean / float64(slice.Steps)
}

// standsFor is how many steps of the stretch the rows of a slice stand for.
func (s *stratum) standsFor(slice *Slice) float64 {
	if at := s.slices[slice]; !slice.OfSteps && at.rows > 0 {
		return slice.Recorded * at.calls / at.rows
	}
	return slice.Represented
}

// measure is the variance of what the whole steps of the stratum's slices say: between
// neighbouring slices, or between neighbouring steps in them, whichever is larger. A slice that
// stands for itself says nothing about the others, unless those are too few to tell a variance. In
// a time without steps a pause is all of one kind, by the rule of succession.
func (s *stratum) measure(all []*Slice, whole map[*Slice][]seen) {
	others, longest, ofTime := 0, int32(0), false
	for _, slice := range all {
		ofTime = ofTime || slice.OfTime
		if !slice.itself() {
			others, longest = others+1, max(longest, slice.Steps)
		}
	}
	var between, within, spread, passed, before, nBefore float64
	m, pairs := 0, 0.0
	for _, slice := range all {
		mean, stands := s.mean(slice, whole[slice]), s.standsFor(slice)
		s.total += stands * mean
		spread += stands * max(stands-slice.Saw, 0) / slice.Recorded
		passed += max(stands-slice.Saw, 0) * mean
		if slice.itself() && (others > 1 || longest > 1) {
			continue
		}
		if slice.Steps > 0 {
			within += differences(whole[slice], slice.Steps)
			pairs += float64(slice.Steps - 1)
		}
		if m > 0 {
			between += (mean - before) * (mean - before) / (1/slice.Recorded + 1/nBefore)
		}
		before, nBefore, m = mean, slice.Recorded, m+1
	}
	largest := math.NaN()
	if m > 1 {
		largest = between / float64(m-1)
		s.freedom += 2 * float64(m-1) * float64(m-1) / float64(3*m-4)
	}
	if pairs > 0 {
		if w := within / (2 * pairs); !(w <= largest) {
			largest = w
		}
		s.freedom += 2 * pairs * pairs / (3*pairs - 1)
	}
	s.variance = spread * largest
	if ofTime {
		s.variance += float64(m+1) / (1.5 * float64((m+2)*(m+2))) * passed * passed
	}
	if spread == 0 {
		s.variance = 0
	}
}

// differences is the sum of the squares between neighbouring steps; those without a row had none.
func differences(rows []seen, steps int32) (squares float64) {
	at, before := 0, 0.0
	for k := int32(1); k <= steps; k++ {
		y := 0.0
		if at < len(rows) && rows[at].step == k {
			y = rows[at].sum
			at++
		}
		if k > 1 {
			squares += (y - before) * (y - before)
		}
		before = y
	}
	return squares
}

// quantile is the 0.975 quantile of Student's t for one over the degrees of freedom, as the view
// operator_estimate has it: to 2e-5 of itself.
func quantile(x float64) float64 {
	return math.Exp(0.672931 + x*(1.21015+x*(0.707652+x*(0.168213+x*(-0.318298+x*0.101461)))))
}

// with are the slices of two datasets.
func (a *slicing) with(o *slicing) *slicing {
	if a == nil || o == nil {
		if a == nil {
			return o
		}
		return a
	}
	all := &slicing{maps.Clone(a.strata), maps.Clone(a.byID), maps.Clone(a.unseen)}
	for of, s := range o.strata {
		all.strata[of] = slices.Concat(all.strata[of], s)
	}
	maps.Copy(all.byID, o.byID)
	maps.Copy(all.unseen, o.unseen)
	return all
}
