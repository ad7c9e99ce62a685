package weights

import "github.com/ebpfprof/ebpfprof/tracer/progress"

// noProbes is a job of which no probe is known, noJob one of no process.
type noProbes struct{ Probes }

func (noProbes) Probe(uint32) Probe { return Probe{} }
func (noProbes) Steps() []uint32    { return nil }
func (noProbes) PastSteps() uint64  { return 0 }

type noJob struct{ Job }

func (noJob) Processes() []int { return nil }

// testGauge is one of a job of no process.
func testGauge(probes Probes) *Gauge {
	return NewGauge(probes, noJob{}, progress.NewNodeClock(), progress.NewStepClock())
}
