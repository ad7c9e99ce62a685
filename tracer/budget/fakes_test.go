package budget

import (
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// noProbes is a job of which no probe is known, noJob one of no process.
type noProbes struct{ Probes }

func (noProbes) At(uint32) Probe        { return Probe{} }
func (noProbes) Steps() []uint32        { return nil }
func (noProbes) PastSteps() uint64      { return 0 }
func (noProbes) Detach()                {}
func (noProbes) SweepScopes()           {}
func (noProbes) Anchors() []uint32      { return nil }
func (noProbes) Sites([]uint32) int     { return 0 }
func (noProbes) Learn() (int, []uint32) { return 0, nil }

type noJob struct{ Job }

func (noJob) Processes() []int       { return nil }
func (noJob) TakingCost() TakingCost { return TakingCost{} }
func (noJob) SampleShare() float64   { return 0 }

// noSwitches switch nothing.
type noSwitches struct{}

func (noSwitches) SetDetail(bool) error        { return nil }
func (noSwitches) SetEpoch(uint32) error       { return nil }
func (noSwitches) SetAnchorEpoch(uint32) error { return nil }
func (noSwitches) PrepareRemoval()             {}

// noRows are of a recording that nobody reads.
type noRows struct{}

func (noRows) Weigh(uint32, int64, []event.Slice, weights.Weigher, func(map[uint32]float64)) {}
func (noRows) Hold(bool)                                                                     {}
