package main

import (
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/samples"
)

// The table of the summary: what a user pays, by job and level, beside others.

const paidTitle = "What you pay"

const paidText = `How much longer a training step takes, with the 95 % interval. "No difference" is within the noise floor of the same run, which treats the job alike with no tracer. The worst case is an MLP whose operators do almost no arithmetic, so that all of its time is PyTorch's own overhead; the GPT has four layers of width 128 (one layer in rows with two threads). A budget is a share of the job's time, and recording gives way to it; ` + "`--budget off`" + ` records every call. torch.profiler takes extra time when it stops, which these rows leave out.`

// barUnit is the share of a step that one character of a bar stands for, and barMost
// the longest bar.
const (
	barUnit = 0.05
	barMost = 24
)

// bar draws a share of a step.
func bar(share float64) string {
	n := int(share/barUnit + 0.5)
	if n > barMost {
		return strings.Repeat("█", barMost) + "…"
	}
	if n <= 0 {
		return "▏"
	}
	return strings.Repeat("█", n)
}

// paid is the table of what users pay. Its first two cells are a row's key (mergeRows).
func (r *results) paid(p *figure.Page) {
	rows := &figure.Page{}
	for _, m := range r.training.Budget {
		r.paidRows(rows, m, "worst case", func(c *paired.Comparison) figure.Estimate { return c.MeanShare }, paired.AtAnchor, paired.AtWindow)
	}
	for _, m := range r.training.BudgetReal {
		r.paidRows(rows, m, "GPT", func(c *paired.Comparison) figure.Estimate { return c.MeanShare }, paired.AtAnchor, paired.AtWindow)
	}
	for _, m := range r.training.Paired {
		r.paidRows(rows, m, "worst case", func(c *paired.Comparison) figure.Estimate { return c.Share }, paired.AllGroups, paired.ProfilerPlain,
			paired.ProfilerShapes, paired.ProfilerStacks)
	}
	for _, m := range r.training.Models {
		name := "GPT"
		if m.Job == "resnet.py" {
			name = "ResNet-50"
		}
		r.paidRows(rows, m, name, func(c *paired.Comparison) figure.Estimate { return c.Share }, paired.AllGroups, paired.ProfilerPlain,
			paired.ProfilerStacks)
	}
	for _, m := range r.samples.Samples {
		r.paidRows(rows, m, "GPT, two threads", func(c *paired.Comparison) figure.Estimate { return c.Share }, samples.At99Hertz,
			samples.PySpyPlain, samples.PySpyDeep, samples.PerfRecord)
	}
	if rows.Len() == 0 {
		return
	}
	p.Line("## %s\n\n%s\n", paidTitle, paidText)
	p.Table("job", "with", "step longer by", "5 % a block")
	p.Line("%s", rows.String())
}

// paidRows are the rows of one running job: of each treatment the step that of tells.
func (r *results) paidRows(p *figure.Page, m paired.Result, job string, of func(*paired.Comparison) figure.Estimate, treatments ...string) {
	floor := of(paired.Find(m, paired.AA)).Reach()
	for _, name := range treatments {
		c := paired.Find(m, name)
		if len(c.Pairs) == 0 {
			continue
		}
		e, what := of(c), ""
		if what = e.Percent(); e.Low <= floor && e.Median <= floor {
			what = fmt.Sprintf("no difference (%+.1f %%, floor ±%.1f %%)", 100*e.Median, 100*floor)
		}
		p.Row(job+", "+m.Python.Name, name, what, bar(e.Median))
	}
}
