package main

import (
	"fmt"
	"strings"
)

// The first section of the page: what a user pays, by job and level, beside others.

const paidTitle = "What you pay"

const paidText = `How much longer a training step takes, with the 95 % interval; "no difference" where that is within the noise floor of the same run (the job with nothing done to it, treated alike). The worst case is an MLP whose operators do next to no arithmetic, so that all of its time is overhead of PyTorch; the GPT has four layers of width 128 (one layer, where two threads are sampled). A recording with a budget makes its own cost: the budget is a share of the job's time, and what is recorded gives way to it. Without one (` + "`--budget off`" + `) each call is recorded and paid for. torch.profiler takes more when it stops, which is not in these rows; the sections below have that, and how all of it was measured.`

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
func (r *results) paid(p *page) {
	rows := &page{}
	for _, m := range r.budget {
		r.paidRows(rows, m, "worst case", func(c *comparison) estimate { return c.meanShare }, atAnchor, atWindow)
	}
	for _, m := range r.budgetReal {
		r.paidRows(rows, m, "GPT", func(c *comparison) estimate { return c.meanShare }, atAnchor, atWindow)
	}
	for _, m := range r.paired {
		r.paidRows(rows, m, "worst case", func(c *comparison) estimate { return c.share }, allGroups, profilerPlain, profilerShapes, profilerStacks)
	}
	for _, m := range r.models {
		name := "GPT"
		if m.job == "resnet.py" {
			name = "ResNet-50"
		}
		r.paidRows(rows, m, name, func(c *comparison) estimate { return c.share }, allGroups, profilerPlain, profilerStacks)
	}
	for _, m := range r.samples {
		r.paidRows(rows, m, "GPT, two threads", func(c *comparison) estimate { return c.share }, at99Hertz, pySpyPlain, pySpyDeep, perfRecord)
	}
	if rows.Len() == 0 {
		return
	}
	p.line("## %s\n\n%s\n", paidTitle, paidText)
	p.table("job", "with", "step longer by", "5 % a block")
	p.line("%s", rows.String())
}

// paidRows are the rows of one running job: of each treatment the step that of tells.
func (r *results) paidRows(p *page, m pairedResult, job string, of func(*comparison) estimate, treatments ...string) {
	floor := of(find(m, aa)).reach()
	for _, name := range treatments {
		c := find(m, name)
		if len(c.pairs) == 0 {
			continue
		}
		e, what := of(c), ""
		if what = e.percent(); e.low <= floor && e.median <= floor {
			what = fmt.Sprintf("no difference (%+.1f %%, floor ±%.1f %%)", 100*e.median, 100*floor)
		}
		p.row(job+", "+m.python.name, name, what, bar(e.median))
	}
}
