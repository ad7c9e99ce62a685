package budget

import "time"

// A job that is cheap to record is recorded whole, in slices without pauses between them.

// checkFull goes back to slices when a job that was cheap to record is not any
// more, and puts in what the job has begun to use.
func (g *Governor) checkFull(now time.Time) error {
	if g.budget <= 0 {
		return nil
	}
	if err := g.extend(0); err != nil {
		return err
	}
	every := CheckEvery
	if g.strata.young(now) {
		every = youngCheck
	}
	if now.Sub(g.checked.at) < every {
		return nil
	}
	g.on = g.checked
	m := g.mark()
	rate := g.rate(m)
	if rate > g.allowance() && !g.solvent(m, rate) && !g.awaitsStratum() {
		return g.endSlice()
	}
	g.charge(m, rate)
	g.checked = m
	if rate <= g.allowance() && every == CheckEvery && now.Sub(g.begun) > youngFor {
		room := time.Duration((g.allowance() - rate) * float64(CheckEvery) * float64(g.busyProcesses()))
		if err := g.extend(int(room / (2 * stallPerSite))); err != nil {
			return err
		}
	}
	g.before = g.probes.Hits(g.attached)
	if i := g.ledger.present(); m.at.Sub(i.on.at) >= fullCut {
		g.cut(g.before)
	}
	return nil
}

// charge puts what a job that is recorded whole has cost since the last look into the
// account, and keeps it from saving up for long.
func (g *Governor) charge(m sliceMark, rate float64) {
	g.spent += time.Duration((rate - g.anchors.share() - g.job.SampleShare()) * float64(m.at.Sub(g.checked.at)))
	g.tickJob(m.at)
	most := time.Duration(g.budget * float64(creditOf))
	if owed := time.Duration(g.budget * float64(g.clock.own)); owed-g.spent > most {
		g.spent = owed - most
	}
}

// solvent reports whether what was saved up pays for what a job costs that is recorded
// whole for the moment, though it costs more than the budget.
func (g *Governor) solvent(m sliceMark, rate float64) bool {
	g.tickJob(m.at)
	due := time.Duration(rate * float64(m.at.Sub(g.checked.at)))
	return g.spent+due+2*stallPerSlice < time.Duration(g.budget*float64(g.clock.own))
}

// extend puts in what the job has begun to use since the last look, and as many more
// probes as there is room for. From there on it is another slice: in the one before,
// those calls went unseen.
func (g *Governor) extend(room int) error {
	now := time.Now()
	if room == 0 && now.Sub(g.strata.learnt) < g.learnEvery(now) {
		return nil
	}
	g.strata.learnt = now
	if _, fresh := g.probes.Learn(); len(fresh) > 0 {
		g.strata.fresh = now
	} else if room == 0 {
		return nil
	}
	before := g.probes.Hits(g.attached)
	more, err := g.probes.Extend(g.attached, room)
	if err != nil || len(more) == 0 {
		return err
	}
	g.attached = append(g.attached, more...)
	for index, h := range g.probes.Hits(more) {
		g.before[index] = h
	}
	if g.strata.fresh.Equal(now) {
		g.cut(before)
	}
	return nil
}

// cut ends an interval and begins the next one, with the probes in.
func (g *Governor) cut(counts map[uint32]Hits) {
	m := g.mark()
	g.closeInterval(m, counts, false)
	g.openInterval(m)
}

// closeInterval ends the present interval.
func (g *Governor) closeInterval(off sliceMark, counts map[uint32]Hits, last bool) {
	i := g.ledger.present()
	if i == nil || i.over {
		return
	}
	i.off, i.over, i.last = off, true, last
	i.seen = since(i.before, counts)
	processes := time.Duration(g.busyProcesses())
	i.cost = g.price(i.seen, off.at.Sub(i.on.at)*processes) / processes
	if last {
		i.stall = g.stall()
	}
	i.processes = unite(i.processes, g.job.Processes())
}
