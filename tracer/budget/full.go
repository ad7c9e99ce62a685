package budget

import "time"

// A job that is cheap to record is recorded whole, in slices without pauses between them.

// checkFull goes back to slices when a job that was cheap to record is not any
// more, and puts in what the job has begun to use.
func (g *Governor) checkFull(now time.Time) error {
	if g.account.budget <= 0 {
		return nil
	}
	if err := g.extend(0); err != nil {
		return err
	}
	every := CheckEvery
	if g.strata.young(now) {
		every = youngCheck
	}
	if now.Sub(g.checked.At) < every {
		return nil
	}
	g.on = g.checked
	m := g.mark()
	rate := g.rate(m)
	if rate > g.account.allowance() && !g.account.solvent(rate, m.At.Sub(g.checked.At), m.At) && !g.awaitsStratum() {
		return g.end()
	}
	g.account.charge(rate-g.anchors.share()-g.job.SampleShare(), m.At.Sub(g.checked.At), m.At)
	g.checked = m
	if rate <= g.account.allowance() && every == CheckEvery && now.Sub(g.begun) > youngFor {
		room := time.Duration((g.account.allowance() - rate) * float64(CheckEvery) * float64(g.account.busyProcesses()))
		if err := g.extend(int(room / (2 * stallPerSite))); err != nil {
			return err
		}
	}
	g.before = g.probes.Hits(g.attached)
	if m.At.Sub(g.interval.on.At) >= fullCut {
		g.cut(g.before)
	}
	return nil
}
