package budget

import (
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// Config is what a Governor works on.
type Config struct {
	// Budget is the share of the job's own time that its probes may take; 0 records
	// every call.
	Budget float64
	// NoSlices: the kernel takes seconds to take the probes of a slice out. There are
	// none then, and groups that are too expensive are left out.
	NoSlices bool
	// Patient: the job is watched for hours, and its first seconds need not be kept apart.
	Patient  bool
	Cost     HitCost
	Probes   Probes
	Job      Job
	Switches Switches
	Rows     Rows
	Thinned  weights.Thinned     // what rows stand for is noted here, for who writes the probes' rows; nil: for nobody
	Nodes    *progress.NodeClock // whoever reads the records tells it of autograd nodes
	Steps    *progress.StepClock // and this one of steps
	Threads  func() (progress.Threads, error)
	Warn     func(event.Warning)
}

// New makes a Governor, which does nothing before Begin. The caller must Close it.
func New(c Config) *Governor {
	with := &joints{probes: c.Probes, job: c.Job, switches: c.Switches, rows: c.Rows, warn: c.Warn}
	account := &account{joints: with, budget: budgetShare * c.Budget, whole: c.Budget, cost: c.Cost, clock: progress.NewJobClock(),
		correction: 1}
	gauge := weights.NewGauge(weighed{c.Probes}, c.Job, c.Nodes, c.Steps)
	reference := &reference{joints: with, account: account, gauge: gauge}
	if c.Thinned == nil {
		c.Thinned = weights.Thinned{}
	}
	g := &Governor{threads: c.Threads, slicer: &slicer{
		joints: with, account: account, gauge: gauge, ledger: weights.NewLedger(gauge, c.Rows, c.Thinned, c.Warn), reference: reference,
		anchors: &anchors{joints: with, account: account, reference: reference}, epoch: 1,
		strata: strata{every: watchEvery},
	}}
	if c.Patient {
		g.strata.every = watchPatiently
	}
	if c.NoSlices {
		g.whole = &whole{}
	}
	return g
}

// NextEpoch tells the kernel that what is open now has no visible end.
func (g *Governor) NextEpoch() error {
	g.epoch++
	return g.switches.SetEpoch(g.epoch)
}

// Close ends the reading of the job's memory.
func (g *Governor) Close() { g.gauge.Counter.Close() }
