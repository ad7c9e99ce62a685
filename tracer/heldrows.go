package tracer

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
func (d *decoder) place(p *probe, epoch uint32) (s *Span, waits bool) {
	to := &d.spans
	held := d.heldSlice(p, epoch)
	if held != nil {
		to = &held.spans
		held.spanProbe = append(held.spanProbe, p.index)
	}
	*to = append(*to, Span{})
	return &(*to)[len(*to)-1], held != nil
}

// heldSlice returns where a row has to wait, nil when its weight is known.
func (d *decoder) heldSlice(p *probe, epoch uint32) *slice {
	if epoch <= d.released || !d.slicing.Load() || !p.sliced(epoch) {
		return nil
	}
	s, ok := d.held[epoch]
	if !ok {
		s = &slice{}
		d.held[epoch] = s
	}
	return s
}

// release gives the rows of a slice their weights and lets them go. It returns the
// mean weight of each probe's rows.
func (d *decoder) release(epoch uint32, weigh func(slicedRow) float64) map[uint32]float64 {
	d.released = max(d.released, epoch)
	s, ok := d.held[epoch]
	if !ok {
		return nil
	}
	delete(d.held, epoch)
	sums, rows := map[uint32]float64{}, map[uint32]float64{}
	weight := func(r slicedRow) float64 {
		w := weigh(r)
		d.totals.InSlices = d.totals.InSlices || w != 1
		sums[r.probe], rows[r.probe] = sums[r.probe]+w, rows[r.probe]+1
		return w
	}
	for i := range s.spans {
		row := &s.spans[i]
		row.Weight = weight(slicedRow{s.spanProbe[i], row.PID, row.StartNS})
		d.sum(row)
	}
	for i := range s.memory {
		row := &s.memory[i]
		row.Weight = weight(slicedRow{s.memoryProbe[i], row.PID, row.TSNS})
	}
	d.spans = append(d.spans, s.spans...)
	d.memory = append(d.memory, s.memory...)
	for index := range sums {
		sums[index] /= rows[index]
	}
	return sums
}

// releaseAsIs lets the rows of a slice go that stand for themselves alone.
func (d *decoder) releaseAsIs(epoch uint32) {
	d.release(epoch, func(slicedRow) float64 { return 1 })
}
