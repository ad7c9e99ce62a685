package training

import (
	"fmt"
	"math"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/recording"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
)

// What the parts of a recording cost that can be left out: the line behind an operator, the
// shapes of its arguments, and how long allocations took.

const (
	linesOnly     = "`--budget off --probe op --no-shapes`, the line behind each"
	memoryOnly    = "`--budget off --probe memory`"
	withoutTimes  = "`--budget off --probe memory --exclude symbol=alloc_cpu`: no durations"
	shapedOfStep  = 208.0 / 313 // the operators of mlp.py's step that are in the table of shapes
	mostShapes    = 0.4         // µs
	priceText     = `The worst case again, by parts, each in turn with nothing. Of its 313 operators a step 208 have shapes; a CPU tensor's storage is allocated and freed without a budget. Compared is the CPU time of a step, which other work on the machine lengthens less than the step. A price is the difference of two, so that there are four times as many rounds as of other parts.`
	minPricedRuns = 5
	moreRuns      = 4              // times those of other parts: the price of one is the difference of two
	noWait        = 24 * time.Hour // Python's lines come with stacks; no wait is as long
)

// pricesResult is one interpreter's; the bytes are of a row on disk: of a span, with shapes,
// without, and with its line and the table of stacks; and of an event of memory.
type pricesResult struct {
	paired.Result
	shaped, shapeless, lined, allocated, untimed float64
}

func (r *Results) MeasurePrices(s setup.Settings, python setup.Interpreter) error {
	j, err := paired.Start(python, "mlp.py")
	if err != nil {
		return err
	}
	defer j.Kill()
	result := pricesResult{}
	var ends []func()
	treatments := []paired.Treatment{paired.Nothing(s.Window)}
	for _, part := range []struct {
		name, probe, exclude string
		with                 tracer.Options
		bytes                *float64
		tables               []string
	}{
		{paired.OperatorsOnly, "op", "", tracer.Options{}, &result.shaped, []string{"span"}},
		{paired.WithoutShapes, "op", "", tracer.Options{NoShapes: true}, &result.shapeless, []string{"span"}},
		{linesOnly, "op", "", tracer.Options{NoShapes: true, OffCPU: noWait}, &result.lined, []string{"span", "stack"}},
		{memoryOnly, "memory", "", tracer.Options{}, &result.allocated, []string{"memory"}},
		{withoutTimes, "memory", "symbol=alloc_cpu", tracer.Options{}, &result.untimed, []string{"memory"}},
	} {
		options := part.with
		options.PIDs, options.Level, options.Follow = []int{j.Pid}, tracer.LevelWindow, true
		if options.Filter, err = filter.New(part.probe, part.exclude); err != nil {
			return err
		}
		t, err := recording.ProbeWith(options)
		if err != nil {
			return err
		}
		defer t.End()
		ends = append(ends, func() { *part.bytes = t.EndWith(part.tables...) })
		treatments = append(treatments, paired.Trial(part.name, s.Window, t))
	}
	s.Rounds = max(minPricedRuns, moreRuns*s.Rounds)
	var results []paired.Result
	judge, err := paired.Run(&results, j, python, "mlp.py", s, treatments)
	if err != nil {
		return err
	}
	for _, end := range ends {
		end()
	}
	all, err := j.Stop()
	if err != nil {
		return err
	}
	judge(all)
	result.Result = results[0]
	r.prices = append(r.prices, result)
	return nil
}

// shapesPrice is what shapes add to an operator that has them, µs; either may be off by what
// its interval says, independently of the other.
func shapesPrice(m paired.Result) figure.Estimate {
	with, without := paired.Find(m, paired.OperatorsOnly), paired.Find(m, paired.WithoutShapes)
	each := func(c *paired.Comparison, of float64) float64 { return of / c.Calls / 1e3 / shapedOfStep }
	price := each(with, with.CpuDifference.Median) - each(without, without.CpuDifference.Median)
	below := math.Hypot(each(with, with.CpuDifference.Median-with.CpuDifference.Low),
		each(without, without.CpuDifference.High-without.CpuDifference.Median))
	above := math.Hypot(each(with, with.CpuDifference.High-with.CpuDifference.Median),
		each(without, without.CpuDifference.Median-without.CpuDifference.Low))
	return figure.Estimate{Median: price, Low: price - below, High: price + above}
}

// linePrice is what the line behind each operator adds to one, µs: that of the outermost of a
// thread is walked or found again, the others inherit it.
func linePrice(m paired.Result) float64 {
	with, without := paired.Find(m, linesOnly), paired.Find(m, paired.WithoutShapes)
	return (with.CpuDifference.Median/with.Calls - without.CpuDifference.Median/without.Calls) / 1e3
}

// timesPrice is what its duration adds to an allocation, µs. Of the calls that are counted
// without it half are allocations.
func timesPrice(m paired.Result) float64 {
	with, without := paired.Find(m, memoryOnly), paired.Find(m, withoutTimes)
	return (with.CpuDifference.Median - without.CpuDifference.Median) / (without.Calls / 2) / 1e3
}

func (r *Results) PriceTargets(p *figure.Page) {
	for _, m := range r.prices {
		shapesTarget(p, m.Result)
	}
}

func shapesTarget(p *figure.Page, m paired.Result) {
	cost := shapesPrice(m)
	p.Row("shapes, an operator that has them: ≤ 0.4 µs more", m.Python.Name, fmt.Sprintf("%.2f µs (%.2f … %.2f)", cost.Median, cost.Low,
		cost.High), figure.Verdict(cost.Median <= mostShapes))
}

func (r *Results) PricesOfParts(p *figure.Page) {
	if len(r.prices) == 0 {
		return
	}
	p.Line("## The price of each part\n\n%s\n", priceText)
	p.Table("PyTorch", "with", "step, ms", "CPU time a step, µs more (95 %)", "calls a step")
	for _, m := range r.prices {
		for _, c := range m.Comparisons {
			calls := ""
			if c.Calls > 0 {
				calls = fmt.Sprintf("%.0f", c.Calls)
			}
			p.Row(m.Python.Name, c.Name, fmt.Sprintf("%.3f → %.3f", c.Off/1e6, c.On/1e6), fmt.Sprintf("%+.0f (%+.0f … %+.0f)",
				c.CpuDifference.Median/1e3, c.CpuDifference.Low/1e3, c.CpuDifference.High/1e3), calls)
		}
	}
	p.Line("")
	p.Table("PyTorch", "part", "left out by", "µs more a call", "bytes a row on disk")
	for _, m := range r.prices {
		operators, allocations := paired.Find(m.Result, paired.WithoutShapes), paired.Find(m.Result, withoutTimes)
		each := func(c *paired.Comparison) float64 { return c.CpuDifference.Median / c.Calls / 1e3 }
		row := func(part, leaves string, cost, bytes float64) {
			p.Row(m.Python.Name, part, leaves, fmt.Sprintf("%.2f", cost), fmt.Sprintf("%.1f", bytes))
		}
		row("an operator, by itself", "`--exclude op`", each(operators), m.shapeless)
		row("its shapes, if it has them; bytes over all operators", "`--no-shapes`", shapesPrice(m.Result).Median, m.shaped-m.shapeless)
		row("its Python line, over all operators; bytes with the table of stacks", "`--off-cpu-threshold 0 --frequency 0`", linePrice(m.Result),
			m.lined-m.shapeless)
		row("an allocation or a free, by itself", "`--exclude memory`", each(allocations), m.untimed)
		row("how long an allocation took; bytes over all events", "`--exclude symbol=alloc_cpu`", timesPrice(m.Result), m.allocated-m.untimed)
	}
	p.Line("\nA generated kernel of `torch.compile` is a row like an operator's, and priced like one. Reads and writes are below.\n")
}
