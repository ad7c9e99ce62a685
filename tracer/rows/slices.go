package rows

import (
	"math"
	"sync/atomic"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// Slices hold the rows of slices until it is known how many calls each of them stands for.
type Slices struct {
	batch *Batch
	sums  *Sums
	// on is set by the manager, whose governor begins and ends the slices, and read by the
	// decoder for every record.
	on    atomic.Bool
	held  map[uint32]*slice          // by epoch
	known map[uint32]weights.Weigher // of the last epochs that are over
}

// slice holds the rows of one epoch, and which probe each is of.
type slice struct {
	spans       []event.Span
	spanProbe   []uint32
	memory      []memoryRow
	memoryProbe []uint32
}

const (
	// WholeEpoch is behind the last row of an epoch.
	WholeEpoch = math.MaxInt64
	// lateEpochs is for how many epochs that are over the weights are kept: a row may
	// come late.
	lateEpochs = 4
)

// Hold says whether rows of sliced probes are held from now on. It may be called from
// anywhere.
func (s *Slices) Hold(on bool) { s.on.Store(on) }

// On reports whether they are.
func (s *Slices) On() bool { return s.on.Load() }

// HoldSpan adds a span of a probe whose weight is not known yet.
func (s *Slices) HoldSpan(p *probetable.Probe, epoch uint32, span *event.Span) {
	of := s.of(epoch)
	of.spans, of.spanProbe = append(of.spans, *span), append(of.spanProbe, p.Index)
}

// Memory adds a row of memory of a probe.
func (s *Slices) Memory(p *probetable.Probe, epoch uint32, m event.Memory, stack uint64) {
	if !s.Holds(p, epoch) {
		s.batch.Memory(m, stack)
		return
	}
	s.batch.noteMemory(&m)
	of := s.of(epoch)
	of.memory, of.memoryProbe = append(of.memory, memoryRow{m, stack}), append(of.memoryProbe, p.Index)
}

// Holds reports whether the weight of a probe's row is not known yet.
func (s *Slices) Holds(p *probetable.Probe, epoch uint32) bool { return s.on.Load() && p.Sliced(epoch) }

func (s *Slices) of(epoch uint32) *slice {
	held, ok := s.held[epoch]
	if !ok {
		held = &slice{}
		s.held[epoch] = held
	}
	return held
}

// WeighLate gives rows their weights that came after those of their epoch were known.
func (s *Slices) WeighLate() {
	for epoch := range s.held {
		if weigh := s.known[epoch]; weigh != nil {
			s.Weigh(epoch, WholeEpoch, weigh)
		}
	}
}

// WeighRest lets go of whatever is held at the end of a recording; rows of unknown weight
// stand for themselves.
func (s *Slices) WeighRest() {
	s.WeighLate()
	for epoch := range s.held {
		s.Weigh(epoch, WholeEpoch, func(uint32, int32, int64) weights.Share { return weights.Share{Weight: 1} })
	}
}

// Weigh gives the rows of an epoch that began before a time their weights and puts them
// into the batch. It returns the mean weight of each probe's rows.
func (s *Slices) Weigh(epoch uint32, before int64, weigh weights.Weigher) map[uint32]float64 {
	if before == WholeEpoch {
		s.known[epoch] = weigh
		delete(s.known, epoch-lateEpochs)
	}
	of, ok := s.held[epoch]
	if !ok {
		return nil
	}
	sums, rows := map[uint32]float64{}, map[uint32]float64{}
	share := func(probe uint32, pid int32, at int64) weights.Share {
		w := weigh(probe, pid, at)
		s.sums.Totals.InSlices = s.sums.Totals.InSlices || w.Weight != 1
		sums[probe], rows[probe] = sums[probe]+w.Weight, rows[probe]+1
		return w
	}
	kept := 0
	for i := range of.spans {
		row := &of.spans[i]
		if row.StartNS >= before {
			of.spans[kept], of.spanProbe[kept] = *row, of.spanProbe[i]
			kept++
			continue
		}
		w := share(of.spanProbe[i], row.PID, row.StartNS)
		row.Weight, row.SliceID, row.SliceStep = w.Weight, w.Slice, w.Step
		s.sums.Add(row)
		s.batch.Span(*row)
	}
	clear(of.spans[kept:])
	of.spans, of.spanProbe = of.spans[:kept], of.spanProbe[:kept]
	kept = 0
	for i := range of.memory {
		row := &of.memory[i]
		if row.TSNS >= before {
			of.memory[kept], of.memoryProbe[kept] = *row, of.memoryProbe[i]
			kept++
			continue
		}
		w := share(of.memoryProbe[i], row.PID, row.TSNS)
		row.Weight, row.SliceID, row.SliceStep = w.Weight, w.Slice, w.Step
		s.batch.memory = append(s.batch.memory, *row)
	}
	clear(of.memory[kept:])
	of.memory, of.memoryProbe = of.memory[:kept], of.memoryProbe[:kept]
	if before == WholeEpoch && len(of.spans)+len(of.memory) == 0 {
		delete(s.held, epoch)
	}
	for index := range sums {
		sums[index] /= rows[index]
	}
	return sums
}
