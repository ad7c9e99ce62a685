package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The page, docs/overhead.md. Its words are here and its figures in results,
// so that one cannot be changed without the other.

type page struct{ strings.Builder }

func (p *page) line(format string, values ...any) {
	fmt.Fprintf(p, format+"\n", values...)
}

func (p *page) table(header ...string) {
	p.row(header...)
	rule := make([]string, len(header))
	for i := range rule {
		rule[i] = "---"
	}
	p.row(rule...)
}

func (p *page) row(cells ...string) { p.line("| %s |", strings.Join(cells, " | ")) }

func (r *results) markdown() string {
	p := &page{}
	r.introduction(p)
	r.paid(p)
	r.targets(p)
	r.hits(p)
	r.attaching(p)
	r.launches(p)
	r.comparisons(p, "## The worst case", worstCase, r.paired)
	r.comparisons(p, "## Training steps of real shapes", realShapes, r.models)
	r.sampling(p)
	r.budgets(p)
	r.allocators(p)
	r.memoryPlanner(p)
	r.walkingPython(p)
	r.walkingNative(p)
	r.mixedStacks(p)
	r.writing(p)
	p.line("%s", method)
	return wrap(r.dated(p.String()))
}

func (r *results) introduction(p *page) {
	p.line("# What it costs\n")
	p.line("Written by `make bench ARGS=-write`, on %s. A section says when it was measured last. Absolute figures belong to that machine; the ratios travel better. A virtual machine pays far more for a single-stepped site, and more for every trap, than bare metal does. What the load averages are above 1.5, which the bench and its job make, is somebody else's work on the same cores, and in the noise floors.\n", machine())
}

// measured says when and how a section was measured.
func (r *results) measured() string {
	mode := "in full"
	if r.quick {
		mode = "in short"
	}
	return fmt.Sprintf("*%s: `%s`, %s, %s.*", r.started.UTC().Format("2006-01-02 15:04"), r.command, mode, loads(r.load))
}

func loads(all []float64) string {
	if len(all) == 0 {
		return "load not read"
	}
	return fmt.Sprintf("load average %.1f to %.1f", slices.Min(all), slices.Max(all))
}

// verdict says whether a target holds.
func verdict(holds bool) string {
	if holds {
		return "holds"
	}
	return "**missed**"
}

func (r *results) targets(p *page) {
	p.line("## Targets\n")
	p.table("target", "PyTorch", "measured", "")
	for _, a := range r.attach {
		all, learnt := a.sets[0], a.sets[1]
		at := func(name string, limit float64, s *spread) {
			p.row(fmt.Sprintf("%s: ≤ %.0f ms", name, limit), a.python.name, fmt.Sprintf("%.1f ms", median(s.values)), verdict(median(s.values) <= limit))
		}
		at("all operator probes attached", 150, &all.in)
		at("all operator probes detached", 300, &all.out)
		at("stall of the job, all, in", 130, &all.stallIn)
		at("stall of the job, all, out", 130, &all.stallOut)
		at("stall of the job, those it uses, in", 5, &learnt.stallIn)
		at("stall of the job, those it uses, out", 5, &learnt.stallOut)
	}
	for _, m := range r.paired {
		op, shaped := find(m, withoutShapes), find(m, operatorsOnly)
		cost := op.difference.median / op.calls / 1e3
		p.row("an operator, entry, exit and span record: ≤ 2.4 µs", m.python.name, fmt.Sprintf("%.2f µs", cost), verdict(cost <= 2.4))
		// 208 of the 313 operators of mlp.py's step are in the table of shapes.
		shapes := (shaped.difference.median/shaped.calls - op.difference.median/op.calls) / 1e3 * 313 / 208
		p.row("shapes, an operator that has them: ≤ 0.4 µs more", m.python.name, fmt.Sprintf("%.2f µs", shapes), verdict(shapes <= 0.4))
	}
	for _, m := range r.budget {
		on, floor := find(m, atWindow), find(m, aa)
		p.row("budget 5 %: step time within it plus the noise floor", m.python.name,
			fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*on.meanShare.median, 100*floor.meanShare.reach()), withinNoise(on.meanShare.median <= 0.05+floor.meanShare.reach(), floor.meanShare.reach()))
		anchor := find(m, atAnchor)
		p.row("at `anchor`: the usual (median) step inside the noise floor", m.python.name,
			fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*anchor.share.median, 100*floor.share.reach()), withinNoise(anchor.share.median <= floor.share.reach(), floor.share.reach()))
		p.row("budget 1 % at `anchor`: step time within it plus the noise floor", m.python.name,
			fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*anchor.meanShare.median, 100*floor.meanShare.reach()), withinNoise(anchor.meanShare.median <= 0.01+floor.meanShare.reach(), floor.meanShare.reach()))
	}
	r.mixedTargets(p)
	r.allocatorTargets(p)
	r.memoryTargets(p)
	r.samplingTargets(p)
	r.launchTargets(p)
	r.nativeTargets(p)
	if d := r.decoding; d != nil {
		rate := median(d.perSecond.values)
		p.row("decode and write on one core: ≥ 1 M spans/s (synthetic records)", "", fmt.Sprintf("%.2f M/s", rate), verdict(rate >= 1))
		alone := 1e3 / d.AloneNS
		p.row("decode alone on one core: ≥ 3.5 M spans/s (synthetic records)", "", fmt.Sprintf("%.2f M/s", alone), verdict(alone >= 3.5))
		p.row("on disk: ≤ 20 bytes a span", "", fmt.Sprintf("%.1f B synthetic%s", d.Bytes, r.realBytes()), verdict(max(d.Bytes, largest(r.bytes)) <= 20))
		p.row("peak RSS meanwhile: < 200 MB", "", fmt.Sprintf("%.0f MB", d.PeakRSSMB), verdict(d.PeakRSSMB < 200))
	}
	p.line("")
}

func largest(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Max(values)
}

func (r *results) realBytes() string {
	if len(r.bytes) == 0 {
		return ""
	}
	return fmt.Sprintf(", %.1f B recorded from the worst case", largest(r.bytes))
}

func find(m pairedResult, name string) *comparison {
	for _, c := range m.comparisons {
		if c.name == name {
			return c
		}
	}
	return &comparison{}
}

func (r *results) hits(p *page) {
	if len(r.hit) == 0 {
		return
	}
	p.line("## One hit\n")
	p.line("The tracer calibrates itself: functions of a few instructions, called in a loop with and without a probe that counts, the least of five rounds.\n")
	p.table("site", "first instruction", "ns a hit")
	for _, class := range []struct{ name, what string }{
		{"nop5", "a `nop` of five bytes: rewritten to a call since Linux 6.18"},
		{"emulated", "`push`, `jmp`, `jcc`, `call`: emulated in the trap handler"},
		{"stepped", "anything else: single-stepped out of line"},
		{"emulated, cold", "`push` … again, after the process has gone through 4 MiB of memory of its own; the lower quartile"},
	} {
		p.row(class.name, class.what, fmt.Sprintf("%d", r.hit[class.name].Nanoseconds()))
	}
	p.line("\nIn a real job a hit costs more than in that loop, because neither the program nor its maps are in the caches. Of it the BPF program is the smaller part (the kernel's own statistics, `kernel.bpf_stats_enabled`, worst case below; they add some 20 ns a run themselves):\n")
	p.table("PyTorch", "program", "ns a run")
	for _, m := range r.programs {
		for _, name := range slices.Sorted(maps.Keys(m.costs)) {
			p.row(m.python.name, name, fmt.Sprintf("%d", m.costs[name].PerRun.Nanoseconds()))
		}
	}
	p.line("")
}

func (r *results) attaching(p *page) {
	if len(r.plans)+len(r.attach) > 0 {
		p.line("## Planning, attaching, detaching\n")
	}
	if len(r.plans) > 0 {
		p.line("Planning is done once an attach, before any probe is in, and the job does not notice: opening libtorch_cpu, reading its symbols and choosing every site, one core (five times, median and range).\n")
		p.table("PyTorch", "functions", "ms")
		for _, plan := range r.plans {
			p.row(plan.name, fmt.Sprint(plan.probes), plan.ms.String())
		}
		p.line("")
	}
	if len(r.attach) == 0 {
		return
	}
	p.line("The operator probes of the running worst case, put in and taken out %d times (median and range). The stall is by how much the steps that the attach or detach touched, and those of 10 ms after it, took longer than the mean of the quarter of a second before and after. The last row is the same sum over as long a time in which nothing was done.\n", len(r.attach[0].sets[0].moments))
	p.table("PyTorch", "probes", "sites", "attach, ms", "job stalls, ms", "detach, ms", "job stalls, ms")
	for _, a := range r.attach {
		for _, set := range a.sets {
			in, out, sites := set.in.String(), set.out.String(), fmt.Sprint(set.sites)
			if set.absent {
				in, out, sites = "—", "—", "—"
			}
			p.row(a.python.name, set.name, sites, in, set.stallIn.String(), out, set.stallOut.String())
		}
	}
	p.line("\nDetaching waits for the kernel's grace periods, three links one after the other: that is the tracer's time, not the job's.\n")
}

const worstCase = `A tiny MLP under Adam (testdata/jobs/mlp.py), one thread: all operator overhead, no arithmetic to speak of. Cost per operator is the difference of the median steps over the operators that were counted in the same windows.`

const realShapes = `A network of the shape of ResNet-50 on pictures of 64 pixels, batch 2, and a GPT of four layers, width 128, 64 tokens, batch 4; one thread, and a single core, which makes the steps small. On an accelerator they are smaller still per operator, and the share grows with operators a second: multiply.`

func (r *results) comparisons(p *page, title, text string, all []pairedResult) {
	if len(all) == 0 {
		return
	}
	p.line("%s\n\n%s\n", title, text)
	p.table("PyTorch", "job", "with", "step, ms", "difference (95 %)", "of CPU time", "hits/s", "operators/s", "µs an operator", "ns a hit")
	for _, m := range all {
		for _, c := range m.comparisons {
			hits, calls, operator, hit := "", "", "", ""
			if len(c.pairs) > 0 && c.traps > 0 {
				hits, calls = fmt.Sprintf("%.0f", c.trapRate), fmt.Sprintf("%.0f", c.rate)
				hit = fmt.Sprintf("%.0f", c.difference.median/c.traps)
			}
			if c.traps > 0 && c.name == operatorsOnly {
				operator = fmt.Sprintf("%.2f (%.2f … %.2f)", c.difference.median/c.calls/1e3, c.difference.low/c.calls/1e3, c.difference.high/c.calls/1e3)
			}
			if c.name == allGroups {
				calls = ""
			}
			p.row(m.python.name, m.job, c.name, fmt.Sprintf("%.3f → %.3f", c.off/1e6, c.on/1e6), c.share.percent(), fmt.Sprintf("%+.1f %%", 100*c.cpu.median), hits, calls, operator, hit)
		}
	}
	p.line("")
	for _, m := range all {
		lost := uint64(0)
		for _, c := range m.comparisons {
			lost += c.lost
		}
		op := find(m, operatorsOnly)
		p.line("- PyTorch %s, %s: %.0f operators and %.0f hits a step; the tracer used %.0f %% of the other core, %.0f ns a record; %d records were lost.", m.python.name, m.job, op.calls, op.traps, 100*op.cpuShare, op.cpuRow, lost)
		for _, name := range []string{profilerPlain, profilerStacks} {
			if c := find(m, name); len(c.stops) > 0 {
				p.line("- PyTorch %s, %s: %s takes another %.0f ms when it stops, for %.1f s recorded.", m.python.name, m.job, name, median(c.stops), c.pairs[0].on.seconds())
			}
		}
	}
	p.line("")
}

func (r *results) budgets(p *page) {
	if len(r.budget) == 0 {
		return
	}
	p.line("## The budget\n")
	p.line("The worst case under the defaults, and at the level that is always on: slices of operators and allocations, attached and detached every second or so, their price included. The windows span several slices, so the mean step is what the job loses; the median is the step outside of the slices. Opening, planning and the first trial slice lie before the window.\n")
	r.budgetTable(p, r.budget)
	if len(r.budgetReal) > 0 {
		p.line("The same of a GPT of four layers, width 128:\n")
		r.budgetTable(p, r.budgetReal)
	}
}

// budgetTable is what whole recordings under a budget cost.
func (r *results) budgetTable(p *page, all []pairedResult) {
	p.table("PyTorch", "with", "mean step (95 %)", "median step (95 %)", "of CPU time", "records/s")
	for _, m := range all {
		for _, c := range m.comparisons {
			records := ""
			if c.name != aa {
				n, seconds := 0.0, 0.0
				for _, pair := range c.pairs {
					n, seconds = n+float64(pair.on.counted.Records), seconds+pair.on.seconds()
				}
				records = fmt.Sprintf("%.0f", n/seconds)
			}
			p.row(m.python.name, c.name, c.meanShare.percent(), c.share.percent(), fmt.Sprintf("%+.1f %%", 100*c.meanCPU.median), records)
		}
	}
	p.line("")
}

func (r *results) writing(p *page) {
	d := r.decoding
	if d == nil {
		return
	}
	p.line("## Decoding and writing\n")
	p.line("Synthetic records (two threads, 60 operators nested up to three deep, a sequence number on every sixth) through the tracer's decoder into a dataset, in a process of its own with one core and GOMAXPROCS=1: %d spans, three times.\n", d.Spans)
	p.table("what", "measured")
	p.row("spans a second, M (wall)", d.perSecond.String())
	p.row("CPU time a span, the quietest run", fmt.Sprintf("%.0f ns", d.CPUNS))
	p.row("of it decoding, without a dataset", fmt.Sprintf("%.0f ns", d.AloneNS))
	p.row("bytes a span on disk", fmt.Sprintf("%.1f%s", d.Bytes, r.realBytes()))
	p.row("peak RSS", fmt.Sprintf("%.0f MB", d.PeakRSSMB))
	p.line("\nReading the kernel's ring is not in that figure; it is in the nanoseconds a record of the lists above, which are the tracer's whole CPU time on the live job.\n")
}

const method = `## How this is measured

- The job is pinned to one core, everything of the tracer to the other. The two may be threads of one physical core; then the tracer's decoding slows the job a little, and that is in the figures.
- Both sides of a difference come from one running process: a window without probes, one with, one without, and so on through all the treatments in turn. A difference is the median step of a window against the mean of the medians of the windows before and after it; the figure is the median of the differences, with the 95 % interval of a bootstrap over them. "nothing (A/A)" is treated the same, and the far end of its interval is the noise floor.
- Under a budget (and with the allocator's events) the job has a twin: the same job, never traced, with copies of the probed libraries, on the same core. A shared machine runs up to twice as slowly at one second as at the next, and that is in the CPU time too; the scheduler gives the core to each of the two in turn for a few milliseconds, so both feel it alike. Compared are not the job's steps but how many of the twin's steps one of the job's takes: the mean without what each waited for the core (` + "`/proc/PID/schedstat`" + `), the median by the CPU time of a step. With half a core to itself the job gets the tracer's fixed price per second twice over in its own time; the budget is kept in the job's own time, so that is accounted for.
- An empty uprobe (an entry probe whose program does nothing) took 0.53 µs on the machine that the targets are from. Machines here are shared and have taken 0.46 to 0.75 µs, and what a probe or a sample costs goes up and down with that: some times are therefore also given in traps, measured beside them. What counts as held is the time as it was measured; a trap is no perfect measure either: guards against speculation make our programs more expensive on one processor than on another.
- ` + "`of CPU time`" + ` is the same difference in the process's CPU time a step, which other processes on the core do not lengthen.
- torch.profiler runs inside the same process, in windows of half the length (it takes long to stop), between the same neighbours; its start and stop lie outside of them.
- Probes stay loaded and planned between windows, and are attached and detached in each; ` + "`anchor`" + ` and the budget are whole recordings, as ` + "`ebpfprof attach`" + ` makes them, a new one for each window.
- ` + "`make bench`" + ` runs everything in some forty minutes; ` + "`go run ./internal/bench -quick`" + ` in three to eight; ` + "`-write`" + ` replaces this page.`
