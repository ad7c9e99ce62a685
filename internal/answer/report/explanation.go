package report

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/explain"
)

// explanations computes the verdict from samples. Without enough of them, and of an import, spans have to do.
func (b *builder) explanations() error {
	if b.imported || b.samples == 0 && !b.standing() {
		return nil
	}
	in := explain.Inputs{Loops: b.loops, Findings: b.report.Findings, OutOfMemory: b.report.ranOut(), Memory: b.memories}
	if rank := b.options.Rank; rank != nil {
		in.Loops = nil
		for _, t := range b.loops {
			if t.Rank != nil && *t.Rank == *rank {
				in.Loops = append(in.Loops, t)
			}
		}
	}
	if s := b.report.Steps; s != nil {
		in.StepMS = s.MeanMS
	}
	if b.stood != nil {
		in.Standing = b.stood.Standing
	}
	if h := b.report.Hang; h != nil {
		in.Hang = strings.Join(h.Sentences(b.report.leastWait()), "; ") + "."
	}
	defer b.stands()
	v, err := explain.Run(b.ctx, b.db, in)
	if err != nil || v == nil {
		return err
	}
	b.explained = v
	b.report.Explanations = append(b.report.Explanations, v.Explanations...)
	b.report.Shares = v.Shares
	b.phasesFromSamples()
	calibrated, err := b.calibrateOperators()
	if err == nil && !calibrated {
		b.closeOperators()
	}
	return errors.Join(err, b.countUnseen())
}

// closeOperators is for recordings whose samples do not show operators well enough to calibrate them. It shortens the
// operators' estimated times to what samples show of all of them together: slices that happen to see more than their
// share add up to more time than there was. All are shortened alike, so that none exceeds its caller; calls stay as they are.
func (b *builder) closeOperators() {
	o := b.options
	if o.Rank != nil || o.FromMS != nil || o.ToMS != nil || !b.weighted {
		return
	}
	own := 0.0
	for _, op := range b.report.Operators {
		own += op.SelfMS
	}
	seen := b.report.Shares.OperatorsMS
	if seen <= 0 || own <= seen {
		return
	}
	factor := seen / own
	shorten := func(ms *float64) {
		if ms != nil {
			*ms *= factor
		}
	}
	for i := range b.report.Operators {
		op := &b.report.Operators[i]
		op.SelfMS, op.TotalMS = op.SelfMS*factor, op.TotalMS*factor
		shorten(op.TotalLoMS)
		shorten(op.TotalHiMS)
	}
	b.report.OperatorsClosed = factor
}

// phasesFromSamples divides the time as samples show it: they cover all of the recording, spans under a budget slices of
// it alone. In a step a phase has its share of the mean period.
func (b *builder) phasesFromSamples() {
	s := b.report.Shares
	if s == nil {
		return
	}
	b.report.Phases = b.report.Phases[:0]
	for _, p := range s.Phases {
		phase := Phase{Phase: p.Phase, MSPerStep: p.MS, Percent: p.Percent}
		if steps := b.report.Steps; steps != nil {
			phase.MSPerStep = p.Percent / 100 * steps.MeanMS
		}
		b.report.Phases = append(b.report.Phases, b.prefilled(phase)...)
	}
	b.report.PhasesOf = fmt.Sprintf("%s of thread %d, by its samples: %s on a CPU, %s waiting", msText(s.WallMS), s.TID, msText(s.CPUMS),
		msText(s.WaitMS+s.ShortMS))
	if b.report.worker == "main thread" && s.TID != s.PID {
		b.report.worker = "busiest thread"
	}
}

// standing reports whether the recording has threads that did not run.
func (b *builder) standing() bool {
	var n int64
	return b.db.Row(b.ctx, "SELECT count(*) FROM still_thread", nil, &n) == nil && n > 0
}
