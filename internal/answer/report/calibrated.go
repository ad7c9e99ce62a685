package report

import (
	"database/sql"
	"fmt"
	"math"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/calibration"
	"github.com/ebpfprof/ebpfprof/internal/model/calltree"
)

// mostNoted bounds the steps of slices that are remembered of operators, 72 bytes each: beyond it times are not calibrated.
const mostNoted = 2 << 20

// Of a probe's hit four tenths lie inside of the call that it is of, the rest in the one around it (docs/findings.md).
const (
	hitsOfACall = 2
	hitInside   = 0.4
)

// readSlices reads what estimates from slices need, of whole recordings.
func (s *sweep) readSlices(b *builder) (err error) {
	o := b.options
	if !b.weighted || o.Rank != nil || o.FromMS != nil || o.ToMS != nil || b.devicesLead() {
		return nil
	}
	if s.slices, err = calltree.ReadSlices(b.ctx, b.db); err != nil || s.slices == nil {
		return err
	}
	var price sql.NullFloat64
	err = b.db.Row(b.ctx, "SELECT sum(overhead_ns) / sum(hits)::DOUBLE FROM session WHERE hits > 0 AND overhead_ns > 0", nil, &price)
	s.price = price.Float64
	return err
}

// locate finds the path and the slice of a row.
func (s *sweep) locate(b *dataset.Batch, i int, o *opened) {
	if s.slices == nil {
		return
	}
	key := uint64(o.path)<<32 | uint64(o.of.index)
	path, known := s.pathOf[key]
	if !known {
		path = int32(len(s.paths))
		s.paths = append(s.paths, sweptPath{around: o.path, of: o.of})
		s.pathOf[key] = path
	}
	o.path = path
	if id := b.Columns[sweptSlice][i]; id != dataset.Absent {
		o.slice = s.slices.At(b.Text(b.Columns[sweptSession][i]), id)
		if step := b.Columns[sweptStep][i]; step != dataset.Absent {
			o.step = int32(step)
		}
	}
}

// noteOwn counts a row's exclusive time, less what the probes took of it.
func (s *sweep) noteOwn(o *opened, self float64) {
	if s.slices == nil {
		return
	}
	self = max(0, self-s.price*hitsOfACall*(hitInside+(1-hitInside)*float64(o.inner)))
	s.paths[o.path].selfNS += self * o.weight
	sum := &o.of.own
	if group := o.of.Layer; group != "op" { // samples do not tell backward nodes and collectives apart
		if s.groups[group] == nil {
			s.groups[group] = &calltree.Sum{}
		}
		sum = s.groups[group]
		o.of.own.Value += self * o.weight
	}
	if s.noted += sum.Add(o.slice, o.step, self, o.weight); s.noted > mostNoted {
		s.slices = nil
	}
}

// leastAgreement is in which part of the samples inside of slices the stack and the open row must name the same operator,
// and fewestAgreeing how many samples show that.
const (
	leastAgreement = 0.95
	fewestAgreeing = 20
	mostAgreeing   = 20_000
	agreementQuery = `WITH known AS (SELECT stack_id, list_filter(frames, lambda f: f.kind = 'op')[1]."function" AS op FROM stack),
		inside AS (SELECT span_id, stack_id FROM sample WHERE state = 'on_cpu' AND span_id > 0 AND stack_id IS NOT NULL
			ORDER BY hash(ts_ns) LIMIT %d)
		SELECT count(*), count(*) FILTER (op = name) FROM inside JOIN known USING (stack_id) JOIN span USING (span_id)
		WHERE layer = 'op' AND slice_id IS NOT NULL`
)

// calibrateOperators replaces estimated times from slices by those that samples calibrate; false where they cannot.
func (b *builder) calibrateOperators() (bool, error) {
	s, shares := b.swept, b.report.Shares
	if s == nil || s.slices == nil || shares == nil || shares.PeriodNS <= 0 || len(b.report.Launches) > 0 {
		return false, nil
	}
	var samples, agree float64
	if err := b.db.Row(b.ctx, fmt.Sprintf(agreementQuery, mostAgreeing), nil, &samples, &agree); err != nil {
		return false, err
	}
	b.report.Calibration = &Calibration{Samples: samples, Agree: agree}
	if samples >= fewestAgreeing && agree < leastAgreement*samples {
		return false, nil
	}
	own, disagree := s.calibrate(shares.Sampled, shares.PeriodNS)
	b.report.Calibration.Applied, b.report.Calibration.Disagree = true, disagree
	s.apply(b.report.Operators, own)
	return true, nil
}

// exclusive is the calibrated exclusive time of an operator, against what its rows add up to.
type exclusive struct{ factor, variance float64 }

// calibrate computes by what each operator's exclusive time is to be multiplied. The sampled times are by operator, of
// backward passes and collectives outside of operators by their layer, and of the rest by "".
func (s *sweep) calibrate(sampled map[string]float64, period float64) (own []exclusive, disagree int) {
	rows, of, total := []calibration.Row{}, [][]*hosted{}, 0.0
	for _, ns := range sampled {
		total += ns
	}
	left := total
	add := func(key string, sum *calltree.Sum, estimated bool, members ...*hosted) {
		row := calibration.Row{Sampled: sampled[key], Sliced: sum.Value, Seen: sum.Rows}
		if row.Variance, row.Slices = s.slices.Variance(sum); !estimated {
			row.Slices = 2 // all calls were recorded
		}
		left -= row.Sampled
		rows, of = append(rows, row), append(of, members)
	}
	grouped := map[string][]*hosted{}
	for _, h := range s.operators {
		if h.Layer == "op" {
			add(h.Name, &h.own, h.Estimated, h)
		} else {
			grouped[h.Layer] = append(grouped[h.Layer], h)
		}
	}
	for _, layer := range []string{"autograd", "collective"} {
		if sum := s.groups[layer]; sum != nil {
			add(layer, sum, true, grouped[layer]...)
		}
	}
	rows, of = append(rows, calibration.Row{Sampled: max(left, 0)}), append(of, nil)
	own = make([]exclusive, len(s.operators))
	for i, e := range calibration.Calibrate(rows, period, total) {
		if len(of[i]) > 0 && e.Disagrees {
			disagree++
		}
		for _, h := range of[i] {
			if part := h.own.Value; rows[i].Sliced > 0 {
				share := part / rows[i].Sliced
				own[h.index] = exclusive{e.NS / rows[i].Sliced, e.Variance() * share * share}
			}
		}
	}
	return own, disagree
}

// apply makes the operators' times sums of exclusive ones: a total is that of all operators in it.
func (s *sweep) apply(operators []Operator, own []exclusive) {
	type below struct{ above, in int }
	total, self, parts := make([]float64, len(own)), make([]float64, len(own)), map[below]float64{}
	for at := range s.paths {
		p := &s.paths[at]
		if p.of == nil || p.selfNS == 0 {
			continue
		}
		ns := p.selfNS * own[p.of.index].factor
		self[p.of.index] += ns
		seen := map[int]bool{}
		for above := int32(at); above != 0; above = s.paths[above].around {
			if i := s.paths[above].of.index; !seen[i] {
				seen[i] = true
				total[i] += ns
				parts[below{i, p.of.index}] += p.selfNS
			}
		}
	}
	variance := make([]float64, len(own))
	for k, ns := range parts {
		if value := s.operators[k.in].own.Value; value > 0 {
			variance[k.above] += own[k.in].variance * math.Pow(ns/value, 2)
		}
	}
	for i := range operators {
		o := &operators[i]
		at := s.byName[o.Name].index
		o.TotalMS, o.SelfMS = total[at]/1e6, self[at]/1e6
		reach := 1.96 * math.Sqrt(variance[at])
		lo, hi := max(0, total[at]-reach)/1e6, (total[at]+reach)/1e6
		o.TotalLoMS, o.TotalHiMS = &lo, &hi
	}
}
