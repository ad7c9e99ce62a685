package main

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer"
)

// idleGroup is a group of probes that a job of one process never passes: with
// it alone, a recording is its samples.
const idleGroup = "collective"

const (
	sampledJob = "transformer.py"
	at99Hertz  = "samples at 99 Hz, and waits from 1 ms"
	// attached is when the tracer has done what it does once: found the libraries,
	// compiled their tables.
	attached = 6 * time.Second
)

// measureSampling samples a job that keeps both cores busy. Here the tracer has
// no core of its own: what it needs, the job pays as well.
func (r *results) measureSampling(s settings, python interpreter) error {
	j, err := startJobOn("0,1", python, sampledJob, "--threads", "2")
	if err != nil {
		return err
	}
	defer j.kill()
	window := 3 * time.Second
	options := tracer.Options{
		PIDs: []int{j.pid}, Level: tracer.LevelWindow, Groups: []string{idleGroup}, Follow: true,
		Frequency: 99, OffCPU: time.Millisecond,
	}
	s.rounds, s.window = min(s.rounds, 4), window
	judge, err := r.run(&r.samples, j, python, sampledJob, s, []treatment{
		nothing(window),
		session(at99Hertz, window, attached, options),
	})
	if err != nil {
		return err
	}
	all, err := j.stop()
	if err != nil {
		return err
	}
	judge(all)
	for _, c := range r.samples[len(r.samples)-1].comparisons {
		say("  %s, %s: agent %.2f %% of a core", python.name, c.name, 100*c.cpuShare)
	}
	return nil
}

const samplingText = `A GPT of four layers in training, on two threads that keep both cores busy, with no probe that it passes: what samples and
waits cost alone. The tracer has no core of its own here, so what it uses is in the step as well. The first line is the noise floor.`

func (r *results) sampling(p *page) {
	if len(r.samples) == 0 {
		return
	}
	p.line("## Sampling\n\n%s\n", samplingText)
	p.table("PyTorch", "job", "with", "step, ms", "difference (95 %)", "of the job's CPU time", "the tracer, % of a core")
	for _, m := range r.samples {
		for _, c := range m.comparisons {
			tracer := ""
			if c.name != aa {
				tracer = fmt.Sprintf("%.2f", 100*c.cpuShare)
			}
			p.row(m.python.name, m.job, c.name, fmt.Sprintf("%.3f → %.3f", c.off/1e6, c.on/1e6), c.share.percent(), fmt.Sprintf("%+.1f %%", 100*c.cpu.median), tracer)
		}
	}
	p.line("")
}
