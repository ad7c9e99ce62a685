package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// results are all figures of a run.
type results struct {
	started time.Time
	took    time.Duration
	quick   bool
	command string

	hit      map[string]time.Duration
	programs []programResult
	plans    []planResult
	launch   *launchResult
	// launchStacks is of the same part.
	launchStacks *launchStacks
	decoding     *decodeResult
	attach       []attachResult
	paired       []pairedResult // one an interpreter
	bytes        []float64      // a span of those, on disk
	load         []float64      // of the machine, at every part
	budget       []pairedResult
	budgetReal   []pairedResult // of a network of a real shape
	models       []pairedResult
	samples      []pairedResult
	samplesAlone []pairedResult // with a twin

	allocator []pairedResult
	memory    *memoryResult

	pythonWalks []*pythonWalk
	nativeWalks []*nativeWalk
	mixed       []*mixedStack
}

type programResult struct {
	python interpreter
	costs  map[string]tracer.ProgramCost
}

type planResult struct {
	name   string
	probes int
	ms     spread
}

type pairedResult struct {
	python      interpreter
	job         string
	comparisons []*comparison
}

func (r *results) measureHits() (err error) {
	r.hit, err = tracer.HitCost()
	return err
}

// measureWorstCase does everything that is done to the worst case, in one
// running job; the judges look at its steps once it has ended.
func (r *results) measureWorstCase(s settings, python interpreter) error {
	j, err := startJob(python, "mlp.py")
	if err != nil {
		return err
	}
	defer j.kill()
	operators, err := probe(j, "op")
	if err != nil {
		return err
	}
	defer operators.end()
	var judges []func(against)
	for _, part := range []struct {
		name    string
		measure func() (func(against), error)
	}{
		{"plan", func() (func(against), error) { return nil, r.measurePlan(j, python) }},
		{"programs", func() (func(against), error) { return nil, r.measurePrograms(operators, python, 2*s.window) }},
		{"attach", func() (func(against), error) { return r.measureAttach(s, operators, python) }},
		{"paired", func() (func(against), error) { return r.measurePaired(s, j, operators, python) }},
	} {
		if !s.wanted(part.name) {
			continue
		}
		say("%s, PyTorch %s …", part.name, python.name)
		judge, err := part.measure()
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		if judge != nil {
			judges = append(judges, judge)
		}
	}
	if bytes := operators.end(); s.wanted("paired") {
		r.bytes = append(r.bytes, bytes)
	}
	all, err := j.stop()
	if err != nil {
		return err
	}
	for _, judge := range judges {
		judge(all)
	}
	return nil
}

// measurePlan plans the probes of the job's libtorch_cpu.
func (r *results) measurePlan(j *job, python interpreter) error {
	groups, err := tracer.SelectGroups(tracer.LevelWindow, nil)
	if err != nil {
		return err
	}
	library, err := torchLibrary(j.pid)
	if err != nil {
		return err
	}
	result := planResult{name: python.name}
	for range 5 {
		start := time.Now()
		e, err := elf.Open(library)
		if err != nil {
			return err
		}
		result.probes = len(plan.Library(e, library, groups).Probes)
		result.ms.add(float64(time.Since(start)) / 1e6)
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
func (r *results) measurePrograms(t *probed, python interpreter, length time.Duration) error {
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
		say("  %-12s %9d runs, %s each", name, costs[name].Runs, costs[name].PerRun)
	}
	r.programs = append(r.programs, programResult{python, costs})
	return t.Detach()
}

// measurePaired has the worst case under everything in turn.
func (r *results) measurePaired(s settings, j *job, operators *probed, python interpreter) (func(against), error) {
	everything, err := probe(j)
	if err != nil {
		return nil, err
	}
	defer everything.end()
	shapeless, err := probeWith(tracer.Options{
		PIDs: []int{j.pid}, Filter: filter.OfGroups("op"), Level: tracer.LevelWindow, Follow: true, NoShapes: true,
	})
	if err != nil {
		return nil, err
	}
	defer shapeless.end()
	return r.run(&r.paired, j, python, "mlp.py", s, []treatment{
		nothing(s.window),
		trial(operatorsOnly, s.window, operators),
		trial(withoutShapes, s.window, shapeless),
		trial(allGroups, s.window, everything),
		profiler(profilerPlain, s.window/2, j, "plain"),
		profiler(profilerShapes, s.window/2, j, "shapes"),
		profiler(profilerStacks, s.window/2, j, "stacks"),
	})
}

const (
	operatorsOnly  = "`--budget off --probe op`, no stacks"
	operatorsLines = "`--budget off --probe op`, the line behind each"
	withoutShapes  = "`--budget off --probe op --no-shapes`"
	allGroups      = "`--budget off`, all groups"
	atAnchor       = "`--level anchor` (budget 1 %)"
	atWindow       = "defaults: `--level window --budget 5%`"
	profilerPlain  = "torch.profiler"
	profilerShapes = "torch.profiler, with shapes"
	profilerStacks = "torch.profiler, with stacks"
)

func (r *results) run(to *[]pairedResult, j *job, python interpreter, name string, s settings, treatments []treatment) (func(against), error) {
	comparisons, err := interleave(j, s.rounds, s.window, treatments)
	if err != nil {
		return nil, err
	}
	*to = append(*to, pairedResult{python, name, comparisons})
	return func(all against) {
		for _, c := range comparisons {
			c.judge(all)
			say("  %s, %s, %s: %s", python.name, name, c.name, c)
		}
	}, nil
}

// runToTheEnd is run for a job that nothing else is measured on: it is stopped
// and judged.
func (r *results) runToTheEnd(to *[]pairedResult, j *job, python interpreter, name string, s settings, treatments []treatment) error {
	judge, err := r.run(to, j, python, name, s, treatments)
	if err != nil {
		return err
	}
	all, err := j.stop()
	if err != nil {
		return err
	}
	judge(all)
	return nil
}

// measureBudget has the worst case, and a network of a real shape, under the default
// budgets. The windows are longer than the governor's cycles, and the mean counts: the
// price is paid in few steps.
func (r *results) measureBudget(s settings, python interpreter) error {
	s.rounds = max(2, (s.rounds+1)/2)
	if err := r.measureBudgetOf(&r.budget, s, python, "mlp.py"); err != nil {
		return err
	}
	s.rounds = max(2, (s.rounds+1)/2)
	return r.measureBudgetOf(&r.budgetReal, s, python, "transformer.py")
}

func (r *results) measureBudgetOf(to *[]pairedResult, s settings, python interpreter, name string) error {
	j, err := startWithTwin(onJobCore, python, name)
	if err != nil {
		return err
	}
	defer j.kill()
	window := tracer.Options{PIDs: []int{j.pid}, Level: tracer.LevelWindow, Follow: true, Budget: 0.05}
	anchor := tracer.Options{PIDs: []int{j.pid}, Level: tracer.LevelAnchor, Follow: true, Budget: 0.01}
	treatments := []treatment{
		nothing(s.long),
		session(atWindow, s.long, 2*time.Second, window),
		session(atAnchor, s.long, 2*time.Second, anchor),
	}
	s.window = s.long / 2
	return r.runToTheEnd(to, j, python, name, s, treatments)
}

// measureModel has a training step of a real shape.
func (r *results) measureModel(s settings, python interpreter, name string) error {
	j, err := startJob(python, name)
	if err != nil {
		return err
	}
	defer j.kill()
	operators, err := probe(j, "op")
	if err != nil {
		return err
	}
	defer operators.end()
	lines, err := probeLines(j, "op")
	if err != nil {
		return err
	}
	defer lines.end()
	everything, err := probe(j)
	if err != nil {
		return err
	}
	defer everything.end()
	s.window = min(max(s.window, 8*j.step), 2*time.Second)
	s.rounds = max(3, s.rounds/2)
	if j.step > 100*time.Millisecond {
		s.rounds = 3
	}
	return r.runToTheEnd(&r.models, j, python, name, s, []treatment{
		nothing(s.window),
		trial(operatorsOnly, s.window, operators),
		trial(operatorsLines, s.window, lines),
		trial(allGroups, s.window, everything),
		profiler(profilerPlain, s.window, j, "plain"),
		profiler(profilerStacks, s.window, j, "stacks"),
	})
}
