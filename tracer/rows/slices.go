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
	rows  int                        // in them
	most  int                        // of these
	known map[uint32]weights.Weigher // of the last epochs that are over
	// Lost are the rows for which there was no room.
	Lost uint64
}

// slice holds the rows of one epoch.
type slice struct {
	spans  waiting[event.Span]
	memory waiting[memoryRow]
}

const (
	// WholeEpoch is behind the last row of an epoch.
	WholeEpoch = math.MaxInt64
	// lateEpochs is for how many epochs that are over the weights are kept: a row may
	// come late.
	lateEpochs = 4
	// mostHeld bounds the rows that wait, of all processes and slices: 150 MB of spans without a
	// detail. A slice lasts while its hits cost each process a quarter of a second: of many
	// processes with cheap calls these are millions.
	mostHeld = 1 << 20
)

// Hold says whether rows of sliced probes are held from now on. It may be called from
// anywhere.
func (s *Slices) Hold(on bool) { s.on.Store(on) }

// On reports whether they are.
func (s *Slices) On() bool { return s.on.Load() }

// HoldSpan adds a span of a probe whose weight is not known yet.
func (s *Slices) HoldSpan(p *probetable.Probe, epoch uint32, span *event.Span) {
	if s.takes() {
		s.of(epoch).spans.add(span, p.Index)
	}
}

// Memory adds a row of memory of a probe.
func (s *Slices) Memory(p *probetable.Probe, epoch uint32, m event.Memory, stack uint64) {
	if !s.Holds(p, epoch) {
		s.batch.Memory(m, stack)
		return
	}
	s.batch.noteMemory(&m)
	if s.takes() {
		s.of(epoch).memory.add(&memoryRow{m, stack}, p.Index)
	}
}

// takes makes room for a row, or counts it as lost.
func (s *Slices) takes() bool {
	if s.rows >= s.most {
		s.Lost++
		return false
	}
	s.rows++
	return true
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
	of.spans.each(func(row *event.Span, probe uint32) (keep bool) {
		if row.StartNS >= before {
			return true
		}
		w := share(probe, row.PID, row.StartNS)
		row.Weight, row.SliceID, row.SliceStep = w.Weight, w.Slice, w.Step
		s.sums.Add(row)
		s.batch.AddSpan(row)
		s.gone()
		return false
	})
	of.memory.each(func(row *memoryRow, probe uint32) (keep bool) {
		if row.TSNS >= before {
			return true
		}
		w := share(probe, row.PID, row.TSNS)
		row.Weight, row.SliceID, row.SliceStep = w.Weight, w.Slice, w.Step
		s.batch.memory = append(s.batch.memory, *row)
		s.gone()
		return false
	})
	if before == WholeEpoch {
		delete(s.held, epoch)
	}
	for index := range sums {
		sums[index] /= rows[index]
	}
	return sums
}

// gone notes that a row is in the batch. That goes to the sink as it fills: a slice may have
// hundreds of thousands of rows, and has them once. What their stacks are has been read with
// the calls (Decoder.Flush).
func (s *Slices) gone() {
	s.rows--
	if s.batch.Full() {
		s.batch.out.Keep(s.batch.Flush())
	}
}
