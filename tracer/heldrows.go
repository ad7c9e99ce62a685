package tracer

import (
	"math"

	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
)

// What waits until it is known how many calls it stands for.

// slice holds the rows of one attached interval until it is known how many
// calls each of them stands for.
type slice struct {
	spans       []Span
	spanProbe   []uint32
	memory      []memoryRow
	memoryProbe []uint32
}

// place is where the probe's next span goes, and whether it waits there for its
// weight. It is written where it stays: a span is large, and a million come a
// second.
func (d *decoder) place(p *probetable.Probe, epoch uint32) (s *Span, waits bool) {
	to := &d.spans
	held := d.heldSlice(p, epoch)
	if held != nil {
		to = &held.spans
		held.spanProbe = append(held.spanProbe, p.Index)
	}
	*to = append(*to, Span{})
	return &(*to)[len(*to)-1], held != nil
}

// heldSlice returns where a row has to wait, nil when its weight is known.
func (d *decoder) heldSlice(p *probetable.Probe, epoch uint32) *slice {
	if !d.slicing.Load() || !p.Sliced(epoch) {
		return nil
	}
	s, ok := d.held[epoch]
	if !ok {
		s = &slice{}
		d.held[epoch] = s
	}
	return s
}

const (
	// wholeEpoch is behind the last row of an epoch.
	wholeEpoch = math.MaxInt64
	// lateEpochs is for how many epochs that are over the weights are kept: a row may
	// come late.
	lateEpochs = 4
)

// releaseLate lets go of what came late, and at the end of whatever waits.
func (d *decoder) releaseLate(end bool) {
	for epoch := range d.held {
		if weigh := d.over[epoch]; weigh != nil {
			d.release(epoch, wholeEpoch, weigh)
		} else if end {
			d.release(epoch, wholeEpoch, func(uint32, int32, int64) budget.Share { return budget.Share{Weight: 1} })
		}
	}
}

// release gives the rows of an epoch that began before a time their weights and lets
// them go. It returns the mean weight of each probe's rows.
func (d *decoder) release(epoch uint32, before int64, weigh budget.Weigher) map[uint32]float64 {
	if before == wholeEpoch {
		d.over[epoch] = weigh
		delete(d.over, epoch-lateEpochs)
	}
	s, ok := d.held[epoch]
	if !ok {
		return nil
	}
	sums, rows := map[uint32]float64{}, map[uint32]float64{}
	share := func(probe uint32, pid int32, at int64) budget.Share {
		w := weigh(probe, pid, at)
		d.totals.InSlices = d.totals.InSlices || w.Weight != 1
		sums[probe], rows[probe] = sums[probe]+w.Weight, rows[probe]+1
		return w
	}
	kept := 0
	for i := range s.spans {
		row := &s.spans[i]
		if row.StartNS >= before {
			s.spans[kept], s.spanProbe[kept] = *row, s.spanProbe[i]
			kept++
			continue
		}
		w := share(s.spanProbe[i], row.PID, row.StartNS)
		row.Weight, row.SliceID, row.SliceStep = w.Weight, w.Slice, w.Step
		d.sum(row)
		d.spans = append(d.spans, *row)
	}
	clear(s.spans[kept:])
	s.spans, s.spanProbe = s.spans[:kept], s.spanProbe[:kept]
	kept = 0
	for i := range s.memory {
		row := &s.memory[i]
		if row.TSNS >= before {
			s.memory[kept], s.memoryProbe[kept] = *row, s.memoryProbe[i]
			kept++
			continue
		}
		w := share(s.memoryProbe[i], row.PID, row.TSNS)
		row.Weight, row.SliceID, row.SliceStep = w.Weight, w.Slice, w.Step
		d.memory = append(d.memory, *row)
	}
	clear(s.memory[kept:])
	s.memory, s.memoryProbe = s.memory[:kept], s.memoryProbe[:kept]
	if before == wholeEpoch && len(s.spans)+len(s.memory) == 0 {
		delete(d.held, epoch)
	}
	for index := range sums {
		sums[index] /= rows[index]
	}
	return sums
}
