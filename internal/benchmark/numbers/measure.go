package numbers

import (
	"context"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// Options are what a recording cannot tell by itself.
type Options struct {
	Batch         int // samples of a step of one process; 0: what the loader puts together
	StepsPerEpoch int // 0: by the ends of the data loader
	// HostMemoryMiB is what the job's processes held at most, nil where nobody looked.
	HostMemoryMiB *float64
	Output        string // what the job printed
	LossPattern   string // "" is the usual one
}

// Measure reads the numbers of a recording, and its steps' lengths in milliseconds, for a picture. A number that is not
// available has the reason in its place; an error is one of reading the recording.
func Measure(ctx context.Context, db *dataset.DB, o Options) (all []Number, periodsMS []float64, err error) {
	loops, err := timeline.Steps(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	m := &measuring{ctx: ctx, db: db, options: o}
	m.choose(loops)
	for _, part := range []func() error{m.steps, m.batch, m.epochs, m.loading, m.communication, m.devices, m.losses} {
		if err := part(); err != nil {
			return nil, nil, fmt.Errorf("reading the recording's numbers: %w", err)
		}
	}
	return m.ordered(), m.periods(), nil
}

// mostPeriods is into how many stretches the steps of a run are cut for its picture.
const mostPeriods = 400

// periods are the lengths of all steps of the loop, warm-up too; of many the means of neighbours.
func (m *measuring) periods() (all []float64) {
	for _, s := range m.loop.Steps {
		if s.Period >= 0 && (s.Kind == steps.Train || s.Kind == steps.Warmup || s.Kind == steps.Evaluate && !m.loop.Trains) {
			all = append(all, float64(s.Period)/1e6)
		}
	}
	if len(all) <= mostPeriods {
		return all
	}
	means := make([]float64, mostPeriods)
	for i := range means {
		means[i] = steps.Mean(all[i*len(all)/mostPeriods : (i+1)*len(all)/mostPeriods])
	}
	return means
}

// measuring collects the numbers. The window goes from the first settled step's begin to the last one's end.
type measuring struct {
	ctx     context.Context
	db      *dataset.DB
	options Options

	loop        timeline.Thread
	settled     []timeline.Step
	from, until int64
	noSteps     string // why there are no steps, "" if there are

	found []Number
}

func (m *measuring) add(n Number) { m.found = append(m.found, n) }

// choose takes the thread with the most steps, of processes that do the job's own work.
func (m *measuring) choose(loops []timeline.Thread) {
	best := -1
	for i := range loops {
		n := len(settledOf(loops[i]))
		if n == 0 {
			continue
		}
		if best < 0 || loops[i].Works && !loops[best].Works || loops[i].Works == loops[best].Works && n > len(settledOf(loops[best])) {
			best = i
		}
	}
	if best < 0 {
		m.noSteps = "no step was found: nothing on any thread repeats, or too little of the job was recorded"
		return
	}
	m.loop, m.settled = loops[best], settledOf(loops[best])
	m.from, m.until = m.settled[0].Begin, m.settled[len(m.settled)-1].Until()
}

// settledOf are the steps of a loop that have a period, without warm-up; of a loop that only evaluates those.
func settledOf(t timeline.Thread) (all []timeline.Step) {
	if all = t.Training(); len(all) > 0 {
		return all
	}
	for _, s := range t.Of(steps.Evaluate) {
		if s.Period >= 0 {
			all = append(all, s)
		}
	}
	return all
}

// steps are the step's length and what follows from it alone.
func (m *measuring) steps() error {
	if m.noSteps != "" {
		for _, name := range []string{StepTime, StepsPerSecond, Stability} {
			m.add(missing(name, m.noSteps))
		}
		return nil
	}
	var periods []float64
	for _, s := range m.settled {
		periods = append(periods, float64(s.Period)/1e6)
	}
	step := meanOf(StepTime, periods, "steps")
	rate := step.inverse(StepsPerSecond, 1000)
	if w := len(m.loop.Of(steps.Warmup)); w > len(m.settled) {
		step.Why = fmt.Sprintf("%d more steps are warm-up: no three in a row before took about the same time", w)
	}
	m.add(step)
	m.add(rate)
	if len(periods) < 2 {
		m.add(missing(Stability, "one step does not spread"))
		return nil
	}
	m.add(measured(Stability, deviationPercent(periods), len(periods), "steps"))
	return nil
}

func (m *measuring) epochs() error {
	step := value(m.found, StepTime)
	switch n := m.options.StepsPerEpoch; {
	case m.noSteps != "":
		m.add(missing(EpochTime, m.noSteps))
		return nil
	case n > 0:
		one, _ := Find(m.found, StepTime)
		e := measured(EpochTime, *step*float64(n)/1000, one.Of, "steps")
		if one.Lo != nil {
			e = e.within(*one.Lo*float64(n)/1000, *one.Hi*float64(n)/1000)
		}
		m.add(e)
		return nil
	}
	seconds := epochs(m.loop.Steps)
	if len(seconds) == 0 {
		m.add(missing(EpochTime, "no data loader was seen to come to its end: give --steps-per-epoch"))
		return nil
	}
	e := measured(EpochTime, steps.Mean(seconds), len(seconds), "epochs")
	if len(seconds) > 2 { // of two the interval would be 18 times as wide as what they differ by
		e = e.within(steps.Interval(seconds))
	}
	m.add(e)
	return nil
}

// ordered are the numbers as Kinds has them.
func (m *measuring) ordered() (all []Number) {
	for _, k := range Kinds() {
		n, ok := Find(m.found, k.Name)
		if !ok {
			n = missing(k.Name, "nothing in the recording tells it")
		}
		all = append(all, n)
	}
	return all
}
