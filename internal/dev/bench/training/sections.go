package training

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
)

func (r *Results) Hits(p *figure.Page) {
	if len(r.hit) == 0 {
		return
	}
	p.Line("## One hit\n")
	p.Line("The tracer calibrates itself: functions of a few instructions, called in a loop with and without a probe that counts, the least " +
		"of five rounds.\n")
	p.Table("site", "first instruction", "ns a hit")
	for _, class := range []struct{ name, what string }{
		{"nop5", "a `nop` of five bytes: rewritten to a call since Linux 6.18"},
		{"emulated", "`push`, `jmp`, `jcc`, `call`: emulated in the trap handler"},
		{"stepped", "anything else: single-stepped out of line"},
		{"emulated, cold", "`push` … again, after the process has gone through 4 MiB of memory of its own; the lower quartile"},
	} {
		p.Row(class.name, class.what, fmt.Sprintf("%d", r.hit[class.name].Nanoseconds()))
	}
	p.Line("\nIn a real job a hit costs more than in that loop, because neither the program nor its maps are in the caches. Of it the BPF " +
		"program is the smaller part (the kernel's own statistics, `kernel.bpf_stats_enabled`, worst case below; they add some 20 ns a run " +
		"themselves):\n")
	p.Table("PyTorch", "program", "ns a run")
	for _, m := range r.programs {
		for _, name := range slices.Sorted(maps.Keys(m.costs)) {
			p.Row(m.python.Name, name, fmt.Sprintf("%d", m.costs[name].PerRun.Nanoseconds()))
		}
	}
	p.Line("")
}

func (r *Results) Attaching(p *figure.Page) {
	if len(r.plans)+len(r.attach) > 0 {
		p.Line("## Planning, attaching, detaching\n")
	}
	if len(r.plans) > 0 {
		p.Line("Planning is done once an attach, before any probe is in, and the job does not notice: opening libtorch_cpu, reading its " +
			"symbols and choosing every site, one core (five times, median and range).\n")
		p.Table("PyTorch", "functions", "ms")
		for _, plan := range r.plans {
			p.Row(plan.name, fmt.Sprint(plan.probes), plan.ms.String())
		}
		p.Line("")
	}
	if len(r.attach) == 0 {
		return
	}
	p.Line("The operator probes of the running worst case, put in and taken out %d times (median and range). The stall is by how much the "+
		"steps that the attach or detach touched, and those of 10 ms after it, took longer than the mean of the quarter of a second before and "+
		"after. The last row is the same sum over as long a time in which nothing was done.\n", len(r.attach[0].sets[0].moments))
	p.Table("PyTorch", "probes", "sites", "attach, ms", "job stalls, ms", "detach, ms", "job stalls, ms")
	for _, a := range r.attach {
		for _, set := range a.sets {
			in, out, sites := set.in.String(), set.out.String(), fmt.Sprint(set.sites)
			if set.absent {
				in, out, sites = "—", "—", "—"
			}
			p.Row(a.python.Name, set.name, sites, in, set.stallIn.String(), out, set.stallOut.String())
		}
	}
	p.Line("\nDetaching waits for the kernel's grace periods: that is the tracer's time, not the job's.\n")
}

const WorstCase = `A tiny MLP under Adam (testdata/jobs/mlp.py), one thread: all operator overhead, no arithmetic to speak of. Cost per operator is the difference of the median steps over the operators that were counted in the same windows.`

const RealShapes = `A network of the shape of ResNet-50 on pictures of 64 pixels, batch 2, and a GPT of four layers, width 128, 64 tokens, batch 4; one thread, and a single core, which makes the steps small. On an accelerator they are smaller still per operator, and the share grows with operators a second: multiply.`

func (r *Results) Comparisons(p *figure.Page, title, text string, all []paired.Result) {
	if len(all) == 0 {
		return
	}
	p.Line("%s\n\n%s\n", title, text)
	p.Table("PyTorch", "job", "with", "step, ms", "difference (95 %)", "of CPU time", "hits/s", "operators/s", "µs an operator", "ns a hit")
	for _, m := range all {
		for _, c := range m.Comparisons {
			hits, calls, operator, hit := "", "", "", ""
			if len(c.Pairs) > 0 && c.Traps > 0 {
				hits, calls = fmt.Sprintf("%.0f", c.TrapRate), fmt.Sprintf("%.0f", c.Rate)
				hit = fmt.Sprintf("%.0f", c.Difference.Median/c.Traps)
			}
			if c.Traps > 0 && c.Name == paired.OperatorsOnly {
				operator = fmt.Sprintf("%.2f (%.2f … %.2f)", c.Difference.Median/c.Calls/1e3, c.Difference.Low/c.Calls/1e3,
					c.Difference.High/c.Calls/1e3)
			}
			if c.Name == paired.AllGroups {
				calls = ""
			}
			p.Row(m.Python.Name, m.Job, c.Name, fmt.Sprintf("%.3f → %.3f", c.Off/1e6, c.On/1e6), c.Share.Percent(), fmt.Sprintf("%+.1f %%",
				100*c.Cpu.Median), hits, calls, operator, hit)
		}
	}
	p.Line("")
	for _, m := range all {
		lost := uint64(0)
		for _, c := range m.Comparisons {
			lost += c.Lost
		}
		op := paired.Find(m, paired.OperatorsOnly)
		p.Line("- PyTorch %s, %s: %.0f operators and %.0f hits a step; the tracer used %.0f %% of the other core, %.0f ns a record; %d "+
			"records were lost.", m.Python.Name, m.Job, op.Calls, op.Traps, 100*op.CpuShare, op.CpuRow, lost)
		for _, name := range []string{paired.ProfilerPlain, paired.ProfilerStacks} {
			if c := paired.Find(m, name); len(c.Stops) > 0 {
				p.Line("- PyTorch %s, %s: %s takes another %.0f ms when it stops, for %.1f s recorded.", m.Python.Name, m.Job, name,
					figure.Median(c.Stops), c.Pairs[0].On.Seconds())
			}
		}
	}
	p.Line("")
}

func (r *Results) Budgets(p *figure.Page) {
	if len(r.Budget) == 0 {
		return
	}
	p.Line("## The budget\n")
	p.Line("The worst case under the defaults, and at the level that is always on: slices of operators and allocations, attached and " +
		"detached every second or so, their price included. The windows span several slices, so the mean step is what the job loses; the " +
		"median is the step outside of the slices. Opening, planning and the first trial slice lie before the window.\n")
	r.budgetTable(p, r.Budget)
	if len(r.BudgetReal) > 0 {
		p.Line("The same of a GPT of four layers, width 128:\n")
		r.budgetTable(p, r.BudgetReal)
	}
}

// budgetTable is what whole recordings under a budget cost.
func (r *Results) budgetTable(p *figure.Page, all []paired.Result) {
	p.Table("PyTorch", "with", "mean step (95 %)", "median step (95 %)", "of CPU time", "records/s")
	for _, m := range all {
		for _, c := range m.Comparisons {
			records := ""
			if c.Name != paired.AA {
				n, seconds := 0.0, 0.0
				for _, pair := range c.Pairs {
					n, seconds = n+float64(pair.On.Counted.Records), seconds+pair.On.Seconds()
				}
				records = fmt.Sprintf("%.0f", n/seconds)
			}
			p.Row(m.Python.Name, c.Name, c.MeanShare.Percent(), c.Share.Percent(), fmt.Sprintf("%+.1f %%", 100*c.MeanCPU.Median), records)
		}
	}
	p.Line("")
}

func (r *Results) Targets(p *figure.Page) {
	for _, a := range r.attach {
		all, learnt := a.sets[0], a.sets[1]
		at := func(name string, limit float64, s *figure.Spread) {
			p.Row(fmt.Sprintf("%s: ≤ %.0f ms", name, limit), a.python.Name, fmt.Sprintf("%.1f ms", figure.Median(s.Values)),
				figure.Verdict(figure.Median(s.Values) <= limit))
		}
		at("all operator probes attached", 150, &all.in)
		at("all operator probes detached", 300, &all.out)
		at("stall of the job, all, in", 130, &all.stallIn)
		at("stall of the job, all, out", 130, &all.stallOut)
		at("stall of the job, those it uses, in", 5, &learnt.stallIn)
		at("stall of the job, those it uses, out", 5, &learnt.stallOut)
	}
	for _, m := range r.Paired {
		op := paired.Find(m, paired.WithoutShapes)
		cost := op.Difference.Median / op.Calls / 1e3
		p.Row("an operator, entry, exit and span record: ≤ 2.4 µs", m.Python.Name, fmt.Sprintf("%.2f µs", cost), figure.Verdict(cost <= 2.4))
		shapesTarget(p, m)
	}
	for _, m := range r.Budget {
		on, floor := paired.Find(m, paired.AtWindow), paired.Find(m, paired.AA)
		p.Row("budget 5 %: step time within it plus the noise floor", m.Python.Name,
			fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*on.MeanShare.Median, 100*floor.MeanShare.Reach()),
			figure.WithinNoise(on.MeanShare.Median <= 0.05+floor.MeanShare.Reach(), floor.MeanShare.Reach()))
		anchor := paired.Find(m, paired.AtAnchor)
		p.Row("at `anchor`: the usual (median) step inside the noise floor", m.Python.Name,
			fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*anchor.Share.Median, 100*floor.Share.Reach()),
			figure.WithinNoise(anchor.Share.Median <= floor.Share.Reach(), floor.Share.Reach()))
		p.Row("budget 1 % at `anchor`: step time within it plus the noise floor", m.Python.Name,
			fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*anchor.MeanShare.Median, 100*floor.MeanShare.Reach()),
			figure.WithinNoise(anchor.MeanShare.Median <= 0.01+floor.MeanShare.Reach(), floor.MeanShare.Reach()))
	}
}
