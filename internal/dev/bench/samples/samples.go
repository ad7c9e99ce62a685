// Package samples measures what a sample costs: the walks of both kinds, the whole of it,
// and the job that is sampled.
package samples

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/tracer"
)

const (
	// sampledJob has steps short enough for many in a window.
	sampledJob = "transformer.py"

	At99Hertz  = "ebpfprof: samples at 99 Hz, waits from 1 ms"
	PySpyPlain = "py-spy at 100 Hz"
	PySpyDeep  = "py-spy at 100 Hz, `--native`"
	PerfRecord = "perf record at 99 Hz, `-e cpu-clock -g`"

	// attached is when the tracer has done what it does once: found the libraries,
	// fetched their tables.
	attached = 6 * time.Second
	// sampledWindow is one side of a pair.
	sampledWindow = 3 * time.Second
)

// Results are the figures of samples.
type Results struct {
	Samples      []paired.Result
	samplesAlone []paired.Result // with a twin

	pythonWalks []*pythonWalk
	nativeWalks []*nativeWalk
	mixed       []*mixedStack
}

// MeasureSampling samples a job that keeps both cores busy, by ebpfprof and by
// others in turn. Here no process has a core of its own: what a sampler needs, the
// job pays as well.
func (r *Results) MeasureSampling(s setup.Settings, python setup.Interpreter) error {
	// Threads that wait for each other spin by default: with anybody else on the
	// two cores steps take anything between 10 ms and a second.
	if err := os.Setenv("OMP_WAIT_POLICY", "passive"); err != nil {
		return err
	}
	defer os.Unsetenv("OMP_WAIT_POLICY")
	j, err := paired.StartOn("0,1", python, sampledJob, "--threads", "2", "--depth", "1", "--length", "32")
	if err != nil {
		return err
	}
	defer j.Kill()
	treatments := append([]paired.Treatment{
		paired.Nothing(sampledWindow),
		paired.Session(At99Hertz, sampledWindow, attached, sampled(j)),
	}, others(j.Pid)...)
	s.Rounds, s.Window = min(s.Rounds, 4), sampledWindow
	if err := paired.RunToTheEnd(&r.Samples, j, python, sampledJob, s, treatments); err != nil {
		return err
	}
	for _, c := range r.Samples[len(r.Samples)-1].Comparisons {
		setup.Say("  %s, %s: %.2f %% of a core", python.Name, c.Name, 100*c.CpuShare)
	}
	return r.measureSamplesAlone(s, python)
}

// sampled is what samples a job as the level window does.
func sampled(j *paired.Job) tracer.Options {
	return tracer.Options{
		PIDs: []int{j.Pid}, Level: tracer.LevelSamples, Follow: true,
		Frequency: 99, OffCPU: time.Millisecond, Counters: time.Second,
	}
}

// measureSamplesAlone has one thread on the job's core, the tracer on the other and
// a twin: what the samples take of the job itself, on a machine however noisy.
func (r *Results) measureSamplesAlone(s setup.Settings, python setup.Interpreter) error {
	j, err := paired.StartWithTwin(setup.OnJobCore, python, sampledJob, "--depth", "1", "--length", "32")
	if err != nil {
		return err
	}
	defer j.Kill()
	return paired.RunToTheEnd(&r.samplesAlone, j, python, sampledJob, s, []paired.Treatment{
		paired.Nothing(sampledWindow),
		paired.Session(At99Hertz, sampledWindow, attached, sampled(j)),
	})
}

// others are the samplers that people know, as their manuals have it.
func others(pid int) []paired.Treatment {
	process := fmt.Sprint(pid)
	pySpy := func(name string, flags ...string) paired.Treatment {
		argv := append([]string{filepath.Join(setup.CacheDirectory(), "py-spy-venv", "bin", "py-spy"), "record", "--rate", "100",
			"--format", "raw", "--output", os.DevNull, "--duration", "3600", "--pid", process}, flags...)
		return paired.Beside(name, sampledWindow, 2*time.Second, argv...)
	}
	return slices.DeleteFunc([]paired.Treatment{
		pySpy(PySpyPlain),
		pySpy(PySpyDeep, "--native"),
		paired.Beside(PerfRecord, sampledWindow, time.Second, "perf", "record", "--quiet", "-e", "cpu-clock", "-F", "99", "-g", "-o", os.DevNull,
			"--pid", process),
	}, func(t paired.Treatment) bool { return t.Start == nil })
}

// SamplingTargets are the rows of the targets table.
func (r *Results) SamplingTargets(p *figure.Page) {
	for _, m := range r.Samples {
		on, floor := paired.Find(m, At99Hertz), paired.Find(m, paired.AA)
		p.Row("99 Hz samples, job on both cores: step inside the noise floor", m.Python.Name,
			fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*on.Share.Median, 100*floor.Share.Reach()),
			figure.WithinNoise(on.Share.Median <= floor.Share.Reach(), floor.Share.Reach()))
		if alone := r.samplesAloneOf(m.Python); alone != nil {
			on, floor := paired.Find(*alone, At99Hertz), paired.Find(*alone, paired.AA)
			p.Row("99 Hz samples, one thread on a core of its own, against its twin: mean step inside the noise floor", m.Python.Name,
				fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*on.MeanShare.Median, 100*floor.MeanShare.Reach()),
				figure.WithinNoise(on.MeanShare.Median <= floor.MeanShare.Reach(), floor.MeanShare.Reach()))
		}
		p.Row("99 Hz samples: the tracer below 1 % of a core", m.Python.Name, fmt.Sprintf("%.2f %%", 100*on.CpuShare),
			figure.Verdict(on.CpuShare < 0.01))
	}
}

// samplesAloneOf is what measureSamplesAlone found with an interpreter.
func (r *Results) samplesAloneOf(python setup.Interpreter) *paired.Result {
	for i := range r.samplesAlone {
		if r.samplesAlone[i].Python == python {
			return &r.samplesAlone[i]
		}
	}
	return nil
}

const samplingText = `A GPT of one layer in training, on two threads that keep both cores busy (and sleep where they wait for each other: OMP_WAIT_POLICY=passive), with no probe in it: what samples and waits cost
alone, and what others take for theirs, in turn in the same run. No process has a core of its own here, so what a sampler uses is in the step as well.
The first line is the noise floor. ebpfprof unwinds in the kernel and names every frame meanwhile; perf follows frame pointers, which neither PyTorch
nor CPython has, and names nothing until later; py-spy stops the job for each sample.`

func (r *Results) Sampling(p *figure.Page) {
	if len(r.Samples) == 0 {
		return
	}
	p.Line("## Sampling\n\n%s\n", samplingText)
	p.Table("PyTorch", "job", "with", "step, ms", "difference (95 %)", "of the job's CPU time", "the sampler, % of a core")
	for _, m := range r.Samples {
		for _, c := range m.Comparisons {
			sampler := ""
			if c.Name != paired.AA {
				sampler = fmt.Sprintf("%.2f", 100*c.CpuShare)
			}
			p.Row(m.Python.Name, m.Job, c.Name, fmt.Sprintf("%.3f → %.3f", c.Off/1e6, c.On/1e6), c.Share.Percent(), fmt.Sprintf("%+.1f %%",
				100*c.Cpu.Median), sampler)
		}
	}
	for _, m := range r.samplesAlone {
		for _, c := range m.Comparisons {
			p.Row(m.Python.Name, m.Job+", one thread, against its twin", c.Name, fmt.Sprintf("%.3f → %.3f", c.Off/1e6, c.On/1e6),
				c.MeanShare.Percent()+", mean", "", "")
		}
	}
	p.Line("")
}
