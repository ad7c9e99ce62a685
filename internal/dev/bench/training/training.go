// Package training measures what recording a training loop costs it: the worst case, real
// shapes, under budgets, and by parts.
package training

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/recording"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Results are the figures of training jobs under probes.
type Results struct {
	hit        map[string]time.Duration
	programs   []programResult
	plans      []planResult
	attach     []attachResult
	Paired     []paired.Result // one an interpreter
	Bytes      []float64       // a span of those, on disk
	Budget     []paired.Result
	BudgetReal []paired.Result // of a network of a real shape
	Models     []paired.Result

	allocator   []paired.Result
	prices      []pricesResult
	allocations []allocationTimes
}

type programResult struct {
	python setup.Interpreter
	costs  map[string]tracer.ProgramCost
}

type planResult struct {
	name   string
	probes int
	ms     figure.Spread
}

func (r *Results) MeasureHits() (err error) {
	r.hit, err = tracer.HitCost()
	return err
}

// startWithOperators starts a job, and plans the probes of its operators.
func startWithOperators(python setup.Interpreter, name string) (*paired.Job, *recording.Probed, error) {
	j, err := paired.Start(python, name)
	if err != nil {
		return nil, nil, err
	}
	operators, err := recording.Probe(j.Pid, "op")
	if err != nil {
		j.Kill()
		return nil, nil, err
	}
	return j, operators, nil
}

// MeasureWorstCase does everything that is done to the worst case, in one
// running job; the judges look at its steps once it has ended.
func (r *Results) MeasureWorstCase(s setup.Settings, python setup.Interpreter) error {
	j, operators, err := startWithOperators(python, "mlp.py")
	if err != nil {
		return err
	}
	defer j.Kill()
	defer operators.End()
	var judges []func(paired.Against)
	for _, part := range []struct {
		name    string
		measure func() (func(paired.Against), error)
	}{
		{"plan", func() (func(paired.Against), error) { return nil, r.measurePlan(j, python) }},
		{"programs", func() (func(paired.Against), error) { return nil, r.measurePrograms(operators, python, 2*s.Window) }},
		{"attach", func() (func(paired.Against), error) { return r.measureAttach(s, operators, python) }},
		{"paired", func() (func(paired.Against), error) { return r.measurePaired(s, j, operators, python) }},
	} {
		if !s.Wanted(part.name) {
			continue
		}
		setup.Say("%s, PyTorch %s …", part.name, python.Name)
		judge, err := part.measure()
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		if judge != nil {
			judges = append(judges, judge)
		}
	}
	if bytes := operators.End(); s.Wanted("paired") {
		r.Bytes = append(r.Bytes, bytes)
	}
	all, err := j.Stop()
	if err != nil {
		return err
	}
	for _, judge := range judges {
		judge(all)
	}
	return nil
}

// measurePlan plans the probes of the job's libtorch_cpu.
func (r *Results) measurePlan(j *paired.Job, python setup.Interpreter) error {
	groups, err := tracer.SelectGroups(tracer.LevelWindow, nil)
	if err != nil {
		return err
	}
	library, err := torchLibrary(j.Pid)
	if err != nil {
		return err
	}
	result := planResult{name: python.Name}
	for range 5 {
		start := time.Now()
		e, err := elf.Open(library)
		if err != nil {
			return err
		}
		result.probes = len(plan.Library(e, library, groups).Probes)
		result.ms.Add(float64(time.Since(start)) / 1e6)
		e.Close()
	}
	r.plans = append(r.plans, result)
	return nil
}

func torchLibrary(pid int) (string, error) {
	p, err := process.Open(pid)
	if err != nil {
		return "", err
	}
	libraries, err := p.Libraries()
	if err != nil {
		return "", err
	}
	for _, l := range libraries {
		if base := filepath.Base(l.Path); len(base) > 12 && base[:12] == "libtorch_cpu" {
			return l.Path, nil
		}
	}
	return "", fmt.Errorf("pid %d has no libtorch_cpu", pid)
}

// measurePrograms asks the kernel what a run of each program takes; the asking
// itself costs, so nothing else is measured meanwhile.
func (r *Results) measurePrograms(t *recording.Probed, python setup.Interpreter, length time.Duration) error {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return fmt.Errorf("turning the kernel's statistics on: %w", err)
	}
	defer stats.Close()
	if err := t.Attach(); err != nil {
		return err
	}
	time.Sleep(length)
	costs, err := t.ProgramCosts()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		setup.Say("  %-12s %9d runs, %s each", name, costs[name].Runs, costs[name].PerRun)
	}
	r.programs = append(r.programs, programResult{python, costs})
	return t.Detach()
}

// measurePaired has the worst case under everything in turn.
func (r *Results) measurePaired(s setup.Settings, j *paired.Job, operators *recording.Probed,
	python setup.Interpreter) (func(paired.Against), error) {
	everything, err := recording.Probe(j.Pid)
	if err != nil {
		return nil, err
	}
	defer everything.End()
	shapeless, err := recording.ProbeWith(tracer.Options{
		PIDs: []int{j.Pid}, Filter: filter.OfGroups("op"), Level: tracer.LevelWindow, Follow: true, NoShapes: true,
	})
	if err != nil {
		return nil, err
	}
	defer shapeless.End()
	return paired.Run(&r.Paired, j, python, "mlp.py", s, []paired.Treatment{
		paired.Nothing(s.Window),
		paired.Trial(paired.OperatorsOnly, s.Window, operators),
		paired.Trial(paired.WithoutShapes, s.Window, shapeless),
		paired.Trial(paired.AllGroups, s.Window, everything),
		paired.Profiler(paired.ProfilerPlain, s.Window/2, j, "plain"),
		paired.Profiler(paired.ProfilerShapes, s.Window/2, j, "shapes"),
		paired.Profiler(paired.ProfilerStacks, s.Window/2, j, "stacks"),
	})
}

// MeasureBudget has the worst case, and a network of a real shape, under the default
// budgets. The windows are longer than the governor's cycles, and the mean counts: the
// price is paid in few steps.
func (r *Results) MeasureBudget(s setup.Settings, python setup.Interpreter) error {
	s.Rounds = max(2, (s.Rounds+1)/2)
	if err := r.measureBudgetOf(&r.Budget, s, python, "mlp.py"); err != nil {
		return err
	}
	s.Rounds = max(2, (s.Rounds+1)/2)
	return r.measureBudgetOf(&r.BudgetReal, s, python, "transformer.py")
}

func (r *Results) measureBudgetOf(to *[]paired.Result, s setup.Settings, python setup.Interpreter, name string) error {
	j, err := paired.StartWithTwin(setup.OnJobCore, python, name)
	if err != nil {
		return err
	}
	defer j.Kill()
	window := tracer.Options{PIDs: []int{j.Pid}, Level: tracer.LevelWindow, Follow: true, Budget: 0.05}
	anchor := tracer.Options{PIDs: []int{j.Pid}, Level: tracer.LevelAnchor, Follow: true, Budget: 0.01}
	treatments := []paired.Treatment{
		paired.Nothing(s.Long),
		paired.Session(paired.AtWindow, s.Long, 2*time.Second, window),
		paired.Session(paired.AtAnchor, s.Long, 2*time.Second, anchor),
	}
	s.Window = s.Long / 2
	return paired.RunToTheEnd(to, j, python, name, s, treatments)
}

// MeasureModel has a training step of a real shape.
func (r *Results) MeasureModel(s setup.Settings, python setup.Interpreter, name string) error {
	j, operators, err := startWithOperators(python, name)
	if err != nil {
		return err
	}
	defer j.Kill()
	defer operators.End()
	lines, err := recording.ProbeLines(j.Pid, "op")
	if err != nil {
		return err
	}
	defer lines.End()
	everything, err := recording.Probe(j.Pid)
	if err != nil {
		return err
	}
	defer everything.End()
	s.Window = min(max(s.Window, 8*j.Step), 2*time.Second)
	s.Rounds = max(3, s.Rounds/2)
	if j.Step > 100*time.Millisecond {
		s.Rounds = 3
	}
	return paired.RunToTheEnd(&r.Models, j, python, name, s, []paired.Treatment{
		paired.Nothing(s.Window),
		paired.Trial(paired.OperatorsOnly, s.Window, operators),
		paired.Trial(paired.OperatorsLines, s.Window, lines),
		paired.Trial(paired.AllGroups, s.Window, everything),
		paired.Profiler(paired.ProfilerPlain, s.Window, j, "plain"),
		paired.Profiler(paired.ProfilerStacks, s.Window, j, "stacks"),
	})
}
