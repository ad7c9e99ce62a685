package training

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/bench/recording"
	"github.com/ebpfprof/ebpfprof/internal/bench/setup"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
)

// What two parts of a recording cost that can be left out: the shapes of operators'
// arguments, and how long allocations took.

const (
	memoryOnly    = "`--budget off --probe memory`"
	withoutTimes  = "`--budget off --probe memory --exclude symbol=alloc_cpu`: no durations"
	shapedOfStep  = 208.0 / 313 // the operators of mlp.py's step that are in the table of shapes
	mostShapes    = 0.4         // µs
	priceText     = `The worst case again, by parts, each in turn with nothing. Of its 313 operators a step 208 have shapes; a CPU tensor's storage is allocated and freed without a budget. Compared is the CPU time of a step, which other work on the machine lengthens less than the step.`
	minPricedRuns = 5
)

// pricesResult is one interpreter's; the bytes are of a row of span, on disk.
type pricesResult struct {
	paired.Result
	shaped, shapeless float64
}

func (r *Results) MeasurePrices(s setup.Settings, python setup.Interpreter) error {
	j, err := paired.Start(python, "mlp.py")
	if err != nil {
		return err
	}
	defer j.Kill()
	var trials []*recording.Probed
	open := func(probe, exclude string, shapes bool) (*recording.Probed, error) {
		only, err := filter.New(probe, exclude)
		if err != nil {
			return nil, err
		}
		t, err := recording.ProbeWith(tracer.Options{PIDs: []int{j.Pid}, Filter: only, Level: tracer.LevelWindow, Follow: true, NoShapes: !shapes})
		if err == nil {
			trials = append(trials, t)
		}
		return t, err
	}
	treatments := []paired.Treatment{paired.Nothing(s.Window)}
	for _, part := range []struct {
		name, probe, exclude string
		shapes               bool
	}{
		{paired.OperatorsOnly, "op", "", true}, {paired.WithoutShapes, "op", "", false}, {memoryOnly, "memory", "", false}, {withoutTimes, "memory", "symbol=alloc_cpu", false},
	} {
		t, err := open(part.probe, part.exclude, part.shapes)
		if err != nil {
			return err
		}
		defer t.End()
		treatments = append(treatments, paired.Trial(part.name, s.Window, t))
	}
	s.Rounds = max(minPricedRuns, s.Rounds)
	var results []paired.Result
	judge, err := paired.Run(&results, j, python, "mlp.py", s, treatments)
	if err != nil {
		return err
	}
	result := pricesResult{shaped: trials[0].End(), shapeless: trials[1].End()}
	all, err := j.Stop()
	if err != nil {
		return err
	}
	judge(all)
	result.Result = results[0]
	r.prices = append(r.prices, result)
	return nil
}

// shapesPrice is what shapes add to an operator that has them, µs.
func shapesPrice(m paired.Result) float64 {
	with, without := paired.Find(m, paired.OperatorsOnly), paired.Find(m, paired.WithoutShapes)
	return (with.CpuDifference.Median/with.Calls - without.CpuDifference.Median/without.Calls) / 1e3 / shapedOfStep
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
	p.Row("shapes, an operator that has them: ≤ 0.4 µs more", m.Python.Name, fmt.Sprintf("%.2f µs", cost), figure.Verdict(cost <= mostShapes))
}

func (r *Results) PricesOfParts(p *figure.Page) {
	if len(r.prices) == 0 {
		return
	}
	p.Line("## Shapes, and the time of allocations\n\n%s\n", priceText)
	p.Table("PyTorch", "with", "step, ms", "CPU time a step, µs more (95 %)", "calls a step")
	for _, m := range r.prices {
		for _, c := range m.Comparisons {
			calls := ""
			if c.Calls > 0 {
				calls = fmt.Sprintf("%.0f", c.Calls)
			}
			p.Row(m.Python.Name, c.Name, fmt.Sprintf("%.3f → %.3f", c.Off/1e6, c.On/1e6), fmt.Sprintf("%+.0f (%+.0f … %+.0f)", c.CpuDifference.Median/1e3, c.CpuDifference.Low/1e3, c.CpuDifference.High/1e3), calls)
		}
	}
	p.Line("")
	for _, m := range r.prices {
		allocations := paired.Find(m.Result, withoutTimes)
		p.Line("- PyTorch %s: shapes add %.2f µs to an operator that has them, and %.1f bytes to a row on disk (%.1f instead of %.1f). An allocation or a free takes %.2f µs, and the duration of an allocation another %.2f µs.",
			m.Python.Name, shapesPrice(m.Result), m.shaped-m.shapeless, m.shaped, m.shapeless, allocations.CpuDifference.Median/allocations.Calls/1e3, timesPrice(m.Result))
	}
	p.Line("")
}
