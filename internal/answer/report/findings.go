package report

import (
	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
)

// findings asks the rules, with their own thresholds. They go by steps.
func (b *builder) findings() error {
	loops := b.loops
	if rank := b.options.Rank; rank != nil {
		loops = nil
		for _, t := range b.loops {
			if t.Rank != nil && *t.Rank == *rank {
				loops = append(loops, t)
			}
		}
	}
	if len(loops) == 0 {
		b.untold("findings: the rules go by steps, and there are none")
		return nil
	}
	result, err := findings.Run(b.ctx, b.db, loops, thresholds.Default())
	if err != nil {
		return err
	}
	b.report.Findings = append(b.report.Findings, result.Findings...)
	if c := result.Contended; c != nil {
		b.report.Contention = &Contention{c.Percent(), float64(c.WindowNS) / 1e6, c.JobCPUs, c.OtherCPUs, c.Who()}
	}
	for _, a := range result.Abstained {
		b.untold("findings: %s", a.Sentence())
	}
	for _, text := range result.Untold {
		b.untold("findings: %s", text)
	}
	return nil
}
