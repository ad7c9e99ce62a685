package holders

import (
	"cmp"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
)

// Growth is a line whose live bytes rise from step to step.
type Growth struct {
	Line string `json:"line"`
	// Kind is leak (blocks that are not freed again while steps go on) or growth (what is freed comes
	// back larger, or more of it).
	Kind string `json:"kind"`
	// BytesPerStep is the slope of a least-squares line through the live bytes at
	// the ends of the steps, and its 95 % interval.
	BytesPerStep   float64 `json:"bytes_per_step"`
	BytesPerStepLo float64 `json:"bytes_per_step_lo"`
	BytesPerStepHi float64 `json:"bytes_per_step_hi"`
	// Confidence is high where live bytes rose in nine of ten steps, else medium.
	Confidence string `json:"confidence"`
	Steps      int    `json:"steps"`
	First      int64  `json:"first_bytes"`
	Last       int64  `json:"last_bytes"`
	Blocks     int    `json:"blocks"` // live at the end
}

// fewestSteps is how many instants a slope needs.
const fewestSteps = 5

// leastSlope is a byte a step: a counter that is a byte longer now and then is no leak.
const leastSlope = 1

// Growths are the lines whose live bytes rise over some instants, the ends of
// steps, the steepest first. The first fifth of the instants, at most five, is
// left out: caches and optimizer state come to be there.
func (c *Context) Growths(all []blocks.Block, instants []int64) []Growth {
	if len(instants) < fewestSteps+1 {
		return nil
	}
	instants = instants[min(len(instants)/5, 5):]
	if len(instants) < fewestSteps {
		return nil
	}
	type series struct {
		change       []int64 // of live bytes at an instant
		freed, kept  int64   // bytes of blocks that began after the first instant
		blocksAtLast int
	}
	lines := map[string]*series{}
	for i := range all {
		b := &all[i]
		// The instants that the block lives at: from ≤ k < to.
		from, _ := slices.BinarySearch(instants, b.BornNS)
		to := len(instants)
		if b.Died != blocks.Alive {
			to, _ = slices.BinarySearch(instants, b.DiedNS)
		}
		if from >= to {
			continue
		}
		line := c.Line(b)
		s := lines[line]
		if s == nil {
			s = &series{change: make([]int64, len(instants)+1)}
			lines[line] = s
		}
		s.change[from] += b.Bytes
		s.change[to] -= b.Bytes
		if to == len(instants) {
			s.blocksAtLast++
		}
		if from > 0 {
			// What is there at the last instant was kept; at exit everything is freed.
			if to == len(instants) {
				s.kept += b.Bytes
			} else {
				s.freed += b.Bytes
			}
		}
	}
	var found []Growth
	for line, s := range lines {
		live, rises := make([]float64, len(instants)), 0
		var sum int64
		for k := range live {
			sum += s.change[k]
			live[k] = float64(sum)
			if k > 0 && live[k] > live[k-1] {
				rises++
			}
		}
		slope, reach := slopeOf(live)
		// A slope counts if it is not noise, and amounts to something.
		if slope-reach <= 0 || slope < leastSlope || live[len(live)-1]-live[0] < 0.05*live[0] || rises < 2 {
			continue
		}
		g := Growth{Line: line, Kind: "growth", BytesPerStep: slope, BytesPerStepLo: slope - reach, BytesPerStepHi: slope + reach,
			Confidence: "medium", Steps: len(instants), First: int64(live[0]), Last: int64(live[len(live)-1]), Blocks: s.blocksAtLast}
		if s.kept >= 9*s.freed {
			g.Kind = "leak"
		}
		if 10*rises >= 9*(len(live)-1) {
			g.Confidence = "high"
		}
		found = append(found, g)
	}
	slices.SortFunc(found, func(a, b Growth) int {
		return cmp.Or(cmp.Compare(b.BytesPerStep, a.BytesPerStep), cmp.Compare(a.Line, b.Line))
	})
	return found
}

// slopeOf is the least-squares slope of equidistant values and how far its 95 %
// interval reaches to either side.
func slopeOf(values []float64) (slope, reach float64) {
	n := float64(len(values))
	var mean float64
	for _, v := range values {
		mean += v / n
	}
	middle := (n - 1) / 2
	var xx, xy float64
	for k, v := range values {
		xx += (float64(k) - middle) * (float64(k) - middle)
		xy += (float64(k) - middle) * (v - mean)
	}
	slope = xy / xx
	var residual float64
	for k, v := range values {
		d := v - mean - slope*(float64(k)-middle)
		residual += d * d
	}
	return slope, studentT(len(values)-2) * math.Sqrt(residual/(n-2)/xx)
}

// studentT is the 97.5 % point of Student's distribution, from its expansion
// around the normal's (Abramowitz and Stegun 26.7.5), within 1 % from 3 degrees
// of freedom on.
func studentT(freedom int) float64 {
	const z = 1.959964
	v := float64(freedom)
	return z + (z*z*z+z)/(4*v) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*v*v) +
		(3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*v*v*v)
}
