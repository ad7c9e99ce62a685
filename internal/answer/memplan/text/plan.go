package text

import (
	"fmt"
	"io"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

// Plans prints the plans of some recordings, and what they say together.
func Plans(w io.Writer, several *analysis.Several) {
	for i, p := range several.Plans {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printPlan(w, p)
	}
	if len(several.Plans) > 1 {
		fmt.Fprintf(w, "\none region for all %d recordings: %s (%s)\n", len(several.Plans), exactBytes(several.Region), several.Method)
	}
	if f := several.WhatIf; f != nil && f.LargestBatch > 0 {
		fmt.Fprintf(w, "\nestimate: a batch of %d would fit into %s, with %s (%s)\n", f.LargestBatch, exactBytes(f.Capacity),
			exactBytes(f.Bytes), f.Method)
	} else if f != nil {
		fmt.Fprintf(w, "\nestimate: not even a batch of one would fit into %s (%s)\n", exactBytes(f.Capacity), f.Method)
	}
}

func printPlan(w io.Writer, p *analysis.Plan) {
	if p.Scope == "step" {
		fmt.Fprintf(w, "pid %d: %d steps (from %s); %d requests recur, %.1f %% of the bytes requested in them; all of them in %d steps\n",
			p.PID, p.Steps, p.StepsFrom, p.HotRequests, 100*p.RecurringShare, p.WholeAlike)
	} else {
		fmt.Fprintf(w, "pid %d: a plan of the whole recording, %d blocks\n", p.PID, len(p.Requests))
	}
	for _, note := range p.Notes {
		fmt.Fprintln(w, "note:", note)
	}
	fmt.Fprintln(w)
	t := terminal.PlainTable("", "bytes", "")
	terminal.RightAlign(t, 2, 3)
	row := func(name string, bytes int64) { t.AppendRow([]any{name, bytes, amount.Bytes(bytes)}) }
	row("live at the peak, today", p.LiveToday)
	row("pool today, simulated", p.PoolSimulated)
	row("pool with expandable segments, simulated", p.PoolExpandable)
	if p.PoolRecorded != nil {
		row("pool today, as recorded", *p.PoolRecorded)
	}
	row("planned blocks without reuse", p.NoReuse)
	row("planned blocks in the pool, simulated", p.HotPool)
	row("plan", p.Peak)
	row("lower bound of it", p.LowerBound)
	row("the rest, in the pool", p.Rest)
	row("plan and rest: the least capacity found", p.WithPlan)
	terminal.Render(w, t)
	pool := "the pool, simulated"
	if p.SavingAgainst == "pool_recorded" {
		pool = "the pool, as recorded"
	}
	saving := fmt.Sprintf("saves %s, %.1f %% of %s", amount.Bytes(p.SavingBytes), p.SavingPercent, pool)
	if p.SavingBytes < 0 {
		saving = fmt.Sprintf("saves nothing: plan and rest need %s more than %s", amount.Bytes(-p.SavingBytes), pool)
	}
	fmt.Fprintf(w, "\n%s; of the planned part alone %.1f %%; gap to the bound %.3f %%, by %s in %.1f s\n",
		saving, p.HotSavePercent, 100*p.Gap, p.Solver, p.Seconds())
	if r := p.Replanned; r != nil {
		fmt.Fprintf(w, "run as the paper does: %d of %d requests served elsewhere, planned again in %d of %d steps (%d of the last half), in "+
			"at most %.1f ms\n",
			r.Deviations, r.Deviations+r.Served, r.Replans, r.Steps, r.ReplansLate, float64(r.WorstSolve)/1e6)
	}
	fmt.Fprintln(w)
	s := terminal.PlainTable("solver", "peak", "seconds", "")
	terminal.RightAlign(s, 2, 3)
	for _, a := range p.Solvers {
		s.AppendRow([]any{a.Solver, a.Peak, fmt.Sprintf("%.3f", a.Seconds), a.Outcome})
	}
	terminal.Render(w, s)
}
