package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer"
)

const (
	// sampledJob has steps short enough for many in a window.
	sampledJob = "transformer.py"

	at99Hertz  = "ebpfprof: samples at 99 Hz, waits from 1 ms"
	pySpyPlain = "py-spy at 100 Hz"
	pySpyDeep  = "py-spy at 100 Hz, `--native`"
	perfRecord = "perf record at 99 Hz, `-e cpu-clock -g`"

	// attached is when the tracer has done what it does once: found the libraries,
	// fetched their tables.
	attached = 6 * time.Second
	// sampledWindow is one side of a pair.
	sampledWindow = 3 * time.Second
)

// measureSampling samples a job that keeps both cores busy, by ebpfprof and by
// others in turn. Here nobody has a core of its own: what a sampler needs, the
// job pays as well.
func (r *results) measureSampling(s settings, python interpreter) error {
	// Threads that wait for each other spin by default: with anybody else on the
	// two cores steps take anything between 10 ms and a second.
	if err := os.Setenv("OMP_WAIT_POLICY", "passive"); err != nil {
		return err
	}
	defer os.Unsetenv("OMP_WAIT_POLICY")
	j, err := startJobOn("0,1", python, sampledJob, "--threads", "2", "--depth", "1", "--length", "32")
	if err != nil {
		return err
	}
	defer j.kill()
	treatments := append([]treatment{
		nothing(sampledWindow),
		session(at99Hertz, sampledWindow, attached, sampled(j)),
	}, others(j.pid)...)
	s.rounds, s.window = min(s.rounds, 4), sampledWindow
	if err := r.runToTheEnd(&r.samples, j, python, sampledJob, s, treatments); err != nil {
		return err
	}
	for _, c := range r.samples[len(r.samples)-1].comparisons {
		say("  %s, %s: %.2f %% of a core", python.name, c.name, 100*c.cpuShare)
	}
	return r.measureSamplesAlone(s, python)
}

// sampled is what samples a job as the level window does.
func sampled(j *job) tracer.Options {
	return tracer.Options{
		PIDs: []int{j.pid}, Level: tracer.LevelSamples, Follow: true,
		Frequency: 99, OffCPU: time.Millisecond, Counters: time.Second,
	}
}

// measureSamplesAlone has one thread on the job's core, the tracer on the other and
// a twin: what the samples take of the job itself, on a machine however noisy.
func (r *results) measureSamplesAlone(s settings, python interpreter) error {
	j, err := startWithTwin(onJobCore, python, sampledJob, "--depth", "1", "--length", "32")
	if err != nil {
		return err
	}
	defer j.kill()
	return r.runToTheEnd(&r.samplesAlone, j, python, sampledJob, s, []treatment{
		nothing(sampledWindow),
		session(at99Hertz, sampledWindow, attached, sampled(j)),
	})
}

// others are the samplers that people know, as their manuals have it.
func others(pid int) []treatment {
	process := fmt.Sprint(pid)
	pySpy := func(name string, flags ...string) treatment {
		argv := append([]string{filepath.Join(cacheDirectory(), "py-spy-venv", "bin", "py-spy"), "record", "--rate", "100",
			"--format", "raw", "--output", os.DevNull, "--duration", "3600", "--pid", process}, flags...)
		return beside(name, sampledWindow, 2*time.Second, argv...)
	}
	return slices.DeleteFunc([]treatment{
		pySpy(pySpyPlain),
		pySpy(pySpyDeep, "--native"),
		beside(perfRecord, sampledWindow, time.Second, "perf", "record", "--quiet", "-e", "cpu-clock", "-F", "99", "-g", "-o", os.DevNull, "--pid", process),
	}, func(t treatment) bool { return t.start == nil })
}

// samplingTargets are the rows of the targets table.
func (r *results) samplingTargets(p *page) {
	for _, m := range r.samples {
		on, floor := find(m, at99Hertz), find(m, aa)
		p.row("99 Hz samples, job on both cores: step inside the noise floor", m.python.name,
			fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*on.share.median, 100*floor.share.reach()), withinNoise(on.share.median <= floor.share.reach(), floor.share.reach()))
		if alone := r.samplesAloneOf(m.python); alone != nil {
			on, floor := find(*alone, at99Hertz), find(*alone, aa)
			p.row("99 Hz samples, one thread on a core of its own, against its twin: mean step inside the noise floor", m.python.name,
				fmt.Sprintf("%+.1f %%, floor ±%.1f %%", 100*on.meanShare.median, 100*floor.meanShare.reach()), withinNoise(on.meanShare.median <= floor.meanShare.reach(), floor.meanShare.reach()))
		}
		p.row("99 Hz samples: the tracer below 1 % of a core", m.python.name, fmt.Sprintf("%.2f %%", 100*on.cpuShare), verdict(on.cpuShare < 0.01))
	}
}

// samplesAloneOf is what measureSamplesAlone found with an interpreter.
func (r *results) samplesAloneOf(python interpreter) *pairedResult {
	for i := range r.samplesAlone {
		if r.samplesAlone[i].python == python {
			return &r.samplesAlone[i]
		}
	}
	return nil
}

const samplingText = `A GPT of one layer in training, on two threads that keep both cores busy (and sleep where they wait for each other: OMP_WAIT_POLICY=passive), with no probe in it: what samples and waits cost
alone, and what others take for theirs, in turn in the same run. Nobody has a core of its own here, so what a sampler uses is in the step as well.
The first line is the noise floor. ebpfprof unwinds in the kernel and names every frame meanwhile; perf follows frame pointers, which neither PyTorch
nor CPython has, and names nothing until later; py-spy stops the job for each sample.`

func (r *results) sampling(p *page) {
	if len(r.samples) == 0 {
		return
	}
	p.line("## Sampling\n\n%s\n", samplingText)
	p.table("PyTorch", "job", "with", "step, ms", "difference (95 %)", "of the job's CPU time", "the sampler, % of a core")
	for _, m := range r.samples {
		for _, c := range m.comparisons {
			sampler := ""
			if c.name != aa {
				sampler = fmt.Sprintf("%.2f", 100*c.cpuShare)
			}
			p.row(m.python.name, m.job, c.name, fmt.Sprintf("%.3f → %.3f", c.off/1e6, c.on/1e6), c.share.percent(), fmt.Sprintf("%+.1f %%", 100*c.cpu.median), sampler)
		}
	}
	for _, m := range r.samplesAlone {
		for _, c := range m.comparisons {
			p.row(m.python.name, m.job+", one thread, against its twin", c.name, fmt.Sprintf("%.3f → %.3f", c.off/1e6, c.on/1e6), c.meanShare.percent()+", mean", "", "")
		}
	}
	p.line("")
}
