package evidence

import (
	"cmp"
	"database/sql"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// Probes is what the tracer's own probes make of the replayed steps, and what is taken off
// their times for that: the answers are about the job without them.
type Probes struct {
	// HitNS is what a pass of a probe costs, LowNS and HighNS its bounds; 0 where the
	// recording does not say, or was not ours.
	HitNS, LowNS, HighNS float64
	HitsPerStep          float64 // on the training thread
	// Scale is what all times are multiplied with after that, where steps between slices are
	// shorter still; 1 is nothing.
	Scale float64
}

const (
	// fewOthers is how many steps outside of slices say how long a step is without
	// the probes of operators.
	fewOthers = 5
	// mostPrices is how many times the price that the recording names a hit may cost: what
	// makes the steps in slices longer than that is something else.
	mostPrices = 4
	// fewGraphs are enough steps to see how short segments are.
	fewGraphs = 50
	// offBy is how far the price may be off where no steps without probes are there to
	// measure it: between jobs a hit differs by as much (docs/overhead-appendix.md).
	offBy = 1.5
)

// undisturbed finds what the probes cost the replayed steps. Where other steps of the recording
// ran without them, a hit costs what makes the steps with them as long as these; else what
// the recording says. Short calls lose more of their time to that than long ones: it is taken
// off where the hits were, and not in equal shares.
func (r *Recording) undisturbed() error {
	r.Probes.Scale = 1
	usual, low, high, known := betweenSlices(r.Thread)
	price, err := r.price()
	if err != nil {
		return err
	}
	if price > 0 && len(r.Graphs) > 0 {
		r.Probes.HitsPerStep = r.hitsPerStep()
		if limit := min(mostPrices*price, r.shortest()); known {
			r.Probes.HitNS, r.Probes.LowNS, r.Probes.HighNS = r.hitFor(usual, limit), r.hitFor(high, limit), r.hitFor(low, limit)
		} else {
			r.Probes.HitNS, r.Probes.LowNS, r.Probes.HighNS = min(price, limit), min(price/offBy, limit), min(price*offBy, limit)
		}
	}
	r.bases, r.Undone = r.without(r.Probes.HitNS)
	if known {
		if median := steps.Median(whole(r.Undone)); median > 0 {
			r.Probes.Scale = min(1, usual/median)
		}
	}
	return nil
}

// price is what the recording estimates for a pass of a probe in ns; 0 where it does not.
func (r *Recording) price() (float64, error) {
	var price sql.NullFloat64
	err := r.DB.Row(r.Ctx, `SELECT sum(overhead_ns) / nullif(sum(hits), 0)::DOUBLE FROM session
		WHERE source = 'recorded' AND hits > 0 AND overhead_ns > 0`, nil, &price)
	return price.Float64, err
}

// betweenSlices is the median period of the steps that have not all their rows nor touch a slice, with a 95 %
// interval by their order.
func betweenSlices(t timeline.Thread) (median, low, high float64, known bool) {
	var other []int64
	for _, s := range Loop(t) {
		if !s.Whole && !s.Sliced {
			other = append(other, s.Period)
		}
	}
	n := len(other)
	if n < fewOthers {
		return 0, 0, 0, false
	}
	slices.Sort(other)
	aside := 0.98 * math.Sqrt(float64(n))
	at := func(i float64) float64 { return float64(other[max(0, min(int(i), n-1))]) }
	return steps.Median(other), at(math.Floor(float64(n)/2 - aside)), at(math.Ceil(float64(n)/2 + aside)), true
}

// shortest is how long the shortest kinds of segments are for each hit in them, in ns, by their
// medians, fewer than one in twenty being of shorter kinds: a hit costs no more than that on
// average, whatever else makes the steps longer. The shortest segments of all are those whose
// hits found everything in the caches, which few do.
func (r *Recording) shortest() float64 {
	type kind struct {
		name string
		hits float64
	}
	kinds, total := map[kind][]float64{}, 0
	for _, g := range r.Graphs[:min(len(r.Graphs), fewGraphs)] {
		for n, s := range g.Segments {
			if s.Device || s.TID != r.Thread.TID || g.Hits[n] < 1 {
				continue
			}
			k := kind{hits: math.Round(10 * g.Hits[n])}
			if s.Span >= 0 {
				k.name = g.Spans[s.Span].Name
			}
			kinds[k] = append(kinds[k], g.Times.Own[n]/g.Hits[n])
			total++
		}
	}
	type median struct {
		ns    float64
		count int
	}
	var all []median
	for _, of := range kinds {
		slices.Sort(of)
		all = append(all, median{max(of[len(of)/2], 0), len(of)})
	}
	slices.SortFunc(all, func(a, b median) int { return cmp.Compare(a.ns, b.ns) })
	seen := 0
	for _, m := range all {
		if seen += m.count; 20*seen >= total {
			return m.ns
		}
	}
	return math.Inf(1)
}

// hitFor is what a hit costs if the steps are as long as period (ns) without them.
func (r *Recording) hitFor(period, limit float64) float64 {
	low, high := 0.0, limit
	for range 30 {
		middle := (low + high) / 2
		if r.medianWithout(middle) > period {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// medianWithout is the steps' median period if a hit cost that many ns. Nothing is replayed:
// what is taken off the training thread's own time is off the step.
func (r *Recording) medianWithout(hit float64) float64 {
	periods := make([]int64, len(r.Graphs))
	for i, g := range r.Graphs {
		period := r.Periods[i]
		for n, s := range g.Segments {
			if !s.Device && s.TID == r.Thread.TID {
				period -= OffOf(g, n, hit)
			}
		}
		periods[i] = int64(period)
	}
	return steps.Median(periods)
}

// OffOf is what the hits of a segment took of its own time.
func OffOf(g *timeline.StepGraph, n int, hit float64) float64 {
	return min(max(g.Times.Own[n], 0), g.Hits[n]*hit)
}

func (r *Recording) hitsPerStep() float64 {
	sum := 0.0
	for _, g := range r.Graphs {
		for n, s := range g.Segments {
			if !s.Device && s.TID == r.Thread.TID {
				sum += g.Hits[n]
			}
		}
	}
	return sum / float64(len(r.Graphs))
}

// without are the steps' times if a hit had cost nothing, and how long the steps were then.
func (r *Recording) without(hit float64) (bases []graph.Times, periods []float64) {
	for i, g := range r.Graphs {
		if hit <= 0 {
			bases, periods = append(bases, g.Times), append(periods, r.Periods[i])
			continue
		}
		t := g.Times.Clone()
		for n := range g.Segments {
			t.Own[n] -= OffOf(g, n, hit)
		}
		bases, periods = append(bases, t), append(periods, g.Graph.Replay(t).Last())
	}
	return bases, periods
}

// Lasted is how long a call took without the probes in it, in ns.
func (r *Recording) Lasted(g *timeline.StepGraph, span int) float64 {
	ns := float64(Duration(g, span))
	if r.Probes.HitNS > 0 {
		for _, n := range g.Under(span) {
			if !g.Segments[n].Device {
				ns -= OffOf(g, n, r.Probes.HitNS)
			}
		}
	}
	return max(ns, 0)
}

// MeanUndone is the mean period of the replayed steps without what the probes cost, in ns.
func (r *Recording) MeanUndone() float64 { return r.Probes.Scale * steps.Mean(r.Undone) }

// Differences are how much shorter the steps would be with what the candidate replaces, if a
// hit cost that many ns.
func (r *Recording) Differences(c Candidate, hit float64) (all []float64) {
	if c.Together != nil {
		return r.differencesTogether(c, hit)
	}
	bases, periods := r.bases, r.Undone
	if hit != r.Probes.HitNS {
		bases, periods = r.without(hit)
	}
	for i, g := range r.Graphs {
		times := bases[i].Clone()
		times.Free = map[int]bool{}
		c.Replace(g, times)
		all = append(all, r.Probes.Scale*(periods[i]-g.Graph.Replay(times).Last()))
	}
	return all
}

// differencesTogether are those of the looked-at rank's step, where all ranks are replayed.
func (r *Recording) differencesTogether(c Candidate, hit float64) (all []float64) {
	joined, _ := r.Joined() // without an error: the rule that set Together has called it
	for _, j := range joined {
		times := JoinedWithout(j, hit)
		before := j.End(j.Graph.Replay(times), 0)
		times.Free = map[int]bool{}
		c.Together(j, times)
		all = append(all, r.Probes.Scale*(before-j.End(j.Graph.Replay(times), 0)))
	}
	return all
}

// JoinedWithout are the times of the ranks' steps if a hit had cost nothing.
func JoinedWithout(j *timeline.RanksGraph, hit float64) graph.Times {
	t := j.Times.Clone()
	for i, g := range j.Parts {
		own := t.Own[j.First[i]:]
		for n := range g.Segments {
			own[n] -= min(max(own[n], 0), g.Hits[n]*hit)
		}
	}
	return t
}

// Bounded widens a headroom by what is not known about the cost of a hit.
func (r *Recording) Bounded(h Headroom, c Candidate) Headroom {
	for _, hit := range []float64{r.Probes.LowNS, r.Probes.HighNS} {
		if hit == r.Probes.HitNS || r.Probes.HitNS == 0 {
			continue
		}
		moved := steps.Mean(r.Differences(c, hit)) - h.NS
		h.LowNS, h.HighNS = h.LowNS+min(moved, 0), h.HighNS+max(moved, 0)
	}
	return h
}

func whole(periods []float64) []int64 {
	all := make([]int64, len(periods))
	for i, p := range periods {
		all[i] = int64(p)
	}
	return all
}

// WriteText says what was taken off, where it is worth a line.
func (p Probes) WriteText(out io.Writer) {
	if p.HitNS > 0 && p.HitsPerStep > 0 {
		fmt.Fprintf(out, "times exclude the tracer's probes: %.0f hits a step at %.0f ns (%.0f to %.0f) are subtracted where they occurred\n",
			p.HitsPerStep, p.HitNS, p.LowNS, p.HighNS)
	}
	if p.Scale < 0.95 {
		fmt.Fprintf(out, "times are those of steps between slices: something else made the replayed ones %.1f times longer\n", 1/p.Scale)
	}
}
