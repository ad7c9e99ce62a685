package main

import (
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/training"
)

// The words of docs/overhead.md and its appendix are here and their figures in results,
// so that one cannot be changed without the other.

// pages are the documents that a run writes, by their names in docs. Sections that a page
// has besides stay as they are.
func (r *results) pages() []document {
	return []document{{"overhead.md", r.summary()}, {"overhead-appendix.md", r.appendix()}}
}

type document struct{ name, text string }

func (r *results) summary() string {
	p := &figure.Page{}
	p.Line("# Overhead\n")
	p.Line("Measured by `make bench` on %s. Absolute figures belong to that machine; ratios travel better. "+
		"[overhead-appendix.md](overhead-appendix.md) has every measurement, its date and the method.\n", setup.Machine())
	r.paid(p)
	return wrap(p.String())
}

func (r *results) appendix() string {
	p := &figure.Page{}
	r.introduction(p)
	r.targets(p)
	r.starting(p)
	r.training.Hits(p)
	r.training.Attaching(p)
	r.calls.Launches(p)
	r.training.Comparisons(p, "## The worst case", training.WorstCase, r.training.Paired)
	r.training.Comparisons(p, "## Training steps of real shapes", training.RealShapes, r.training.Models)
	r.samples.Sampling(p)
	r.training.Budgets(p)
	r.always.Section(p)
	r.training.Allocators(p)
	r.training.AllocationTables(p)
	r.training.PricesOfParts(p)
	r.calls.ReadsAndWrites(p)
	r.memoryPlanner(p)
	r.samples.WalkingPython(p)
	r.samples.WalkingNative(p)
	r.samples.MixedStacks(p)
	r.writing(p)
	p.Line("%s", method)
	return wrap(r.dated(p.String()))
}

const introduction = "Written by `make bench ARGS=-write`, on %s. [overhead.md](overhead.md) is the summary. Each section has the date " +
	"of its measurement. Absolute figures belong to that machine; ratios travel better. A virtual machine pays far more for a " +
	"single-stepped site, and more for every trap, than bare metal does. A load average above 1.5, which the bench and its job cause, is other work on the same cores and is part of the noise floors.\n"

func (r *results) introduction(p *figure.Page) {
	p.Line("# Overhead: all measurements\n")
	p.Line(introduction, setup.Machine())
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

func (r *results) targets(p *figure.Page) {
	p.Line("## Targets\n")
	p.Table("target", "PyTorch", "measured", "")
	r.training.Targets(p)
	r.startTargets(p)
	r.samples.MixedTargets(p)
	r.always.Targets(p)
	r.training.AllocatorTargets(p)
	r.training.AllocationTargets(p)
	r.memoryTargets(p)
	r.samples.SamplingTargets(p)
	r.training.PriceTargets(p)
	r.calls.ReadTargets(p)
	r.calls.LaunchTargets(p)
	r.samples.NativeTargets(p)
	if d := r.decoding; d != nil {
		rate := figure.Median(d.perSecond.Values)
		p.Row("decode and write on one core: ≥ 1 M spans/s (synthetic records)", "", fmt.Sprintf("%.2f M/s", rate), figure.Verdict(rate >= 1))
		alone := 1e3 / d.AloneNS
		p.Row("decode alone on one core: ≥ 3.5 M spans/s (synthetic records)", "", fmt.Sprintf("%.2f M/s", alone), figure.Verdict(alone >= 3.5))
		p.Row("on disk: ≤ 20 bytes a span", "", fmt.Sprintf("%.1f B synthetic%s", d.Bytes, r.realBytes()),
			figure.Verdict(max(d.Bytes, largest(r.training.Bytes)) <= 20))
		p.Row("peak RSS meanwhile: < 200 MB", "", fmt.Sprintf("%.0f MB", d.PeakRSSMB), figure.Verdict(d.PeakRSSMB < 200))
	}
	p.Line("")
}

func largest(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Max(values)
}

func (r *results) realBytes() string {
	if len(r.training.Bytes) == 0 {
		return ""
	}
	return fmt.Sprintf(", %.1f B recorded from the worst case", largest(r.training.Bytes))
}

func (r *results) writing(p *figure.Page) {
	d := r.decoding
	if d == nil {
		return
	}
	p.Line("## Decoding and writing\n")
	p.Line("Synthetic records (two threads, 60 operators nested up to three deep, a sequence number on every sixth) through the tracer's "+
		"decoder into a dataset, in a process of its own with one core and GOMAXPROCS=1: %d spans, three times.\n", d.Spans)
	p.Table("what", "measured")
	p.Row("spans a second, M (wall)", d.perSecond.String())
	p.Row("CPU time a span, the quietest run", fmt.Sprintf("%.0f ns", d.CPUNS))
	p.Row("of it decoding, without a dataset", fmt.Sprintf("%.0f ns", d.AloneNS))
	p.Row("bytes a span on disk", fmt.Sprintf("%.1f%s", d.Bytes, r.realBytes()))
	p.Row("peak RSS", fmt.Sprintf("%.0f MB", d.PeakRSSMB))
	p.Line("\nReading the kernel's ring is not in that figure; it is in the nanoseconds a record of the lists above, which are the tracer's " +
		"whole CPU time on the live job.\n")
}

const method = `## How this is measured

- The job is pinned to one core, everything of the tracer to the other. The two may be threads of one physical core; then the tracer's decoding slows the job a little, and that is in the figures.
- Both sides of a difference come from one running process: a window without probes, one with, one without, and so on through all the treatments in turn. A difference is the median step of a window against the mean of the medians of the windows before and after it; the figure is the median of the differences, with the 95 % interval of a bootstrap over them. "nothing (A/A)" is treated the same, and the far end of its interval is the noise floor.
- Under a budget (and with the allocator's events) the job has a twin: the same job, never traced, with copies of the probed libraries, on the same core. A shared machine runs up to twice as slowly at one second as at the next, and that is in the CPU time too; the scheduler gives the core to each of the two in turn for a few milliseconds, so both feel it alike. Compared are not the job's steps but how many of the twin's steps one of the job's takes: the mean without what each waited for the core (` + "`/proc/PID/schedstat`" + `), the median by the CPU time of a step. With half a core to itself the job gets the tracer's fixed price per second twice over in its own time; the budget is kept in the job's own time, so that is accounted for.
- An empty uprobe (an entry probe whose program does nothing) took 0.53 µs on the machine that the targets are from. Machines here are shared and have taken 0.46 to 0.75 µs, and what a probe or a sample costs goes up and down with that: some times are therefore also given in traps, measured beside them. What counts as held is the time as it was measured; a trap is no perfect measure either: guards against speculation make our programs more expensive on one processor than on another.
- ` + "`of CPU time`" + ` is the same difference in the process's CPU time a step, which other processes on the core do not lengthen.
- torch.profiler runs inside the same process, in windows of half the length (it takes long to stop), between the same neighbours; its start and stop lie outside of them.
- Probes stay loaded and planned between windows, and are attached and detached in each; ` + "`anchor`" +
	` and the budget are whole recordings, as ` + "`ebpfprof attach`" + ` makes them, a new one for each window.
- ` + "`make bench`" + ` runs everything in some forty minutes; ` + "`go run ./internal/dev/bench -quick`" + ` in three to eight; ` +
	"`-write`" + ` updates this page and the summary.`
