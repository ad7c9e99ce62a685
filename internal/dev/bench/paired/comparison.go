package paired

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
)

type Result struct {
	Python      setup.Interpreter
	Job         string
	Comparisons []*Comparison
}

func Find(m Result, name string) *Comparison {
	for _, c := range m.Comparisons {
		if c.Name == name {
			return c
		}
	}
	return &Comparison{}
}

const (
	OperatorsOnly  = "`--budget off --probe op`, no stacks"
	OperatorsLines = "`--budget off --probe op`, the line behind each"
	WithoutShapes  = "`--budget off --probe op --no-shapes`"
	AllGroups      = "`--budget off`, all groups"
	AtAnchor       = "`--level anchor` (budget 1 %)"
	AtWindow       = "defaults: `--level window --budget 5%`"
	ProfilerPlain  = "torch.profiler"
	ProfilerShapes = "torch.profiler, with shapes"
	ProfilerStacks = "torch.profiler, with stacks"
)

func Run(to *[]Result, j *Job, python setup.Interpreter, name string, s setup.Settings, treatments []Treatment) (func(Against), error) {
	comparisons, err := interleave(j, s.Rounds, s.Window, treatments)
	if err != nil {
		return nil, err
	}
	*to = append(*to, Result{python, name, comparisons})
	return func(all Against) {
		for _, c := range comparisons {
			c.judge(all)
			setup.Say("  %s, %s, %s: %s", python.Name, name, c.Name, c)
		}
	}, nil
}

// RunToTheEnd is run for a job that nothing else is measured on: it is stopped
// and judged.
func RunToTheEnd(to *[]Result, j *Job, python setup.Interpreter, name string, s setup.Settings, treatments []Treatment) error {
	judge, err := Run(to, j, python, name, s, treatments)
	if err != nil {
		return err
	}
	all, err := j.Stop()
	if err != nil {
		return err
	}
	judge(all)
	return nil
}

// Comparison is what the pairs of one treatment say.
type Comparison struct {
	Name  string
	Pairs []pair
	Stops []float64 // milliseconds that ending the treatment took

	Off, On          float64 // median step, nanoseconds
	Share            figure.Estimate
	MeanShare        figure.Estimate
	Cpu, MeanCPU     figure.Estimate // the same of CPU time
	Difference       figure.Estimate // nanoseconds a step
	CpuDifference    figure.Estimate
	Calls, Traps     float64 // a step
	TrapRate, Rate   float64 // a second: hits, calls
	Lost             uint64
	CpuShare, CpuRow float64 // of a core; nanoseconds a record
}

// judge compares the steps of the windows. With a twin, the shares are of the
// job's steps over the twin's.
func (c *Comparison) judge(jobs Against) {
	all := jobs.Own
	var off, on, shares, means, differences, cpus, meanCPUs, cpuDifferences []float64
	var records, seconds, cpu float64
	var count float64 // steps, parts of one too
	for _, p := range c.Pairs {
		a, x, b := all.In(p.before.from, p.before.to), all.In(p.On.from, p.On.to), all.In(p.after.from, p.after.to)
		if len(a) == 0 || len(x) == 0 || len(b) == 0 {
			continue
		}
		base, meanBase := (a.median()+b.median())/2, (a.Mean()+b.Mean())/2
		off, on = append(off, base), append(on, x.median())
		differences = append(differences, x.median()-base)
		if jobs.twin == nil {
			shares = append(shares, x.median()/base-1)
			means = append(means, x.Mean()/meanBase-1)
		} else {
			shares = append(shares, 2*jobs.median(p.On)/(jobs.median(p.before)+jobs.median(p.after))-1)
			means = append(means, 2*jobs.mean(p.On)/(jobs.mean(p.before)+jobs.mean(p.after))-1)
		}
		baseCPU, meanBaseCPU := (a.medianCPU()+b.medianCPU())/2, (a.meanCPU()+b.meanCPU())/2
		cpus, cpuDifferences = append(cpus, x.medianCPU()/baseCPU-1), append(cpuDifferences, x.medianCPU()-baseCPU)
		meanCPUs = append(meanCPUs, x.meanCPU()/meanBaseCPU-1)
		c.Calls += float64(p.On.Counted.Calls)
		c.Traps += float64(p.On.Counted.Traps)
		c.Lost += p.On.Counted.Lost
		records += float64(p.On.Counted.Records)
		seconds += p.On.Seconds()
		cpu += p.On.cpu
		count += p.On.Seconds() * 1e9 / x.Mean()
	}
	c.Off, c.On = figure.Median(off), figure.Median(on)
	c.Share, c.MeanShare, c.Difference = figure.EstimateOf(shares), figure.EstimateOf(means), figure.EstimateOf(differences)
	c.Cpu, c.MeanCPU, c.CpuDifference = figure.EstimateOf(cpus), figure.EstimateOf(meanCPUs), figure.EstimateOf(cpuDifferences)
	c.TrapRate, c.Rate = c.Traps/seconds, c.Calls/seconds
	c.Calls, c.Traps = c.Calls/max(1, count), c.Traps/max(1, count)
	c.CpuShare, c.CpuRow = cpu/seconds, cpu*1e9/max(1, records)
}

// String is the comparison in a line, for the log.
func (c *Comparison) String() string {
	line := "step " + c.Share.Percent() + ", mean " + c.MeanShare.Percent() + ", CPU " + c.Cpu.Percent()
	if c.Calls > 0 {
		line += fmt.Sprintf(", %.0f calls a step, %.0f hits/s, %.2f µs a call", c.Calls, c.TrapRate, c.Difference.Median/c.Calls/1e3)
	}
	return line
}
