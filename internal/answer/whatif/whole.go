package whatif

import "slices"

// essential are what a worker does in every step that it has at all.
var essential = []OpType{ForwardCompute, BackwardCompute, Optimizer}

// wholeSteps leaves out the steps that a worker has not in whole: a recording that begins
// or ends within a step, or has lost some of a worker's, would be a mean of steps that
// nobody made. A worker lacks what it has in most of its steps. Where no step is whole all stay.
func (t *Trace) wholeSteps() {
	type worker struct{ dp, stage int }
	has := map[worker]map[int64]uint{} // by step: which of essential
	steps := map[int64]bool{}
	for _, o := range t.Ops {
		w := worker{o.DPRank, o.Stage}
		if has[w] == nil {
			has[w] = map[int64]uint{}
		}
		steps[o.Step] = true
		if i := slices.Index(essential, o.Type); i >= 0 {
			has[w][o.Step] |= 1 << i
		} else {
			has[w][o.Step] |= 0 // it is there
		}
	}
	cut := map[int64]bool{}
	for _, mine := range has {
		var usual uint
		for i := range essential {
			n := 0
			for _, bits := range mine {
				n += int(bits >> i & 1)
			}
			if 2*n > len(mine) {
				usual |= 1 << i
			}
		}
		for step := range steps {
			if bits, there := mine[step]; !there || bits&usual != usual {
				cut[step] = true
			}
		}
	}
	if len(cut) == 0 || len(cut) == len(steps) {
		return
	}
	t.Ops = slices.DeleteFunc(t.Ops, func(o Op) bool { return cut[o.Step] })
	t.warn("left out %d of %d steps, which some worker has not in whole", len(cut), len(steps))
}
