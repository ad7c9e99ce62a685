package samples

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/loop"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// mixedStack is what a whole sample costs: both walks, the hash, the record.
type mixedStack struct {
	job     string // what was sampled
	python  string // its PyTorch
	samples int
	frames  float64       // a sample, on average, Python and native and kernel together
	forty   figure.Spread // ns for forty frames, of each window
	perRun  figure.Spread // ns a sample, likewise
	trap    float64       // ns, the least before and after
}

// mixedWindows is how many windows are looked at, each by itself: what else the
// machine does only adds.
const mixedWindows = 10

// mixedHertz is faster than any real sampling: for figures in a few seconds.
const mixedHertz = 997

// fortyFramesLimit is what a stack of forty mixed frames may cost.
const fortyFramesLimit = 15 * time.Microsecond

// What is sampled: a loop that stays in the caches, and with it all that a sample
// reads, or training steps, which throw it out between two samples.
const (
	warmLoop      = "a warm loop"
	trainingSteps = "training steps"
)

// MeasureMixed samples a training job.
func (r *Results) MeasureMixed(s setup.Settings, python setup.Interpreter) error {
	j, err := paired.Start(python, sampledJob)
	if err != nil {
		return err
	}
	defer j.Kill()
	if err := r.sampleMixed(s, j, &mixedStack{job: trainingSteps, python: python.Name}); err != nil {
		return err
	}
	_, err = j.Stop()
	return err
}

// MeasureWarm samples jobs/warm.py, which needs no PyTorch.
func (r *Results) MeasureWarm(s setup.Settings) error {
	j, err := paired.StartCommand("taskset", "-c", setup.OnJobCore, "python3", filepath.Join("internal", "dev", "bench", "jobs", "warm.py"))
	if err != nil {
		return err
	}
	defer j.Kill()
	return r.sampleMixed(s, j, &mixedStack{job: warmLoop})
}

// sampleMixed samples a job, and asks the kernel what a run of the program took.
// The asking costs some 20 ns a run.
func (r *Results) sampleMixed(s setup.Settings, j *paired.Job, m *mixedStack) error {
	gauge, err := loop.NewGauge()
	if err != nil {
		return err
	}
	defer gauge.End()
	_, before, err := gauge.Read()
	if err != nil {
		return err
	}
	sink := &frameCounter{frames: map[int64]int{}}
	others := tickPrograms()
	session, err := tracer.Open(context.Background(), tracer.Options{
		PIDs: []int{j.Pid}, Level: tracer.LevelSamples, Frequency: mixedHertz,
	}, sink)
	if err != nil {
		return err
	}
	defer session.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- session.Run(ctx) }()
	time.Sleep(attached)
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		cancel()
		return errors.Join(fmt.Errorf("turning the kernel's statistics on: %w", err), <-done)
	}
	times, spent := []int64{time.Now().UnixNano()}, []time.Duration{ranSince(others)}
	for range mixedWindows {
		time.Sleep(s.Window)
		times, spent = append(times, time.Now().UnixNano()), append(spent, ranSince(others))
	}
	cancel()
	if err = errors.Join(<-done, stats.Close()); err != nil {
		return err
	}
	_, after, err := gauge.Read()
	if err != nil {
		return err
	}
	m.trap = min(before, after)
	if m.samples, m.frames = sink.average(times[0], times[mixedWindows]); m.samples < 500 {
		return fmt.Errorf("%d samples", m.samples)
	}
	for i := range mixedWindows {
		samples, frames := sink.average(times[i], times[i+1])
		if samples == 0 || spent[i+1] == spent[i] {
			return fmt.Errorf("window %d: %d samples in %v of the sampler's program", i, samples, spent[i+1]-spent[i])
		}
		ns := float64(spent[i+1]-spent[i]) / float64(samples)
		m.perRun.Add(ns)
		m.forty.Add(ns * 40 / frames)
	}
	r.mixed = append(r.mixed, m)
	setup.Say("  %s %s: %s ns a sample of %.1f frames, %s for 40; a trap %.0f ns", m.job, m.python, &m.perRun, m.frames, &m.forty, m.trap)
	return nil
}

// ranSince is the CPU time so far, all CPUs together, of the sampler's program that is
// none of the others on this machine.
func ranSince(others map[ebpf.ProgramID]time.Duration) (most time.Duration) {
	for id, spent := range tickPrograms() {
		if _, other := others[id]; !other {
			most = max(most, spent)
		}
	}
	return most
}

// tickPrograms are the samplers' programs that are loaded on this machine, and what
// each has taken while the kernel counted.
func tickPrograms() map[ebpf.ProgramID]time.Duration {
	programs := map[ebpf.ProgramID]time.Duration{}
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue
		}
		if info, err := p.Info(); err == nil && info.Name == "sample_tick" {
			if stats, err := p.Stats(); err == nil {
				programs[id] = stats.Runtime
			}
		}
		p.Close()
	}
	return programs
}

// frameCounter is a sink that keeps how many frames the samples had.
type frameCounter struct {
	mu      sync.Mutex
	frames  map[int64]int // by stack
	samples []tracer.Sample
}

// Write implements event.Sink.
func (c *frameCounter) Write(b *event.Batch) error {
	c.addStacks(b.Stacks)
	c.addSamples(b.Samples)
	return nil
}

func (c *frameCounter) addStacks(stacks []tracer.Stack) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range stacks {
		walked := 0
		for i := range s.Frames {
			if s.Frames[i].Kind != symbolize.Op { // which no walk met
				walked++
			}
		}
		c.frames[s.ID] = walked
	}
}

func (c *frameCounter) addSamples(samples []tracer.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range samples {
		if s.State == tracer.OnCPU && s.StackID != nil {
			c.samples = append(c.samples, s)
		}
	}
}

// average is over the samples between two times, nanoseconds since the Unix epoch.
func (c *frameCounter) average(from, to int64) (samples int, frames float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	for _, s := range c.samples {
		if s.TSNS >= from && s.TSNS <= to {
			samples++
			sum += c.frames[*s.StackID]
		}
	}
	return samples, float64(sum) / float64(max(1, samples))
}

const mixedText = `Jobs on one core, sampled %d times a second: what the sampler's program took by the kernel's own statistics (both walks, the stack's hash, the frames of what is new, the record; its runs on CPUs that did something else as well), over the samples of the job and over the frames of their merged stacks, Python, native and kernel together.
The warm loop (internal/dev/bench/jobs/warm.py) sums 64 numbers below Python and C functions that call each other: everything is in the caches, and the same stacks come again and again, as in the prototype that the target is from. The other job is a transformer's training steps: between two samples they throw the tables, the stack, the interpreter's objects and the program's own instructions out of the caches, and most stacks are new, so that their frames are sent.`

func (r *Results) MixedStacks(p *figure.Page) {
	if len(r.mixed) == 0 {
		return
	}
	p.Line("## A mixed stack\n")
	p.Line(mixedText+"\n", mixedHertz)
	p.Line("Ten windows, each by itself, because what else the machine does only adds: the median (least–most) of the windows; the targets " +
		"are about the least.\n")
	p.Table("job", "PyTorch", "samples", "frames a stack", "a sample, ns", "40 frames, ns")
	for _, m := range r.mixed {
		p.Row(m.job, m.python, fmt.Sprint(m.samples), fmt.Sprintf("%.1f", m.frames), m.perRun.String(), m.forty.String())
	}
	p.Line("")
}

func (r *Results) MixedTargets(p *figure.Page) {
	for _, m := range r.mixed {
		p.Row("40 mixed frames, sampled in "+m.job+": ≤ 15 µs", m.python, loop.InTraps(figure.Fastest(m.forty.Values), m.trap),
			figure.Verdict(figure.Fastest(m.forty.Values) <= float64(fortyFramesLimit)))
	}
}
