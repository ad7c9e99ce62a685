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
		return b.parted(b.findingsOfWindow)()
	}
	result, err := findings.Run(b.ctx, b.db, loops, thresholds.Default())
	if err != nil {
		return err
	}
	b.found(result)
	return nil
}

// findingsOfWindow asks the rules about the whole recording, if nothing in it repeats.
func (b *builder) findingsOfWindow() error {
	result, err := findings.RunWindow(b.ctx, b.db, nil, thresholds.Default())
	if err == nil {
		b.found(result)
	}
	return err
}

func (b *builder) found(result *findings.Result) {
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
}
