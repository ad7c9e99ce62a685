// Package alwayson measures what the agent costs a job that it watches for a long time, and
// the node: the agent as it is deployed, with its defaults.
package alwayson

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/dev/agentrun"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
)

// Results are of one job each.
type Results []*result

type result struct {
	python      setup.Interpreter
	job         string
	length      time.Duration
	ratio       figure.Estimate // with the agent, over without
	floor       figure.Estimate // without after, over without before
	both        figure.Estimate // a step of the job and one of the twin, with the agent over without
	bothFloor   figure.Estimate // likewise, without after over without before
	windows     int             // that the ratio is of
	cpu         float64         // of a core
	watchingCPU float64         // of it, while the worker watches and takes no window
	rss, worker []float64       // MiB, at the most while the worker watches, in each quarter of the time
	inWindows   float64         // MiB, of the worker at the most while it takes windows
	store       float64         // bytes an hour
	spool       int64           // bytes at the end
	seen        agentrun.Job    // by the agent, at the end
	twinWindows int             // that the agent would have taken of the twin, which nobody traces
}

// each is how long a window is of which one ratio is taken.
const each = 10 * time.Second

// Measure has a job and its twin run without the agent for a sixth of the time, with it,
// and without it again: the job's steps in the twin's are compared.
func (r *Results) Measure(program string, python setup.Interpreter, job string, length time.Duration) error {
	j, err := paired.StartNamedWithTwin(jobName, setup.OnJobCore, python, job)
	if err != nil {
		return err
	}
	defer j.Kill()
	nothing := func() error { return nil }
	without := max(length/6, 2*each)
	setup.Say("  %s, %s: %s without the agent …", python.Name, job, without)
	before, err := j.Stretch(without, each, nothing)
	if err != nil {
		return err
	}
	a, err := startAgent(program)
	if err != nil {
		return err
	}
	defer a.remove()
	if err := a.watches(); err != nil {
		return err
	}
	setup.Say("  %s with it …", length)
	var taken []usage
	look := func() error {
		u, err := a.usage()
		taken = append(taken, u)
		return err
	}
	if err := look(); err != nil {
		return err
	}
	began := time.Now()
	with, err := j.Stretch(length, each, look)
	if err != nil {
		return err
	}
	took := time.Since(began)
	one := &result{python: python, job: job, length: took}
	if one.seen, err = a.job(); err != nil {
		return err
	}
	if err := a.Stop(); err != nil {
		return err
	}
	after, err := j.Stretch(without, each, nothing)
	if err != nil {
		return err
	}
	steps, err := j.Stop()
	if err != nil {
		return err
	}
	one.judge(steps.Ratios(with), steps.Ratios(before), steps.Ratios(after), taken)
	one.both, one.bothFloor = figure.RatioOf(steps.Both(with), slices.Concat(steps.Both(before), steps.Both(after))),
		figure.RatioOf(steps.Both(after), steps.Both(before))
	one.twinWindows = windowsOf(steps.TwinEnds(with))
	*r = append(*r, one)
	setup.Say("  %s", one)
	return nil
}

func (r *result) judge(with, before, after []float64, taken []usage) {
	r.ratio, r.floor = figure.RatioOf(with, slices.Concat(before, after)), figure.RatioOf(after, before)
	r.windows = len(with)
	first, last := taken[0], taken[len(taken)-1]
	r.cpu, r.watchingCPU = (last.cpu-first.cpu)/r.length.Seconds(), whileWatching(taken)
	r.store = float64(last.store-first.store) / r.length.Hours()
	r.spool = last.spool
	for quarter := range 4 {
		part := taken[quarter*len(taken)/4 : (quarter+1)*len(taken)/4]
		most := usage{}
		for _, u := range part {
			if u.state != agentrun.Watching {
				r.inWindows = max(r.inWindows, u.worker)
				continue
			}
			most.rss, most.worker = max(most.rss, u.rss), max(most.worker, u.worker)
		}
		r.rss, r.worker = append(r.rss, most.rss), append(r.worker, most.worker)
	}
}

// whileWatching is what of a core the agent takes between two looks that both find it watching.
func whileWatching(taken []usage) float64 {
	var spent, over float64
	for i := 1; i < len(taken); i++ {
		if before, now := taken[i-1], taken[i]; before.state == agentrun.Watching && now.state == agentrun.Watching {
			spent, over = spent+now.cpu-before.cpu, over+now.at.Sub(before.at).Seconds()
		}
	}
	return spent / max(over, each.Seconds())
}

// windowsOf is how many windows an agent takes of a job whose steps end at these times: of
// one that nobody traces, it is what the machine does by itself.
func windowsOf(ends []int64) (n int) {
	cooldown := time.Duration(config.Defaults().Cooldown)
	rule, last := trigger.New(trigger.Published), int64(0)
	for i := 1; i < len(ends); i++ {
		at := ends[i]
		if rule.Step(at, at-ends[i-1]) == nil || n > 0 && at-last < cooldown.Nanoseconds() {
			continue
		}
		n, last = n+1, at
		rule.Restart()
	}
	return n
}

// noise is how far a ratio without an agent is from 1: what the machine does by itself.
func noise(floor figure.Estimate) float64 {
	return max(floor.High-1, 1-floor.Low)
}

// budget is what an always-on recording may take of the job's time.
const budget = 0.01

func (r *result) String() string {
	return fmt.Sprintf("%s, %s, %s: step × %.4f (%.4f … %.4f), floor ±%.1f %%; both × %.4f (%.4f … %.4f), floor ±%.1f %%; agent %.2f %% of "+
		"a core (%.2f watching), RSS %s MiB, of the worker %s (in windows %.0f), store %.2f MB an hour, spool %.1f MB; %d steps seen, %d "+
		"windows (the twin's: %d)",
		r.python.Name, r.job, r.length.Round(time.Second), r.ratio.Median, r.ratio.Low, r.ratio.High, 100*noise(r.floor), r.both.Median,
		r.both.Low, r.both.High, 100*noise(r.bothFloor), 100*r.cpu, 100*r.watchingCPU,
		quarters(r.rss), quarters(r.worker), r.inWindows, r.store/1e6, float64(r.spool)/1e6, r.seen.Status.Steps, r.seen.Status.Windows,
		r.twinWindows)
}

func quarters(values []float64) string {
	var said []string
	for _, v := range values {
		said = append(said, fmt.Sprintf("%.0f", v))
	}
	return strings.Join(said, ", ")
}

const text = `The agent as it is deployed, with its defaults, watches a job and leaves its twin alone: the same job, never traced, on the same core. A ratio is how many of the twin's steps one of the job's takes, the mean of windows of ten seconds, without what each waits for the core; it is set over that of the time before and after, without the agent. The floor is what the time after is over the time before. What the kernel does for the tracer when it takes the job off the core is in the time of who comes next, the twin, so that a ratio below 1 is no gain: a step of both together has all of it, and the machine's own drift. CPU time is that of the agent and its worker on the other core, of one core; what the probes take is the job's, and in the ratio. RSS is looked at each ten seconds: at the most in each quarter of the time while the worker watches, after windows too, and while it takes one. Windows that the agent took of its own accord are in all of it but the CPU time while it watches, which is of those ten seconds in which it took none. The twin's windows are those that an agent would have taken of the steps of a job that nobody traces, by the same rule and cool-down: a machine that others share is 5 % slower every now and then.`

// Section is the table of them.
func (r Results) Section(p *figure.Page) {
	if len(r) == 0 {
		return
	}
	p.Line("## Always on\n\n%s\n", text)
	p.Table("job", "PyTorch", "for", "step, over without (95 %)", "floor", "both together", "floor", "CPU of a core", "while it watches",
		"RSS of the worker, MiB", "in windows", "with the agent, MiB", "store, MB an hour", "spool, MB", "windows", "the twin's")
	for _, o := range r {
		p.Row(o.job, o.python.Name, o.length.Round(time.Second).String(), fmt.Sprintf("%.4f (%.4f … %.4f)", o.ratio.Median, o.ratio.Low,
			o.ratio.High),
			fmt.Sprintf("±%.1f %%", 100*noise(o.floor)), fmt.Sprintf("%.4f (%.4f … %.4f)", o.both.Median, o.both.Low, o.both.High),
			fmt.Sprintf("±%.1f %%", 100*noise(o.bothFloor)), fmt.Sprintf("%.2f %%", 100*o.cpu), fmt.Sprintf("%.2f %%", 100*o.watchingCPU),
			quarters(o.worker), fmt.Sprintf("%.0f", o.inWindows), quarters(o.rss),
			fmt.Sprintf("%.2f", o.store/1e6), fmt.Sprintf("%.1f", float64(o.spool)/1e6), fmt.Sprint(o.seen.Status.Windows),
			fmt.Sprint(o.twinWindows))
	}
	p.Line("")
}

// Targets are what of them was promised.
func (r Results) Targets(p *figure.Page) {
	for _, o := range r {
		name := fmt.Sprintf("%s, %s", o.python.Name, o.job)
		p.Row(fmt.Sprintf("always on for %s: step time within 1 %% plus the noise floor", o.length.Round(time.Minute)), name,
			fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*(o.ratio.Median-1), 100*noise(o.floor)), figure.WithinNoise(o.ratio.Median-1 <= budget+
				noise(o.floor), noise(o.floor)))
		p.Row("always on: agent and worker < 1 % of a core at `anchor`", name, fmt.Sprintf("%.2f %%", 100*o.watchingCPU),
			figure.Verdict(o.watchingCPU < budget))
		p.Row("always on: agent and worker < 1 % of a core, windows included", name, fmt.Sprintf("%.2f %%, %d windows", 100*o.cpu,
			o.seen.Status.Windows), figure.Verdict(o.cpu < budget))
		p.Row("always on: RSS of the worker at `anchor` < 200 MB", name, fmt.Sprintf("%.0f MiB", slices.Max(o.worker)),
			figure.Verdict(slices.Max(o.worker) < 190))
		p.Row("always on: disk < 100 MB an hour and rank", name, fmt.Sprintf("%.1f MB", o.store/1e6), figure.Verdict(o.store < 100e6))
	}
}
